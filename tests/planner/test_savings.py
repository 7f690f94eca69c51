"""What looser limits would save, against every fleet of the job with that limit loosened."""

import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.job import Goal, JobSpec
from spotwright.domain.plan import Objective, Saving
from spotwright.domain.units import parse_duration_s
from spotwright.domain.workload import Strategy
from spotwright.planner.confidence import solve_surely
from spotwright.planner.knobs import Knob, knobs
from spotwright.planner.problem import Problem, Solution, Watch
from spotwright.planner.savings import savings, uses
from spotwright.usecases.list_offers import worker_offers
from tests.planner.dice import Dice
from tests.planner.oracle import EveryFleet
from tests.planner.random_problems import random_problem
from tests.usecases.example_job import catalog

STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]
SEEDS = range(61_000, 61_024)
GAP_FRACTION = 1e-3
WORTH_TELLING = 0.002  # of the cost
RESNET = Path(__file__).parents[2] / "examples/resnet50.yaml"

all_strategies = pytest.mark.parametrize("strategy", STRATEGIES)


@dataclass(frozen=True, slots=True)
class Case:
    seed: int
    problem: Problem
    plan: Solution
    told: list[Saving]


@cache
def cases(strategy: Strategy) -> list[Case]:
    drawn = ((seed, drawn_problem(strategy, seed)) for seed in SEEDS)
    return [planned(seed, problem) for seed, problem in drawn if problem is not None]


def drawn_problem(strategy: Strategy, seed: int) -> Problem | None:
    """Return a problem that stays small when loosened, its deadline met by some fleets only."""
    dice, problem = Dice(seed, 4), random_problem(strategy, seed)
    job, offers = problem.job, problem.worker_offers[:6]
    per_pool = job.limits.max_count_per_pool or dice.whole(2, 3)
    goal = Goal(target=job.goal.target, confidence_fraction=0.0)
    limits = replace(job.limits, max_count_per_pool=per_pool)
    job = replace(job, goal=goal, limits=limits)
    problem = replace(problem, worker_offers=offers, job=job)
    fastest = EveryFleet(problem).best(Objective.TIME)
    if fastest is None:
        return None
    goal = replace(goal, deadline_s=dice.pick((1.05, 1.5)) * fastest.duration_s)
    return replace(problem, job=replace(job, goal=goal))


def planned(seed: int, problem: Problem) -> Case:
    plan = solve_surely(problem, gap_fraction=GAP_FRACTION).solution
    return Case(seed, problem, plan, told(problem, plan))


def told(problem: Problem, plan: Solution) -> list[Saving]:
    """Return the savings as `create_plan` asks for them."""
    assert plan.fleet is not None
    used = uses(problem.job, plan.fleet, cost_usd=plan.cost_usd, duration_s=plan.duration_s)
    return savings(
        lambda job: replace(problem, job=job),
        [use for use in used if use.may_bind],
        fleet=plan.fleet,
        cost_usd=plan.cost_usd,
        watch=Watch(),
    )


def a_quarter_looser(knob: Knob) -> JobSpec:
    value = knob.now * (0.75 if knob.falls else 1.25)
    return knob.turned(math.ceil(value) if knob.whole else value)


def cheapest_usd(problem: Problem, job: JobSpec) -> float:
    best = EveryFleet(replace(problem, job=job)).best(
        Objective.COST, deadline_s=job.goal.deadline_s, budget_usd=job.goal.budget_usd
    )
    return best.cost_usd if best else math.inf


@all_strategies
def test_each_saving_is_what_the_cheapest_fleet_of_the_loosened_job_saves(
    strategy: Strategy,
) -> None:
    for case in cases(strategy):
        by_limit = {knob.limit: knob for knob in knobs(case.problem.job)}
        for saving in case.told:
            least_usd = cheapest_usd(case.problem, a_quarter_looser(by_limit[saving.limit]))

            saved_usd, doubt_usd = case.plan.cost_usd - least_usd, GAP_FRACTION * least_usd
            assert saving.saves_usd == pytest.approx(saved_usd, abs=doubt_usd), (case.seed, saving)


@all_strategies
def test_where_nothing_is_said_to_bind_a_quarter_more_of_anything_saves_nothing(
    strategy: Strategy,
) -> None:
    for case in cases(strategy):
        for knob in knobs(case.problem.job) if not case.told else ():
            saved_usd = case.plan.cost_usd - cheapest_usd(case.problem, a_quarter_looser(knob))

            most_usd = (WORTH_TELLING + GAP_FRACTION) * case.plan.cost_usd
            assert saved_usd <= most_usd, (case.seed, knob.limit)


@all_strategies
def test_savings_come_largest_first(strategy: Strategy) -> None:
    for case in cases(strategy):
        amounts = [saving.saves_usd for saving in case.told]

        assert amounts == sorted(amounts, reverse=True)


# ----- an example of the bundled catalog


def resnet(*types: str, deadline_s: float | None, max_nodes: int = 1) -> Problem:
    spec = read_job_file(RESNET).spec
    limits = replace(
        spec.limits, instance_types=frozenset(types), max_nodes=max_nodes, max_vcpus={}
    )
    job = replace(spec, goal=replace(spec.goal, deadline_s=deadline_s), limits=limits)
    return Problem(
        job=job,
        worker_offers=worker_offers(job, catalog()),
        server_offers=[],
        gpu_facts=catalog().gpu,
    )


def told_of(problem: Problem) -> list[Saving]:
    return told(problem, solve_surely(problem).solution)


def test_a_deadline_that_asks_for_a_dearer_type_saves_its_price_when_it_is_later() -> None:
    types = ("g4dn.xlarge", "g5.xlarge")
    slow = solve_surely(resnet(*types, deadline_s=None)).solution
    deadline_s = 0.9 * slow.duration_s
    hasty = resnet(*types, deadline_s=deadline_s)

    (saving,) = (found for found in told_of(hasty) if found.limit == "goal.deadline")

    later_s = deadline_s + parse_duration_s(saving.change.removesuffix(" more"))
    assert later_s == pytest.approx(1.25 * deadline_s, rel=0.01)
    now = solve_surely(hasty).solution
    assert saving.saves_usd == pytest.approx(now.cost_usd - slow.cost_usd)


def test_a_deadline_binds_where_two_nodes_are_rented_because_one_is_a_little_late() -> None:
    slow = solve_surely(resnet("g4dn.xlarge", deadline_s=None)).solution

    found = told_of(resnet("g4dn.xlarge", deadline_s=0.9 * slow.duration_s, max_nodes=2))

    assert "goal.deadline" in [saving.limit for saving in found]


def test_nothing_binds_where_one_node_of_the_cheapest_is_best() -> None:
    assert told_of(resnet("g4dn.xlarge", deadline_s=1e9, max_nodes=4)) == []
