"""Cost against time, against the cheapest of all fleets for every deadline."""

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import pytest

from spotwright.domain.plan import Objective
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.predict import predict
from spotwright.planner.frontier import frontier
from spotwright.planner.problem import Problem, Solution, Watch
from tests.planner.box_count import BoxCount
from tests.planner.oracle import EveryFleet
from tests.planner.random_problems import Drawn, draw

STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]
SEEDS = [*range(63_000, 63_012), 80_129, 80_148]
GAP_FRACTION = 1e-3
ROUNDING = 1e-9

all_strategies = pytest.mark.parametrize("strategy", STRATEGIES)


@dataclass(frozen=True, slots=True)
class Curve:
    """The frontier of a problem."""

    seed: int
    problem: Problem
    fleets: EveryFleet
    points: list[tuple[float, Solution]]

    def cheapest_usd(self, deadline_s: float) -> float:
        best = self.fleets.best(
            Objective.COST, deadline_s=deadline_s, budget_usd=self.problem.job.goal.budget_usd
        )
        return best.cost_usd if best else math.inf


@cache
def curves(strategy: Strategy) -> list[Curve]:
    """Return the frontiers of problems that some fleet solves, half of them without a deadline."""
    drawn = [_open_ended(draw(strategy, seed)) for seed in SEEDS]
    found = [
        Curve(
            d.seed,
            d.problem,
            d.fleets,
            frontier(d.problem, gap_fraction=GAP_FRACTION, watch=Watch()),
        )
        for d in drawn
    ]
    return [curve for curve in found if curve.points]


def _open_ended(drawn: Drawn) -> Drawn:
    goal = drawn.problem.job.goal
    deadline_s = goal.deadline_s if drawn.seed % 2 else None
    job = replace(drawn.problem.job, goal=replace(goal, deadline_s=deadline_s))
    return replace(drawn, problem=replace(drawn.problem, job=job))


@all_strategies
def test_each_point_is_the_cheapest_fleet_for_its_deadline(strategy: Strategy) -> None:
    for curve in curves(strategy):
        for deadline_s, point in curve.points:
            least_usd = curve.cheapest_usd(deadline_s)

            most_usd = least_usd * (1 + GAP_FRACTION) * (1 + ROUNDING)
            assert least_usd * (1 - ROUNDING) <= point.cost_usd <= most_usd, curve.seed
            assert point.lower_bound <= least_usd * (1 + ROUNDING), curve.seed
            assert point.duration_s <= deadline_s * (1 + ROUNDING), curve.seed


@all_strategies
def test_costs_fall_as_durations_rise(strategy: Strategy) -> None:
    for curve in curves(strategy):
        for (_, faster), (_, slower) in pairwise(curve.points):
            assert faster.duration_s < slower.duration_s, curve.seed
            assert faster.cost_usd > slower.cost_usd, curve.seed


@all_strategies
def test_the_curve_goes_from_the_fastest_fleet_to_the_cheapest(strategy: Strategy) -> None:
    for curve in curves(strategy):
        goal = curve.problem.job.goal
        fastest = curve.fleets.best(
            Objective.TIME, deadline_s=goal.deadline_s, budget_usd=goal.budget_usd
        )
        assert fastest is not None
        (_, first), (_, last) = curve.points[0], curve.points[-1]

        assert first.duration_s <= fastest.duration_s * (1 + GAP_FRACTION) * (1 + ROUNDING)
        least_usd = curve.cheapest_usd(goal.deadline_s or math.inf)
        assert last.cost_usd <= least_usd * (1 + GAP_FRACTION) * (1 + ROUNDING), curve.seed


@all_strategies
def test_points_cost_and_take_what_is_predicted_for_their_fleets(strategy: Strategy) -> None:
    for curve in curves(strategy):
        if not curve.problem.running.nodes:  # switching costs come on top
            for _, point in curve.points:
                assert point.fleet is not None
                prediction = predict(curve.problem.job, point.fleet, curve.problem.gpu_facts)
                assert prediction.cost_usd is not None

                assert point.cost_usd == pytest.approx(prediction.cost_usd.mid, rel=1e-6)
                assert point.duration_s == pytest.approx(prediction.duration_s.mid, rel=1e-6)


def test_there_is_no_curve_without_a_fleet() -> None:
    drawn = draw(Strategy.ALLREDUCE, SEEDS[0])
    goal = replace(drawn.problem.job.goal, deadline_s=1e-3)
    hopeless = replace(drawn.problem, job=replace(drawn.problem.job, goal=goal))

    assert frontier(hopeless, gap_fraction=GAP_FRACTION, watch=Watch()) == []


@all_strategies
@pytest.mark.parametrize("questions", [0, 1, 10, 100])
def test_the_bounds_hold_when_the_search_is_ended_early(strategy: Strategy, questions: int) -> None:
    curve = curves(strategy)[0]
    watch = Watch(stopped=BoxCount(questions).stopped)

    for deadline_s, point in frontier(curve.problem, gap_fraction=GAP_FRACTION, watch=watch):
        assert point.lower_bound <= curve.cheapest_usd(deadline_s) * (1 + ROUNDING)
        assert point.duration_s <= deadline_s * (1 + ROUNDING)
