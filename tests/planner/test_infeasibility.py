"""What would make impossible jobs possible: the change helps, a little less does not.

The oracle is exhaustive search over the fleets of the changed job.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

import pytest

from spotwright.domain.job import Goal, JobSpec
from spotwright.domain.offer import Market
from spotwright.domain.plan import Objective, SmallestChange
from spotwright.domain.workload import Strategy
from spotwright.planner.infeasibility import Infeasibility, explain_infeasible
from spotwright.planner.knobs import knobs, turned
from spotwright.planner.problem import Problem, Watch
from tests.planner.dice import Dice
from tests.planner.oracle import Best, EveryFleet
from tests.planner.random_problems import QUOTA_CLASSES, random_problem

STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]
SEEDS = range(64_000, 64_008)

all_strategies = pytest.mark.parametrize("strategy", STRATEGIES)

Spoil = Callable[[JobSpec, Best, Best], JobSpec]  # by the fastest and the cheapest fleet


@dataclass(frozen=True, slots=True)
class Case:
    """An impossible job, and what is said of it."""

    name: str
    problem: Problem
    told: Infeasibility

    @property
    def job(self) -> JobSpec:
        return self.problem.job


def with_goal(job: JobSpec, **goal: float) -> JobSpec:
    return replace(job, goal=replace(job.goal, **goal))  # type: ignore[arg-type]


def too_late(job: JobSpec, fastest: Best, cheapest: Best) -> JobSpec:
    return with_goal(job, deadline_s=0.6 * fastest.duration_s)


def too_dear(job: JobSpec, fastest: Best, cheapest: Best) -> JobSpec:
    return with_goal(job, budget_usd=0.95 * cheapest.cost_usd)


def both(job: JobSpec, fastest: Best, cheapest: Best) -> JobSpec:
    return too_dear(too_late(job, fastest, cheapest), fastest, cheapest)


def no_vcpus(job: JobSpec, fastest: Best, cheapest: Best) -> JobSpec:
    quotas = {(name, market): 0 for name in QUOTA_CLASSES for market in Market}
    late = with_goal(job, deadline_s=1.5 * fastest.duration_s)
    return replace(late, limits=replace(job.limits, max_vcpus=quotas))


def no_counts(job: JobSpec, fastest: Best, cheapest: Best) -> JobSpec:
    used = (*fastest.fleet.workers, *cheapest.fleet.workers)
    names = {group.instance_type.name for group in used}
    most = {**job.limits.max_count_by_type, **dict.fromkeys(names, 0)}
    in_time = with_goal(job, deadline_s=1.01 * fastest.duration_s)
    return replace(in_time, limits=replace(job.limits, max_count_by_type=most))


def few_nodes(job: JobSpec, fastest: Best, cheapest: Best) -> JobSpec:
    in_time = with_goal(job, deadline_s=1.01 * fastest.duration_s)
    return replace(in_time, limits=replace(job.limits, max_nodes=1))


def low_rent(job: JobSpec, fastest: Best, cheapest: Best) -> JobSpec:
    in_time = with_goal(job, deadline_s=1.01 * fastest.duration_s)
    most = dict.fromkeys(Market, 0.1 * (fastest.fleet.usd_per_hour or 0.0))
    return replace(in_time, limits=replace(job.limits, max_usd_per_hour=most))


SPOILS: Sequence[Spoil] = (too_late, too_dear, both, no_vcpus, no_counts, few_nodes, low_rent)


@cache
def cases(strategy: Strategy) -> list[Case]:
    return [case for seed in SEEDS for case in spoilt(strategy, seed)]


def spoilt(strategy: Strategy, seed: int) -> Iterator[Case]:
    problem = small_problem(strategy, seed)
    fleets = EveryFleet(problem)
    fastest, cheapest = fleets.best(Objective.TIME), fleets.best(Objective.COST)
    if fastest is None or cheapest is None:
        return
    for spoil in SPOILS:
        worse = replace(problem, job=spoil(problem.job, fastest, cheapest))
        if not is_possible(worse):
            told = explain_infeasible(worse.job, problem_of(worse), Watch())
            yield Case(f"{spoil.__name__} {seed}", worse, told)


def small_problem(strategy: Strategy, seed: int) -> Problem:
    """Return a problem without goals that stays small when it is loosened."""
    dice, problem = Dice(seed, 5), random_problem(strategy, seed)
    goal = Goal(target=problem.job.goal.target, confidence_fraction=0.0)
    limits = replace(problem.job.limits, max_count_per_pool=dice.whole(1, 3), min_count_by_pool={})
    job = replace(problem.job, goal=goal, limits=limits)
    return replace(problem, worker_offers=problem.worker_offers[:5], job=job)


def problem_of(problem: Problem) -> Callable[[JobSpec], Problem]:
    return lambda job: replace(problem, job=job)


def is_possible(problem: Problem, changes: Mapping[str, float] | None = None) -> bool:
    """Tell whether any fleet keeps the goals once some figures are changed."""
    job = turned(problem.job, changes or {})
    goal = job.goal
    found = EveryFleet(replace(problem, job=job)).best(
        Objective.COST, deadline_s=goal.deadline_s, budget_usd=goal.budget_usd
    )
    return found is not None


def needed(changes: Sequence[SmallestChange]) -> dict[str, float]:
    return {change.limit: change.needed for change in changes}


def a_little_less(job: JobSpec, change: SmallestChange) -> float:
    """Return one less of what is counted, 1 % less of a change that is not."""
    if {knob.limit: knob.whole for knob in knobs(job)}[change.limit]:
        return change.needed - 1
    return change.now + 0.99 * (change.needed - change.now)


@all_strategies
def test_each_change_helps_by_itself(strategy: Strategy) -> None:
    for case in cases(strategy):
        for change in case.told.changes:
            assert is_possible(case.problem, needed([change])), (case.name, change)


@all_strategies
def test_a_little_less_of_a_change_does_not_help(strategy: Strategy) -> None:
    for case in cases(strategy):
        for change in case.told.changes:
            if change.proved:
                less = {change.limit: a_little_less(case.job, change)}
                assert not is_possible(case.problem, less), (case.name, change)


@all_strategies
def test_what_helps_together_helps_and_nothing_does_so_alone(strategy: Strategy) -> None:
    for case in cases(strategy):
        if case.told.together:
            assert case.told.changes == ()
            assert len(case.told.together) > 1
            assert is_possible(case.problem, needed(case.told.together)), case.name


@all_strategies
def test_deadline_and_budget_are_loosened_by_one_factor_and_a_little_less_does_not_help(
    strategy: Strategy,
) -> None:
    for case in cases(strategy):
        pair = case.told.together
        if [change.limit for change in pair] == ["goal.deadline", "goal.budget"]:
            assert pair[0].needed / pair[0].now == pytest.approx(pair[1].needed / pair[1].now)
            less = {change.limit: a_little_less(case.job, change) for change in pair}
            assert not is_possible(case.problem, less), case.name


@all_strategies
def test_of_other_limits_none_can_be_a_little_tighter(strategy: Strategy) -> None:
    for case in cases(strategy):
        several = case.told.together
        for change in several if "goal.deadline" not in needed(several) else ():
            if change.proved:
                less = {change.limit: a_little_less(case.job, change)}
                assert not is_possible(case.problem, needed(several) | less), (case.name, change)


@all_strategies
def test_whatever_was_spoilt_there_is_a_way_out(strategy: Strategy) -> None:
    for case in cases(strategy):
        assert case.told.changes or case.told.together, case.name
        assert case.told.clashes, case.name


def test_every_way_out_comes_up_among_the_problems_drawn() -> None:
    told = [case.told for strategy in STRATEGIES for case in cases(strategy)]

    alone = {change.limit.split(".")[1] for found in told for change in found.changes}
    assert alone >= {
        "deadline",
        "budget",
        "max_vcpus",
        "max_count",
        "max_nodes",
        "max_usd_per_hour",
    }
    together = [tuple(change.limit for change in found.together) for found in told]
    assert ("goal.deadline", "goal.budget") in together
    assert any("goal.deadline" not in limits for limits in together if limits)
    changes = chain.from_iterable((*found.changes, *found.together) for found in told)
    assert all(change.proved for change in changes)
