"""What `apply` and `destroy` do not do, so that no node runs that nobody knows."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.command import SPOTWRIGHT
from tests.cli.small_job import EXAMPLES
from tests.e2e.renting import FLEET, job, rented, spotwright
from tests.moto_server import MotoServer, moto
from tests.terraform_tool import run_terraform

__all__ = ["job", "moto"]  # fixtures, used by their names

pytestmark = pytest.mark.timeout(300)


def test_a_plan_that_waits_for_approval_is_alone_in_its_folder_and_refused_when_stale(
    job: Path, moto: MotoServer, tmp_path: Path
) -> None:
    folder, env = tmp_path / "fleet", moto.environment()
    first = spotwright("apply", job, "--dir", folder, "--auto-approve", environment=env)
    assert first.returncode == 0, first.stderr
    variables = (folder / "fleet.auto.tfvars.json").read_text()
    command = [str(SPOTWRIGHT), "apply", str(job), "--dir", str(folder), "--deadline", "30h"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        assert any(line.startswith("price ceilings") for line in one.stdout)  # it asks now

        other = spotwright("destroy", "--dir", folder, "--auto-approve", environment=env)
        assert (other.returncode, len(rented(moto)) > 0) == (1, True)
        assert "another apply or destroy works in" in other.stderr
        # Terraform itself is not kept out
        plain = run_terraform(
            folder, "apply", "-auto-approve", "-var", "plan_id=p-2", environment=env
        )
        assert plain.returncode == 0, plain.stderr

        _, said = one.communicate("yes\n", timeout=100)
    assert one.returncode == 1
    assert "the state changed after this plan was made" in said
    assert (folder / "fleet.auto.tfvars.json").read_text() == variables  # nothing was done
    spotwright("destroy", "--dir", folder, "--auto-approve", environment=env)


def test_no_plan_and_no_lost_state_leaves_nodes_that_nobody_knows(
    job: Path, moto: MotoServer, tmp_path: Path
) -> None:
    folder, env = tmp_path / "fleet", moto.environment()
    first = spotwright("apply", job, "--dir", folder, "--auto-approve", environment=env)
    assert first.returncode == 0, first.stderr
    nodes = rented(moto)

    elsewhere = tmp_path / "elsewhere.yaml"
    text = job.read_text().replace("us-east-1", "us-west-2").replace("use1-az6", "usw2-az1")
    elsewhere.write_text(text)
    moved = spotwright("apply", elsewhere, "--dir", folder, "--auto-approve", environment=env)
    functions = tmp_path / "functions.yaml"
    serverless = EXAMPLES / "mobilenet-serverless.yaml"
    functions.write_text(serverless.read_text().replace("mobilenet-serverless", FLEET))
    other_kind = spotwright("apply", functions, "--dir", folder, "--auto-approve", environment=env)
    namesake = tmp_path / "namesake.yaml"  # of another name, and just the same nodes
    namesake.write_text(job.read_text().replace(f"name: {FLEET}", "name: bert"))
    other_name = spotwright("apply", namesake, "--dir", folder, "--auto-approve", environment=env)
    for refused, words in (
        (moved, "region 'us-east-1'"),
        (other_kind, "a fleet of 'instances'"),
        (other_name, f"is for fleet '{FLEET}', and this plan is for fleet 'bert'"),
    ):
        assert (refused.returncode, refused.stdout) == (2, "")
        assert words in refused.stderr

    configuration, outputs = (folder / "main.tf"), (folder / "outputs.tf")
    whole = configuration.read_text()
    configuration.write_text(whole.partition("module ")[0])
    outputs.rename(tmp_path / "outputs.tf")
    emptied = spotwright("apply", job, "--dir", folder, "--auto-approve", environment=env)
    assert (emptied.returncode, emptied.stdout) == (2, "")
    assert "makes nothing for worker-" in emptied.stderr
    assert rented(moto) == nodes
    configuration.write_text(whole)
    (tmp_path / "outputs.tf").rename(outputs)

    twin = spotwright("apply", job, "--dir", tmp_path / "twin", environment=env)
    assert (twin.returncode, twin.stdout) == (2, "")
    assert f"{sum(nodes.values())} nodes of a fleet 'resnet50' run in us-east-1" in twin.stderr

    clone = tmp_path / "clone"
    shutil.copytree(folder, clone, ignore=shutil.ignore_patterns("*.tfstate*"))
    gone = spotwright("destroy", "--dir", clone, "--auto-approve", environment=env)
    assert gone.returncode == 1
    assert "bring the state it was rented with" in gone.stderr
    assert (clone / "fleet.auto.tfvars.json").exists()

    (folder / "fleet.auto.tfvars.json").rename(tmp_path / "kept.json")
    lost = spotwright("destroy", "--dir", folder, "--auto-approve", environment=env)
    assert lost.returncode == 2
    assert "`spotwright plan JOB --tfvars FILE` writes one" in lost.stderr
    assert rented(moto) == nodes

    (tmp_path / "kept.json").rename(folder / "fleet.auto.tfvars.json")
    for said in ("nothing is rented from .* any more", "nothing is rented from"):
        gone = spotwright("destroy", "--dir", folder, "--auto-approve", environment=env)
        assert gone.returncode == 0, gone.stderr
        assert re.search(said, gone.stderr)
    assert rented(moto) == Counter()


def test_a_configuration_that_does_not_rent_the_plan_is_refused(
    job: Path, moto: MotoServer, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "main.tf").write_text("terraform {}\n")

    done = spotwright(
        "apply", job, "--dir", tmp_path / "mine", "--auto-approve", environment=moto.environment()
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "makes nothing for worker-g4dn-xlarge-use1-az6-spot" in done.stderr
    assert not (tmp_path / "mine" / "fleet.auto.tfvars.json").exists()


def test_a_job_that_cannot_be_done_leaves_no_folder(job: Path, tmp_path: Path) -> None:
    done = spotwright(
        "apply", job, "--dir", tmp_path / "x", "--deadline", "1m", "--auto-approve", "--json",
        environment=os.environ,
    )  # fmt: skip

    assert done.returncode == 3
    assert json.loads(done.stdout)["status"] == "infeasible"
    assert not (tmp_path / "x").exists()


def test_a_folder_of_another_fleet_is_not_taken_over(job: Path, tmp_path: Path) -> None:
    other = Path(__file__).parents[1] / "terraform/golden/bert.tfvars.json"
    shutil.copy(other, tmp_path / "fleet.auto.tfvars.json")

    done = spotwright("apply", job, "--dir", tmp_path, environment=os.environ)

    assert (done.returncode, done.stdout) == (2, "")
    assert "'bert-large'" in done.stderr
    assert "'resnet50'" in done.stderr


def test_without_terraform_it_is_said_where_to_get_it(job: Path, tmp_path: Path) -> None:
    done = spotwright("apply", job, "--dir", tmp_path / "x", environment={"PATH": str(tmp_path)})

    assert (done.returncode, done.stdout) == (1, "")
    assert "neither terraform nor tofu is on the PATH" in done.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["apply", "destroy"])
def test_json_asks_nobody(command: str, tmp_path: Path) -> None:
    arguments = [tmp_path / "job.yaml"] if command == "apply" else []

    done = spotwright(command, *arguments, "--json", environment=os.environ)

    assert done.returncode == 2
    assert "--auto-approve" in done.stderr
