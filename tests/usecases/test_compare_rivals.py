"""Which planners are asked about a job, and what their answers look like."""

import math

import pytest

from spotwright.domain.offer import Market
from spotwright.domain.plan import RunningFleet
from spotwright.perfmodel.predict import predict
from spotwright.planner.baselines.result import BaselineResult
from spotwright.planner.problem import Watch
from spotwright.usecases.compare_rivals import compare_rivals
from tests.adapters.report.example_plans import job_of
from tests.usecases.example_job import catalog

NODES = ["homogeneous slowest", "homogeneous fastest"]


def _rivals(example: str, watch: Watch | None = None) -> dict[str, BaselineResult]:
    found = compare_rivals(
        job_of(example), catalog(), running=RunningFleet(), watch=watch or Watch()
    )
    return {result.name: result for result in found}


@pytest.mark.parametrize(
    ("example", "names"),
    [
        ("wide-resnet-asp.yaml", [*NODES, "spotDNN", "Cynthia", "on-demand only"]),
        ("text-cnn-bsp.yaml", [*NODES, "Cynthia", "on-demand only"]),
        ("mobilenet-serverless.yaml", ["lambdaDNN"]),
    ],
)
def test_the_planners_of_a_strategy_are_asked_and_their_fleets_do_what_they_say(
    example: str, names: list[str]
) -> None:
    found = _rivals(example)

    assert [*found] == names
    for rival in found.values():
        if rival.fleet is None:
            assert math.isinf(rival.cost_usd)
            continue
        told = predict(job_of(example), rival.fleet, catalog().gpu)
        assert told.cost_usd is not None
        assert rival.cost_usd == pytest.approx(told.cost_usd.mid)
        assert rival.duration_s == pytest.approx(told.duration_s.mid)


def test_one_that_meets_no_goal_is_listed_without_a_fleet() -> None:
    assert _rivals("text-cnn-bsp.yaml")["homogeneous slowest"].fleet is None


def test_without_the_spot_market_nothing_can_be_taken_away() -> None:
    fleet = _rivals("wide-resnet-asp.yaml")["on-demand only"].fleet

    assert fleet is not None
    assert {group.market for group in fleet.nodes} == {Market.ON_DEMAND}


def test_once_time_is_up_no_more_are_asked() -> None:
    answers = iter([False, True])

    found = _rivals("wide-resnet-asp.yaml", Watch(stopped=lambda: next(answers)))

    assert [*found] == ["homogeneous slowest"]


def test_a_search_without_end_is_ended_when_time_is_up() -> None:
    asked = iter(range(100))

    found = _rivals("bert.yaml", Watch(stopped=lambda: next(asked) > 20))

    assert [*found] == [*NODES, "on-demand only"]
