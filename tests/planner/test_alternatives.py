"""Fleets of another kind: they are of that kind, keep the job, and beat the plan in nothing."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from spotwright.domain.fleet import Fleet
from spotwright.domain.offer import Market
from spotwright.domain.plan import Objective
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.predict import predict
from spotwright.planner.alternatives import Variant, alternatives
from spotwright.planner.confidence import solve_surely
from spotwright.planner.problem import Problem, Solution, Watch
from spotwright.usecases.broken_limits import broken_limits
from tests.planner.oracle import switching_usd
from tests.planner.random_problems import draw

STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]
SEEDS = range(62_000, 62_030)
GAP_FRACTION = 1e-3
ROUNDING = 1e-9

all_strategies = pytest.mark.parametrize("strategy", STRATEGIES)


class Compared:
    """A problem, its plan and the alternatives to it."""

    def __init__(self, seed: int, problem: Problem, objective: Objective, plan: Solution) -> None:
        assert plan.fleet is not None
        self.seed, self.problem, self.objective = seed, problem, objective
        self.plan, self.fleet = plan, plan.fleet
        self.others = alternatives(
            problem,
            plan.fleet,
            problem_of=lambda job: replace(problem, job=job),
            objective=objective,
            watch=Watch(),
        )


@cache
def compared(strategy: Strategy) -> list[Compared]:
    found = []
    for seed in SEEDS:
        drawn = draw(strategy, seed)
        plan = solve_surely(drawn.problem, objective=drawn.objective).solution
        if plan.fleet is not None:
            found.append(Compared(seed, drawn.problem, drawn.objective, plan))
    return found


def others(strategy: Strategy) -> Iterator[tuple[Compared, Variant, Fleet]]:
    for case in compared(strategy):
        for other in case.others:
            assert other.solution.fleet is not None
            yield case, other, other.solution.fleet


def worker_count(fleet: Fleet) -> int:
    return sum(group.node_count for group in fleet.workers)


def is_of_its_kind(label: str, fleet: Fleet, plan: Fleet) -> bool:
    types = {group.instance_type.name for group in fleet.workers}
    if label.startswith("without "):
        return label.removeprefix("without ") not in types
    kinds = {
        "all on-demand": all(group.market is Market.ON_DEMAND for group in fleet.nodes),
        "all spot": all(group.market is Market.SPOT for group in fleet.workers),
        "single type": len(types) == 1,
        "single zone": len({group.offer.zone for group in fleet.nodes if group.offer}) == 1,
        "fewer nodes": worker_count(fleet) <= max(1, worker_count(plan) // 2),
    }
    return kinds[label]


@all_strategies
def test_alternatives_are_of_the_kind_they_are_called(strategy: Strategy) -> None:
    for case, other, fleet in others(strategy):
        assert is_of_its_kind(other.label, fleet, case.fleet), (case.seed, other.label)


@all_strategies
def test_alternatives_keep_the_goal_and_every_limit(strategy: Strategy) -> None:
    for case, other, fleet in others(strategy):
        job = case.problem.job
        prediction = predict(job, fleet, case.problem.gpu_facts)
        notes = broken_limits(job, prediction)

        wrong = [note for note in notes if not note.startswith("counting the model's own error")]
        assert wrong == [], (case.seed, other.label)


@all_strategies
def test_alternatives_cost_and_take_what_is_predicted(strategy: Strategy) -> None:
    for case, other, fleet in others(strategy):
        prediction = predict(case.problem.job, fleet, case.problem.gpu_facts)
        assert prediction.cost_usd is not None
        cost_usd = prediction.cost_usd.mid + switching_usd(case.problem, fleet)

        assert other.solution.cost_usd == pytest.approx(cost_usd, rel=1e-6), case.seed
        assert other.solution.duration_s == pytest.approx(prediction.duration_s.mid, rel=1e-6)


@all_strategies
def test_no_alternative_is_better_than_the_plan(strategy: Strategy) -> None:
    for case, other, _ in others(strategy):
        value = other.solution.value(case.objective)

        best = case.plan.value(case.objective)
        assert value >= best * (1 - GAP_FRACTION) * (1 - ROUNDING), (case.seed, other.label)


@all_strategies
def test_alternatives_come_best_first_and_none_twice(strategy: Strategy) -> None:
    for case in compared(strategy):
        values = [other.solution.value(case.objective) for other in case.others]
        labels = [other.label for other in case.others]
        fleets = [str(case.plan.fleet), *(str(other.solution.fleet) for other in case.others)]

        assert values == sorted(values), case.seed
        assert len({*labels}) == len(labels), case.seed
        assert len({*fleets}) == len(fleets), case.seed


def test_every_kind_comes_up_among_the_problems_drawn() -> None:
    labels = {other.label for s in STRATEGIES for _, other, _ in others(s)}

    kinds = {"all on-demand", "all spot", "single type", "single zone", "fewer nodes"}
    assert labels >= kinds
    assert any(label.startswith("without ") for label in labels)
