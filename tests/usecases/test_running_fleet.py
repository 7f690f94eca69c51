"""What runs already, read from a fleet expression."""

import pytest

from spotwright.domain.errors import BadInputError, FleetExpressionError
from spotwright.domain.offer import Pool
from spotwright.domain.plan import RunningFleet
from spotwright.domain.workload import Strategy
from spotwright.usecases.resolve_fleet import resolve_fleet
from spotwright.usecases.running_fleet import fleet_changes, running_fleet
from tests.usecases.example_job import catalog, job


def test_workers_and_servers_are_counted_by_pool() -> None:
    written = "g5.xlarge*2@use1-az4/spot + g4dn.xlarge@use1-az4/spot + g5.xlarge@use1-az4/spot"

    found = running_fleet(
        f"{written} + ps=m5.xlarge@use1-az4", job(Strategy.ASP_PS), catalog(), switching_s=120
    )

    assert {str(pool): count for pool, count in found.nodes.items()} == {
        "g5.xlarge@use1-az4/spot": 3,
        "g4dn.xlarge@use1-az4/spot": 1,
    }
    assert {str(pool): count for pool, count in found.servers.items()} == {
        "m5.xlarge@use1-az4/on-demand": 1
    }
    assert found.switching_s == 120


def test_what_is_left_out_is_filled_in_as_everywhere() -> None:
    found = running_fleet("g5.xlarge*2", job(), catalog(), switching_s=0)

    (pool,) = found.nodes
    assert isinstance(pool, Pool)
    assert (pool.instance_type, pool.market) == ("g5.xlarge", "on-demand")


def test_servers_that_are_left_out_are_not_taken_for_the_job_s_own() -> None:
    found = running_fleet("g5.xlarge*2", job(Strategy.ASP_PS), catalog(), switching_s=0)

    assert found.servers == {}


@pytest.mark.parametrize(
    ("strategy", "written", "complaint"),
    [
        (Strategy.SERVERLESS, "lambda:2048*8", "functions are started anew in every run"),
        (Strategy.ALLREDUCE, "P100*2", "P100 is no instance type that is rented"),
    ],
)
def test_what_cannot_be_kept_is_refused(strategy: Strategy, written: str, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        running_fleet(written, job(strategy), catalog(), switching_s=300)


def test_a_typo_points_at_its_column() -> None:
    with pytest.raises(FleetExpressionError, match=r"did you mean 'g5\.xlarge'"):
        running_fleet("g5.xlage", job(), catalog(), switching_s=300)


def test_what_becomes_of_each_pool_is_told_and_the_counts_add_up() -> None:
    job_of = job(Strategy.ASP_PS)
    runs = running_fleet(
        "g5.xlarge*4@use1-az4/spot + g4dn.xlarge*2@use1-az4/spot + ps=m5.xlarge*2@use1-az4",
        job_of,
        catalog(),
        switching_s=0,
    )
    planned = resolve_fleet(
        "g5.xlarge*3@use1-az4/spot + g6.xlarge@use1-az4/spot + ps=m5.xlarge*3@use1-az4",
        job_of,
        catalog(),
    )

    told = {
        f"{change.role} {change.pool}": (
            change.kept_count,
            change.added_count,
            change.stopped_count,
        )
        for change in fleet_changes(runs, planned)
    }

    assert told == {
        "worker g4dn.xlarge@use1-az4/spot": (0, 0, 2),
        "worker g5.xlarge@use1-az4/spot": (3, 0, 1),
        "worker g6.xlarge@use1-az4/spot": (0, 1, 0),
        "ps m5.xlarge@use1-az4/on-demand": (2, 1, 0),
    }


def test_where_nothing_runs_nothing_changes() -> None:
    planned = resolve_fleet("g5.xlarge*3@use1-az4/spot", job(), catalog())

    assert fleet_changes(RunningFleet(), planned) == ()
