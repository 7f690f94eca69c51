"""What must hold between the answers to two problems that differ in one respect."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from spotwright.domain.fleet import Fleet
from spotwright.domain.job import Limits, Placement
from spotwright.domain.offer import Offer
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.predict import predict
from spotwright.planner.problem import Problem, Solution, Watch
from spotwright.planner.solve import solve
from tests.planner.box_count import BoxCount
from tests.planner.dice import Dice
from tests.planner.random_problems import Drawn, draw

GAP_FRACTION = 1e-5
MOST_BOXES = 2_000
ROUNDING = 1e-9
SEEDS = range(20_000, 20_040)
STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]

all_strategies = pytest.mark.parametrize("strategy", STRATEGIES)


def solved(problem: Problem, objective: Objective = Objective.COST) -> Solution:
    watch = Watch(stopped=BoxCount(MOST_BOXES).stopped)
    found = solve(problem, objective=objective, gap_fraction=GAP_FRACTION, watch=watch)
    assert found.complete
    return found


def drawn(strategy: Strategy) -> Iterator[Drawn]:
    return (draw(strategy, seed) for seed in SEEDS)


def with_limits(problem: Problem, limits: Limits) -> Problem:
    return replace(problem, job=replace(problem.job, limits=limits))


def with_goal(problem: Problem, **changes: float | None) -> Problem:
    goal = replace(problem.job.goal, **changes)  # type: ignore[arg-type]
    return replace(problem, job=replace(problem.job, goal=goal))


def loosened(limits: Limits) -> Limits:
    """Allow one more of everything."""
    per_pool, pools = limits.max_count_per_pool, limits.max_pools
    return replace(
        limits,
        max_nodes=limits.max_nodes + 1,
        max_vcpus={key: most + 8 for key, most in limits.max_vcpus.items()},
        max_count_by_type={name: most + 1 for name, most in limits.max_count_by_type.items()},
        max_count_per_pool=None if per_pool is None else per_pool + 1,
        max_pools=None if pools is None else pools + 1,
        max_usd_per_hour={market: 1.3 * usd for market, usd in limits.max_usd_per_hour.items()},
    )


@all_strategies
def test_more_quota_never_costs_more(strategy: Strategy) -> None:
    for case in drawn(strategy):
        before = solved(case.problem)
        after = solved(with_limits(case.problem, loosened(case.problem.job.limits)))

        assert after.cost_usd <= before.cost_usd * (1 + GAP_FRACTION) * (1 + ROUNDING), case.seed


@all_strategies
def test_a_later_deadline_never_costs_more(strategy: Strategy) -> None:
    for case in drawn(strategy):
        deadline_s = case.problem.job.goal.deadline_s
        costs = [
            solved(with_goal(case.problem, deadline_s=deadline_s * later)).cost_usd
            for later in (1.0, 1.1, 1.5, 4.0)
            if deadline_s
        ]

        for before, after in pairwise(costs):
            assert after <= before * (1 + GAP_FRACTION) * (1 + ROUNDING), case.seed


@all_strategies
@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_the_cost_scales_with_all_prices(strategy: Strategy, factor: float) -> None:
    for case in drawn(strategy):
        # in one zone there is no traffic, whose price is not the market's
        limits = replace(case.problem.job.limits, placement=Placement.ONE_ZONE)
        problem = with_goal(with_limits(case.problem, limits), deadline_s=None)

        before, after = solved(problem), solved(repriced(problem, factor))

        assert after.cost_usd == pytest.approx(factor * before.cost_usd, rel=1.1 * GAP_FRACTION)


def repriced(problem: Problem, factor: float) -> Problem:
    limits, budget_usd = problem.job.limits, problem.job.goal.budget_usd
    usd_per_hour = {market: factor * usd for market, usd in limits.max_usd_per_hour.items()}
    dearer = with_limits(problem, replace(limits, max_usd_per_hour=usd_per_hour))
    return replace(
        with_goal(dearer, budget_usd=factor * budget_usd if budget_usd else None),
        worker_offers=[dearer_by(factor, offer) for offer in problem.worker_offers],
        server_offers=[dearer_by(factor, offer) for offer in problem.server_offers],
    )


def dearer_by(factor: float, offer: Offer) -> Offer:
    return replace(offer, price_usd_per_hour=factor * offer.price_usd_per_hour)


@all_strategies
def test_the_order_of_offers_does_not_matter(strategy: Strategy) -> None:
    for case in drawn(strategy):
        shuffle = np.random.default_rng(case.seed).permutation
        problem = case.problem
        mixed = replace(
            problem,
            worker_offers=[problem.worker_offers[i] for i in shuffle(len(problem.worker_offers))],
            server_offers=[problem.server_offers[i] for i in shuffle(len(problem.server_offers))],
        )

        assert solved(mixed, case.objective) == solved(problem, case.objective), case.seed


@all_strategies
def test_the_same_problem_has_the_same_answer(strategy: Strategy) -> None:
    for case in drawn(strategy):
        again = draw(strategy, case.seed)

        assert solved(again.problem, case.objective) == solved(case.problem, case.objective)


@all_strategies
def test_no_plan_is_worse_than_staying(strategy: Strategy) -> None:
    """Rent the best fleet, let its prices rise, and plan again."""
    for case in drawn(strategy):
        first = solved(replace(case.problem, running=RunningFleet())).fleet
        if first is None:
            continue
        rise = Dice(case.seed).between(1, 3)
        problem = while_running(with_goal(case.problem, budget_usd=None), first, rise)
        problem = with_limits(problem, replace(problem.job.limits, max_usd_per_hour={}))

        found, staying = solved(problem), at_new_prices(problem, first)

        prediction = predict(problem.job, staying, problem.gpu_facts)
        assert prediction.cost_usd is not None
        most = prediction.cost_usd.mid * (1 + GAP_FRACTION) * (1 + ROUNDING)
        assert found.cost_usd <= most, case.seed


def while_running(problem: Problem, fleet: Fleet, rise: float) -> Problem:
    nodes = {g.offer.pool: g.node_count for g in fleet.workers if g.offer}
    offers = [dearer_by(rise if o.pool in nodes else 1, o) for o in problem.worker_offers]
    running = RunningFleet(nodes=nodes, switching_s=problem.running.switching_s)
    return replace(problem, worker_offers=offers, running=running)


def at_new_prices(problem: Problem, fleet: Fleet) -> Fleet:
    offers = {offer.pool: offer for offer in problem.worker_offers}
    workers = [replace(g, offer=offers[g.offer.pool]) for g in fleet.workers if g.offer]
    return Fleet(nodes=(*workers, *fleet.servers))
