"""Which nodes of a rented fleet end when a plan wants fewer, or others in their place."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spotwright.adapters.aws.rented_fleets import AwsRentedFleets
from spotwright.adapters.terraform.job_fleets import JobFleets
from spotwright.cli.rented import open_rented
from spotwright.domain.errors import CredentialsError
from tests.e2e.renting import FLEET, job, spotwright
from tests.moto_server import MotoServer, moto

__all__ = ["job", "moto"]  # fixtures, used by their names

pytestmark = pytest.mark.timeout(300)


class LookingOnly(AwsRentedFleets):
    """An account that lets us look and end no node by name; the emulator knows no permissions."""

    def __init__(self, region: str) -> None:
        super().__init__(region, clock=lambda: datetime.now(UTC))

    def end_node(self, instance_id: str, *, is_replaced: bool) -> None:
        raise CredentialsError("allow it")


def members(moto: MotoServer) -> list[str]:
    """Return the nodes of the fleet's group, the one that the emulator would end first in front."""
    [group] = moto.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return [instance["InstanceId"] for instance in group["Instances"]]


def running(moto: MotoServer) -> set[str]:
    return {instance["InstanceId"] for instance in moto.instances(FLEET)}


def test_the_nodes_that_go_anyway_end_and_the_others_stay(
    job: Path, moto: MotoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in moto.environment().items():
        monkeypatch.setenv(name, value)
    spotwright("plan", job, "--tfvars", tmp_path / "plan.json", environment=moto.environment())
    three = (tmp_path / "plan.json").read_text()
    two, one = (re.sub(r'"node_count": 3\b', f'"node_count": {n}', three) for n in (2, 1))
    fleets = JobFleets(tmp_path / "fleets", environment=os.environ, open_rented=open_rented)
    fleets.apply("job-1", three, is_wanted=lambda: True)
    first, second, noticed = members(moto)

    # The group keeps two: one of the two that go anyway still trains until it is taken.
    applied = fleets.apply("job-1", two, is_wanted=lambda: True, going=[noticed, second])

    assert applied is not None
    assert (applied.ended, applied.problem) == ((noticed,), "")
    assert running(moto) == {first, second}

    assert fleets.replace_nodes("job-1", [second, noticed]) == (second,)

    assert first in running(moto)
    assert len(running(moto)) == 2
    assert not running(moto) & {second, noticed}
    assert fleets.replace_nodes("job-1", [second, noticed]) == ()

    looking = JobFleets(tmp_path / "fleets", environment=os.environ, open_rented=LookingOnly)
    applied = looking.apply("job-1", one, is_wanted=lambda: True, going=[first])

    assert applied is not None
    assert (applied.ended, applied.problem) == ((), "allow it")
    assert len(running(moto)) == 1  # whichever that is
