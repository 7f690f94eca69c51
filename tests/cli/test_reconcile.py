"""`spotwright reconcile` against an AWS of our own, with nodes that boto3 started."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command import spotwright
from tests.moto_server import MotoServer, moto  # noqa: F401 - `moto` is a fixture

WORKERS, SERVERS = "worker-g5-xlarge-use1-az4-spot", "ps-m5-xlarge-use1-az4-on-demand"


class Rented:
    """A folder that asks for two spot workers and a parameter server, and the nodes for it."""

    def __init__(self, aws: MotoServer, folder: Path) -> None:
        self.aws, self.folder, self.name = aws, folder, f"fleet-{uuid4().hex[:8]}"
        self.write()

    def write(self, **changes: Any) -> None:
        pools = {
            WORKERS: pool("worker", "g5.xlarge", market="spot", node_count=2),
            SERVERS: pool("ps", "m5.xlarge", market="on-demand", node_count=1),
        }
        variables = {
            "schema_version": 1,
            "fleet_name": self.name,
            "plan_id": "p-1",
            "region": "us-east-1",
            "cost_usd_low": 31.0,
            "cost_usd_high": 38.5,
            "pools": pools,
        }
        text = json.dumps(variables | changes, indent=2, sort_keys=True)
        (self.folder / "fleet.auto.tfvars.json").write_text(text)

    def start(self, instance_type: str, key: str | None, *, spot: bool = False) -> str:
        tags = [{"Key": "Fleet", "Value": self.name}]
        tags += [{"Key": "Pool", "Value": key}] if key else []
        [instance] = self.aws.client("ec2").run_instances(
            ImageId="ami-12c6146b",
            InstanceType=instance_type,
            MinCount=1,
            MaxCount=1,
            Placement={"AvailabilityZone": "us-east-1d"},  # use1-az4, as moto has it
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            **({"InstanceMarketOptions": {"MarketType": "spot"}} if spot else {}),
        )["Instances"]
        return str(instance["InstanceId"])

    def start_all(self) -> list[str]:
        """Start what is wanted; return the workers."""
        self.start("m5.xlarge", SERVERS)
        return [self.start("g5.xlarge", WORKERS, spot=True) for _ in range(2)]

    def reconcile(self, *arguments: str | Path) -> CompletedProcess[str]:
        ours = {k: v for k, v in self.aws.environment().items() if k.startswith("AWS_")}
        return spotwright("reconcile", "--dir", self.folder, *arguments, environment=ours)


def pool(role: str, instance_type: str, *, market: str, node_count: int) -> dict[str, Any]:
    return {
        "role": role,
        "instance_type": instance_type,
        "zone_id": "use1-az4",
        "market": market,
        "node_count": node_count,
        "max_price_usd_per_hour": "0.52",
        "efa_interfaces": 0,
    }


@pytest.fixture
def rented(moto: MotoServer, tmp_path: Path) -> Rented:  # noqa: F811
    return Rented(moto, tmp_path)


def test_a_fleet_as_wanted_ends_with_zero(rented: Rented) -> None:
    rented.start_all()

    done = rented.reconcile("--no-drift")

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"{rented.name} in us-east-1, plan p-1: as wanted"
    [workers] = [line.split() for line in lines if line.startswith(WORKERS)]
    assert workers[:5] == [WORKERS, "worker", "spot", "2", "2"]
    assert "differs" not in done.stdout
    assert "on-demand prices are the catalog's of 20" in done.stdout


def test_a_node_that_was_terminated_is_told_and_ends_with_one(rented: Rented) -> None:
    lost, _ = rented.start_all()
    rented.aws.client("ec2").terminate_instances(InstanceIds=[lost])

    done = rented.reconcile("--no-drift")

    assert done.returncode == 1
    assert "plan p-1: 1 difference" in done.stdout
    assert f"differs: {WORKERS}: 1 of 2 nodes does not run: no group keeps them" in done.stdout
    assert "  to do: run `spotwright apply`" in done.stdout


def test_the_json_has_stable_keys(rented: Rented) -> None:
    rented.start("m5.xlarge", SERVERS)
    spot = rented.start("g5.xlarge", WORKERS, spot=True)
    fallen, stray = rented.start("g5.xlarge", WORKERS), rented.start("m5.xlarge", None)

    done = rented.reconcile("--no-drift", "--json")

    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert list(found) == ["fleet_name", "plan_id", "region", "as_wanted", "usd_per_hour", "pools",
                           "differences", "drift", "notes"]  # fmt: skip
    assert (found["fleet_name"], found["as_wanted"], found["drift"]) == (rented.name, False, None)
    money = found["usd_per_hour"]
    assert money["billed_is_complete"] is True
    assert money["billed"] > money["planned"] > 0
    assert [(p["pool"], p["wanted_count"], p["granted_count"]) for p in found["pools"]] == [
        (SERVERS, 1, 1),
        (WORKERS, 2, 1),
    ]
    told = [(d["kind"], d["pool"], d["instance_ids"]) for d in found["differences"]]
    assert told == [
        ("on-demand-fallback", WORKERS, [fallen]),
        ("stray-nodes", None, [stray]),
    ]
    assert all(d["text"] and d["way_out"] for d in found["differences"])
    assert spot not in done.stdout


def test_functions_are_said_not_to_be_compared(rented: Rented) -> None:
    servers = {SERVERS: pool("ps", "m5.xlarge", market="on-demand", node_count=1)}
    rented.write(pools=servers, functions={"memory_mb": 2560, "function_count": 8})
    rented.start("m5.xlarge", SERVERS)

    done = rented.reconcile("--no-drift")

    assert done.returncode == 0
    assert "note: functions are billed per call and are not compared" in done.stdout


def test_a_folder_that_was_never_applied_has_no_drift_to_tell(rented: Rented) -> None:
    rented.start_all()

    done = rented.reconcile()

    assert done.returncode == 1  # nothing that could not be told is as wanted
    assert "note: drift is not known: " in done.stdout
    assert "is not initialised" in done.stdout


def test_a_terraform_that_is_not_there_is_a_note(rented: Rented) -> None:
    rented.start_all()
    (rented.folder / ".terraform").mkdir()

    done = rented.reconcile("--terraform", "no-such-terraform", "--json")

    found = json.loads(done.stdout)
    assert (done.returncode, found["drift"], found["as_wanted"]) == (1, None, False)
    assert any("there is no program 'no-such-terraform'" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda file: file.unlink(), "no such file"),
        (lambda file: file.write_text("{"), "not JSON"),
        (lambda file: file.write_text(file.read_text().replace("spot", "soup")), "soup"),
        (lambda file: file.write_text(file.read_text().replace('nt": 2', 'nt": -1')), "node_count"),
    ],
)
def test_a_file_that_cannot_be_used_is_bad_input(
    rented: Rented, spoil: Callable[[Path], object], complaint: str
) -> None:
    spoil(rented.folder / "fleet.auto.tfvars.json")

    done = rented.reconcile("--no-drift")

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_without_credentials_it_says_how_to_give_them(rented: Rented) -> None:
    none = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    environment = none | {"AWS_EC2_METADATA_DISABLED": "true"}

    done = spotwright("reconcile", "--dir", rented.folder, "--no-drift", environment=environment)

    assert (done.returncode, done.stdout) == (1, "")
    assert "set AWS_PROFILE, or AWS_ACCESS_KEY_ID" in done.stderr
