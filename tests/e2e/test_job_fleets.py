"""Fleets that a daemon rents: after a kill, beside another replica, and when it was too slow."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spotwright.adapters.terraform.job_fleets import JobFleets
from spotwright.cli.rented import open_rented
from spotwright.domain.errors import BadInputError, CredentialsError, SpotwrightError
from tests.cut_line import line_to
from tests.e2e.renting import FLEET, job, spotwright
from tests.moto_server import MotoServer, moto

__all__ = ["job", "moto"]  # fixtures, used by their names

pytestmark = pytest.mark.timeout(300)
_BEGINS_S = 120.0
_TRIES = 6  # as often as a daemon tries within minutes


@pytest.fixture
def environment(moto: MotoServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the environment of a daemon, which is this process."""
    for name, value in moto.environment().items():
        monkeypatch.setenv(name, value)
    return moto.environment()


@pytest.fixture
def variables(job: Path, environment: dict[str, str], tmp_path: Path) -> str:
    """Return what the plan of a job asks for."""
    spotwright("plan", job, "--tfvars", tmp_path / "plan.json", environment=environment)
    return (tmp_path / "plan.json").read_text()


def fleets_in(folder: Path) -> JobFleets:
    return JobFleets(folder, environment=os.environ, open_rented=open_rented)


def nodes(moto: MotoServer) -> set[str]:
    return {instance["InstanceId"] for instance in moto.instances(FLEET)}


def killed_apply(folder: Path, variables: str, moto: MotoServer) -> None:
    """Kill a daemon, once AWS has made a group and before anybody heard its name."""
    with line_to(moto.port, losing="CreateAutoScalingGroup") as line:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.apply_process", folder, "job-1"],
            env=moto.environment() | {"AWS_ENDPOINT_URL": line.url}, start_new_session=True,
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert process.stdin is not None
        with process.stdin as asked:
            asked.write(variables)
        assert line.has_lost.wait(_BEGINS_S)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def applied_at_last(fleets: JobFleets, variables: str) -> bool:
    """Apply as often as it takes for the Terraform of a killed daemon to end, too."""
    for _ in range(_TRIES):
        try:
            return fleets.apply("job-1", variables, is_wanted=lambda: True) is not None
        except SpotwrightError as error:
            assert "has locked the state" in str(error)  # noqa: PT017 nothing else is in its way
    return False


def test_what_a_killed_daemon_has_rented_is_taken_in_and_not_rented_again(
    variables: str, moto: MotoServer, tmp_path: Path
) -> None:
    killed_apply(tmp_path / "fleets", variables, moto)
    left = nodes(moto)
    mark = tmp_path / "fleets" / "job-1" / ".spotwright" / "cut-off"
    assert len(left) == 3
    assert mark.exists()

    assert applied_at_last(fleets_in(tmp_path / "fleets"), variables)

    assert nodes(moto) == left
    assert not mark.exists()

    elsewhere = fleets_in(tmp_path / "elsewhere")  # of a replica on another host
    words = f"3 nodes of a fleet '{FLEET}' run in us-east-1 already, and not from .*--fleets DIR"
    with pytest.raises(BadInputError, match=words):
        elsewhere.apply("job-1", variables, is_wanted=lambda: True)
    assert nodes(moto) == left

    fewer = re.sub(r'"node_count": 3\b', '"node_count": 1', variables)
    assert fewer != variables
    assert not fleets_in(tmp_path / "fleets").apply("job-1", fewer, is_wanted=lambda: False)
    assert nodes(moto) == left
    kept = tmp_path / "fleets" / "job-1" / "fleet.auto.tfvars.json"
    assert '"node_count": 3' in kept.read_text()


def test_nothing_is_rented_where_it_cannot_be_known_what_runs(
    variables: str, moto: MotoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = nodes(moto)
    fleets = JobFleets(tmp_path / "fleets", environment=moto.environment(), open_rented=open_rented)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):  # Terraform still has them
        monkeypatch.delenv(name)

    with pytest.raises(CredentialsError):
        fleets.apply("job-2", variables, is_wanted=lambda: True)

    assert nodes(moto) == before
