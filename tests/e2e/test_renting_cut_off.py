"""An apply that is cut off while AWS makes what the state will not hold, and what comes after."""

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import SPOTWRIGHT
from tests.cut_line import line_to
from tests.e2e.renting import FLEET, job, spotwright
from tests.moto_server import REGION, MotoServer, moto, moto_server
from tests.terraform.fleets import left_behind
from tests.terraform_tool import require_aws_provider

__all__ = ["job", "moto"]  # fixtures, used by their names

pytestmark = pytest.mark.timeout(600)
_BEGINS_S = 240.0
_WITH_SERVERS = Path(__file__).parents[2] / "examples" / "text-cnn-bsp.yaml"


def cut_off(job: Path, folder: Path, moto: MotoServer, *, losing: str) -> str:
    """Press Ctrl-C once AWS has done something whose answer never comes; return what is said."""
    with line_to(moto.port, losing=losing) as line:
        process = subprocess.Popen(
            [SPOTWRIGHT, "apply", job, "--dir", folder, "--auto-approve"],
            env=moto.environment() | {"AWS_ENDPOINT_URL": line.url},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert line.has_lost.wait(_BEGINS_S)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=200)
    assert process.returncode == 1
    return said


def groups(moto: MotoServer, region: str = REGION) -> list[dict[str, Any]]:
    scaling = moto.client("autoscaling", region)
    return list(scaling.describe_auto_scaling_groups()["AutoScalingGroups"])


def twin_of(group: dict[str, Any], moto: MotoServer) -> str:
    """Make a group with the same tags, as an apply that replaces one may leave it."""
    name, kept = f"{group['AutoScalingGroupName']}-twin", ("Key", "Value", "PropagateAtLaunch")
    moto.client("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchTemplate={"LaunchTemplateId": group["LaunchTemplate"]["LaunchTemplateId"]},
        MinSize=0,
        MaxSize=1,
        DesiredCapacity=1,
        VPCZoneIdentifier=group["VPCZoneIdentifier"],
        Tags=[{key: tag[key] for key in kept} for tag in group["Tags"]],
    )
    return name


def test_a_group_that_a_ctrl_c_left_is_taken_in_and_one_without_a_place_is_refused(
    job: Path, moto: MotoServer, tmp_path: Path
) -> None:
    folder, env = tmp_path / "fleet", moto.environment()
    flags = "--dir", folder
    said = cut_off(job, folder, moto, losing="CreateAutoScalingGroup")
    assert "error: interrupted: terraform apply has stopped." in said
    [left] = groups(moto)
    nodes = {instance["InstanceId"] for instance in moto.instances(FLEET)}
    told = spotwright("reconcile", *flags, environment=env)
    assert f"group {left['AutoScalingGroupName']} with {len(nodes)} nodes" in told.stdout
    assert "to do: run `spotwright apply` or `spotwright destroy`: an apply was" in told.stdout

    done = spotwright("apply", job, *flags, "--auto-approve", environment=env)

    assert done.returncode == 0, done.stderr
    assert re.search(rf"^worker-\S+ +{len(nodes)} ", done.stdout, re.MULTILINE)  # and not 0 -> 3
    assert [g["AutoScalingGroupName"] for g in groups(moto)] == [left["AutoScalingGroupName"]]
    assert {instance["InstanceId"] for instance in moto.instances(FLEET)} == nodes
    assert not (folder / ".spotwright" / "cut-off").exists()

    twin = twin_of(left, moto)
    removal = (
        f"aws autoscaling delete-auto-scaling-group --force-delete --auto-scaling-group-name {twin}"
    )
    refused = spotwright("apply", job, *flags, "--auto-approve", environment=env)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"error: group {twin} with 1 node under the name of fleet '{FLEET}'" in refused.stderr
    assert f"`{removal} --region us-east-1`" in refused.stderr
    assert "terraform import" not in refused.stderr  # its place is taken

    (folder / ".spotwright" / "cut-off").touch()
    refused = spotwright("apply", job, *flags, "--auto-approve", environment=env)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"its state cannot take in group {twin} with 1 node" in refused.stderr

    half = spotwright("destroy", *flags, "--auto-approve", environment=env)
    assert half.returncode == 1
    assert f"there still is group {twin} with 1 node, and it is paid for" in half.stderr
    assert "Run the command again to take it in" in half.stderr
    whole = spotwright("destroy", *flags, "--auto-approve", environment=env)
    assert whole.returncode == 0, whole.stderr
    assert set(left_behind(moto).values()) == {0}


def test_a_destroy_gives_up_servers_that_a_ctrl_c_left(moto: MotoServer, tmp_path: Path) -> None:
    require_aws_provider()
    folder, env = tmp_path / "fleet", moto.environment()
    cut_off(_WITH_SERVERS, folder, moto, losing="RunInstances")
    assert moto.instances("text-cnn-bsp", "us-east-2")

    done = spotwright("destroy", "--dir", folder, "--auto-approve", environment=env)

    assert done.returncode == 0, done.stderr
    assert "left instance i-" in done.stderr
    assert moto.instances("text-cnn-bsp", "us-east-2") == []
    assert groups(moto, "us-east-2") == []
    assert not (folder / ".spotwright" / "cut-off").exists()


def test_an_aws_that_is_killed_in_the_middle_is_rented_from_once_it_is_back(
    job: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "fleet"
    with moto_server() as aws:
        with subprocess.Popen(
            [SPOTWRIGHT, "apply", job, "--dir", folder, "--auto-approve"],
            env=aws.environment() | {"AWS_MAX_ATTEMPTS": "1"},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if "aws_security_group.this: Creation complete" in line:
                    aws.kill()
        assert process.returncode == 1
        assert "AWS cannot be reached at" in "".join(said[-2:])
        assert "run the command again to go on from there" in said[-1]

        aws.start()  # it has forgotten what the state says is there
        done = spotwright(
            "apply", job, "--dir", folder, "--auto-approve", environment=aws.environment()
        )
        assert done.returncode == 0, done.stderr
        assert "removed by somebody else: module.fleet.aws_security_group.this" in done.stdout
        [group] = groups(aws)
        assert len(aws.instances(FLEET)) == group["DesiredCapacity"] > 0
        gone = spotwright(
            "destroy", "--dir", folder, "--auto-approve", environment=aws.environment()
        )
        assert gone.returncode == 0, gone.stderr
        assert set(left_behind(aws).values()) == {0}
