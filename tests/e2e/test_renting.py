"""From a job file to instances and back: `apply`, `reconcile`, `destroy` on an emulated AWS."""

import json
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spotwright.domain.units import format_usd
from tests.cli.command import SPOTWRIGHT, spotwright_here
from tests.cli.small_job import EXAMPLES, told_plan
from tests.daemon_process import running_daemon
from tests.e2e.renting import FLEET, job, rented, spotwright
from tests.moto_server import MotoServer, moto
from tests.terraform_tool import require_aws_provider, run_terraform

__all__ = ["job", "moto"]  # fixtures, used by their names

pytestmark = pytest.mark.timeout(600)


def planned(moto: MotoServer, told: dict[str, Any]) -> Counter[tuple[str, str, str]]:
    zones = moto.client("ec2").describe_availability_zones()["AvailabilityZones"]
    names = {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
    found: Counter[tuple[str, str, str]] = Counter()
    for group in told["fleet"]:
        found[group["role"], group["instance_type"], names[group["zone"]]] += group["node_count"]
    return found


def variant(job: Path, old: str, new: str) -> Path:
    """Write the job anew with one thing changed."""
    text = job.read_text()
    assert old in text
    other = job.with_name(f"other-{job.name}")
    other.write_text(text.replace(old, new))
    return other


def tfvars(*arguments: str | Path) -> Any:
    """Return the variables of a plan that nothing runs for yet."""
    return json.loads(spotwright_here("plan", *arguments, "--tfvars", "-").stdout)


def test_what_is_approved_is_rented_compared_and_given_up(
    job: Path, moto: MotoServer, tmp_path: Path
) -> None:
    folder, env = tmp_path / "a fleet", moto.environment()
    flags = "--dir", folder

    declined = spotwright("apply", job, *flags, environment=env, answer="y\n")
    assert (declined.returncode, rented(moto)) == (1, Counter())
    assert declined.stderr.endswith("error: nothing was changed\n")
    assert not (folder / "fleet.auto.tfvars.json").exists()

    # credentials that only the folder's provider block has: what else runs cannot be asked
    own = 'provider "aws" {\n  access_key = "testing"\n  secret_key = "testing"\n'
    main = folder / "main.tf"
    main.write_text(main.read_text().replace('provider "aws" {\n', own))
    nobody = {name: value for name, value in env.items() if "ACCESS_KEY" not in name}
    done = spotwright("apply", job, *flags, environment=nobody, answer="yes\n")
    assert done.returncode == 0, done.stderr
    assert f"not known whether a fleet '{FLEET}' runs already" in done.stderr
    assert rented(moto) == planned(moto, told_plan(job))
    assert "Apply complete!" in done.stderr
    screen = done.stdout.splitlines()
    assert len(screen) <= 40
    assert "0 -> " in screen[3]
    assert screen[-2].startswith("rent: $0/h -> $")

    # plain Terraform, with the file that was written, has nothing to do either
    plain = run_terraform(folder, "plan", "-detailed-exitcode", environment=env)
    assert plain.returncode == 0, plain.stdout + plain.stderr
    first = json.loads((folder / "fleet.auto.tfvars.json").read_text())
    shorter = variant(job, "epochs: 90", "epochs: 89")
    again = spotwright("apply", shorter, *flags, environment=env)
    assert again.returncode == 0, again.stderr
    assert "nothing to change" in again.stdout
    assert "somebody else" not in again.stdout
    # the screen and the file have the new plan's cost; the nodes keep their tags
    cost = {key: value for key, value in tfvars(shorter).items() if key.startswith("cost_")}
    assert cost["cost_usd_low"] < first["cost_usd_low"]
    assert f"the whole job {format_usd(cost['cost_usd_low'])} to" in again.stdout
    assert f"plan {first['plan_id']}" not in again.stdout
    assert f"they stay tagged with plan {first['plan_id']}" in again.stderr
    assert json.loads((folder / "fleet.auto.tfvars.json").read_text()) == first | cost

    compared = spotwright("reconcile", *flags, "--json", environment=env)
    told = json.loads(compared.stdout)
    # The emulator starts on-demand nodes where a template asks for spot: a silent fall-back.
    assert {each["kind"] for each in told["differences"]} == {"on-demand-fallback"}
    assert (compared.returncode, told["drift"]) == (1, [])

    gone = spotwright("destroy", *flags, "--auto-approve", "--json", environment=env)
    assert gone.returncode == 0, gone.stderr
    assert json.loads(gone.stdout)["usd_per_hour"]["after"] == 0
    assert rented(moto) == Counter()
    assert not (folder / "fleet.auto.tfvars.json").exists()


def test_a_fleet_planned_by_a_daemon_is_changed_where_it_runs_and_drift_is_told(
    job: Path, moto: MotoServer, tmp_path: Path
) -> None:
    folder, env = tmp_path / "fleet", moto.environment()
    with running_daemon(tmp_path) as daemon:
        flags = "--dir", folder, "--auto-approve", "--daemon", daemon.address
        first = spotwright("apply", job, *flags, environment=env)
        before = {instance["InstanceId"] for instance in moto.instances(FLEET)}
        hurried = spotwright("apply", job, *flags, "--deadline", "30h", environment=env)
    assert (first.returncode, hurried.returncode) == (0, 0), first.stderr + hurried.stderr
    after = {instance["InstanceId"] for instance in moto.instances(FLEET)}
    assert before < after  # what ran goes on

    scaling = moto.client("autoscaling")
    (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    name, wanted = group["AutoScalingGroupName"], group["DesiredCapacity"]
    scaling.update_auto_scaling_group(AutoScalingGroupName=name, DesiredCapacity=wanted - 1)
    compared = spotwright("reconcile", "--dir", folder, "--json", environment=env)

    told = json.loads(compared.stdout)
    kinds = {each["kind"] for each in told["differences"]}
    assert {"missing-nodes", "desired-count"} <= kinds
    assert ["aws_autoscaling_group" in change["address"] for change in told["drift"]] == [True]

    asked = "--dir", folder, "--deadline", "30h"
    shown = spotwright("apply", job, *asked, environment=env)  # nobody says yes
    assert shown.returncode == 2
    assert f" {wanted - 1} -> {wanted} " in shown.stdout
    assert re.search(r"^rent: (\S+) -> (?!\1)", shown.stdout, re.MULTILINE)
    spotwright("destroy", "--dir", folder, "--auto-approve", environment=env)
    assert rented(moto) == Counter()


def test_ctrl_c_lets_terraform_end_in_order_and_the_next_apply_goes_on(
    job: Path, moto: MotoServer, tmp_path: Path
) -> None:
    folder, env = tmp_path / "fleet", moto.environment()
    first = spotwright("apply", job, "--dir", folder, "--auto-approve", environment=env)
    assert first.returncode == 0, first.stderr
    arguments = ["apply", str(job), "--dir", str(folder), "--auto-approve", "--deadline", "30h"]
    with subprocess.Popen(
        [str(SPOTWRIGHT), *arguments], env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "aws_autoscaling_group" in line and "Modifying..." in line:
                process.send_signal(signal.SIGINT)
    assert process.returncode == 1
    assert "interrupted: terraform apply has stopped" in said[-1]
    assert not list(folder.glob(".terraform.tfstate.lock*"))  # unlocked
    asked = json.loads((folder / "fleet.auto.tfvars.json").read_text())["pools"]
    assert asked == tfvars(job, "--deadline", "30h")["pools"]  # what has begun, and not what was
    assert asked != tfvars(job)["pools"]

    done = spotwright(*arguments, environment=env)
    assert done.returncode == 0, done.stderr
    wanted = json.loads((folder / "fleet.auto.tfvars.json").read_text())["pools"]
    assert sum(rented(moto).values()) == sum(pool["node_count"] for pool in wanted.values())
    spotwright("destroy", "--dir", folder, "--auto-approve", environment=env)


def test_a_server_that_somebody_ended_is_not_shown_as_rented(
    moto: MotoServer, tmp_path: Path
) -> None:
    require_aws_provider()
    flags, env = ("--dir", tmp_path / "fleet"), moto.environment()
    job_file, name, region = EXAMPLES / "text-cnn-bsp.yaml", "text-cnn-bsp", "us-east-2"
    first = spotwright("apply", job_file, *flags, "--auto-approve", environment=env)
    assert first.returncode == 0, first.stderr
    tagged = {tag["Value"]: i for i in moto.instances(name, region) for tag in i["Tags"]}
    moto.client("ec2", region).terminate_instances(InstanceIds=[tagged["ps"]["InstanceId"]])

    shown = spotwright("apply", job_file, *flags, environment=env)  # nobody says yes

    assert shown.returncode == 2
    assert re.search(r"^ps-\S+ +0 -> 1 ", shown.stdout, re.MULTILINE)
    assert re.search(r"^worker-\S+ +1 ", shown.stdout, re.MULTILINE)
    told = re.search(r"^rent: \$(\S+)/h -> \$(\S+)/h", shown.stdout, re.MULTILINE)
    assert told
    assert 0 < float(told[1]) < float(told[2])
    gone = spotwright("destroy", *flags, "--auto-approve", environment=env)
    assert gone.returncode == 0, gone.stderr
    assert f"rent: ${told[1]}/h -> $0/h" in gone.stdout
