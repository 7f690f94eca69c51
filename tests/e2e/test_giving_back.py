"""A fleet that the daemon gives back when a budget is spent."""

import os
from pathlib import Path

import pytest

from spotwright.adapters.terraform.job_fleets import JobFleets
from spotwright.cli.rented import open_rented
from tests.e2e.renting import FLEET, job, spotwright
from tests.moto_server import MotoServer, moto

__all__ = ["job", "moto"]  # fixtures, used by their names

pytestmark = pytest.mark.timeout(400)


def test_all_that_was_applied_is_given_back_and_to_do_so_again_changes_nothing(
    job: Path, moto: MotoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in moto.environment().items():
        monkeypatch.setenv(name, value)
    variables = tmp_path / "next.json"
    spotwright("plan", job, "--tfvars", variables, environment=moto.environment())
    fleets = JobFleets(tmp_path / "fleets", environment=os.environ, open_rented=open_rented)
    fleets.give_back("job-1")  # nothing was ever rented
    assert fleets.apply("job-1", variables.read_text(encoding="utf-8"), is_wanted=lambda: True)
    assert moto.instances(FLEET)

    for _ in range(2):
        fleets.give_back("job-1")
        assert not moto.instances(FLEET)

    assert not (tmp_path / "fleets" / "job-1" / "fleet.auto.tfvars.json").exists()
