"""The search against every fleet there is, on problems drawn at random."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from spotwright.domain.fleet import Fleet
from spotwright.domain.plan import Objective
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.predict import predict
from spotwright.planner.problem import Solution, Watch
from spotwright.planner.solve import solve
from spotwright.usecases.broken_limits import broken_limits
from tests.planner.box_count import BoxCount
from tests.planner.oracle import Best, switching_usd
from tests.planner.random_problems import Drawn, draw

GAP_FRACTION = 1e-3
MOST_BOXES = 2_000  # most of these problems take fewer than a hundred
PER_CHUNK = 50
STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]
OFTEN, SOAK = range(0, 500, PER_CHUNK), range(500, 10_000, PER_CHUNK)


def solved(drawn: Drawn) -> Solution:
    watch = Watch(stopped=BoxCount(MOST_BOXES).stopped)
    return solve(drawn.problem, objective=drawn.objective, gap_fraction=GAP_FRACTION, watch=watch)


def what_is_wrong(drawn: Drawn) -> Iterator[str]:
    goal, objective, found = drawn.problem.job.goal, drawn.objective, solved(drawn)
    best = drawn.fleets.best(objective, deadline_s=goal.deadline_s, budget_usd=goal.budget_usd)
    if not found.complete:
        yield f"gave up after {found.box_count} boxes"
    elif found.fleet is None or best is None:
        if best is not None:
            yield f"says there is no fleet, but {said(best.fleet)} is one"
        if found.fleet is not None:
            yield f"there is no fleet, but it found {said(found.fleet)}"
    else:
        yield from _optimality(objective, found, best)
        yield from _consistency(drawn, found)


def _optimality(objective: Objective, found: Solution, best: Best) -> Iterator[str]:
    value = found.cost_usd if objective is Objective.COST else found.duration_s
    optimum = best.value(objective)
    if not optimum * (1 - 1e-9) <= value <= optimum * (1 + GAP_FRACTION) * (1 + 1e-9):
        yield f"{objective} {value:.9g}, but the optimum is {optimum:.9g}: {said(best.fleet)}"
    if found.lower_bound > optimum * (1 + 1e-9):
        yield f"bound {found.lower_bound:.9g} above the optimum {optimum:.9g}: {said(best.fleet)}"


def _consistency(drawn: Drawn, found: Solution) -> Iterator[str]:
    """Compare with the prediction for that fleet, and with its limits."""
    problem, fleet = drawn.problem, found.fleet
    assert fleet is not None
    goal = replace(problem.job.goal, deadline_s=None, budget_usd=None)  # the oracle looks at those
    job = replace(problem.job, goal=goal)
    prediction = predict(job, fleet, problem.gpu_facts)
    assert prediction.cost_usd is not None
    cost_usd = prediction.cost_usd.mid + switching_usd(problem, fleet)
    if found.cost_usd != pytest.approx(cost_usd, rel=1e-6):
        yield f"costs {found.cost_usd}, predicted {cost_usd}"
    if found.duration_s != pytest.approx(prediction.duration_s.mid, rel=1e-6):
        yield f"takes {found.duration_s}, predicted {prediction.duration_s.mid}"
    yield from broken_limits(job, prediction)


def said(fleet: Fleet) -> str:
    return " + ".join(f"{g.role} {g.node_count} x {g.offer and g.offer.pool}" for g in fleet.nodes)


def failures(strategy: Strategy, first: int) -> str:
    seeds = range(first, first + PER_CHUNK)
    return "\n".join(
        f"{strategy} {seed}: {text}"
        for seed in seeds
        for text in what_is_wrong(draw(strategy, seed))
    )


@pytest.mark.parametrize("first", OFTEN)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_fleet_beats_the_one_found(strategy: Strategy, first: int) -> None:
    assert failures(strategy, first) == ""


@pytest.mark.soak
@pytest.mark.parametrize("first", SOAK)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_fleet_beats_the_one_found_in_many_problems(strategy: Strategy, first: int) -> None:
    assert failures(strategy, first) == ""
