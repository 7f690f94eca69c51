"""What runs already, read from a fleet expression."""

import pytest

from spotwright.domain.errors import BadInputError, FleetExpressionError
from spotwright.domain.offer import Pool
from spotwright.domain.workload import Strategy
from spotwright.usecases.running_fleet import running_fleet
from tests.usecases.example_job import catalog, job


def test_workers_are_counted_by_pool_and_servers_are_not() -> None:
    written = "g5.xlarge*2@use1-az4/spot + g4dn.xlarge@use1-az4/spot + g5.xlarge@use1-az4/spot"

    found = running_fleet(
        f"{written} + ps=m5.xlarge", job(Strategy.ASP_PS), catalog(), switching_s=120
    )

    assert {str(pool): count for pool, count in found.nodes.items()} == {
        "g5.xlarge@use1-az4/spot": 3,
        "g4dn.xlarge@use1-az4/spot": 1,
    }
    assert found.switching_s == 120


def test_what_is_left_out_is_filled_in_as_everywhere() -> None:
    found = running_fleet("g5.xlarge*2", job(), catalog(), switching_s=0)

    (pool,) = found.nodes
    assert isinstance(pool, Pool)
    assert (pool.instance_type, pool.market) == ("g5.xlarge", "on-demand")


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
