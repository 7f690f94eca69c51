"""Oracles: `predict` asked about fleet after fleet, and whole grids without bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from spotwright.domain.fleet import Fleet, FunctionGroup, NodeGroup, Role
from spotwright.domain.job import Goal, JobSpec, Limits, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Objective
from spotwright.domain.prediction import Prediction
from spotwright.domain.workload import (
    Dataset,
    ModelSize,
    ParameterServing,
    ServerlessLaw,
    Strategy,
    Workload,
)
from spotwright.perfmodel.predict import predict
from spotwright.planner.problem import Problem, Solution, Watch
from spotwright.planner.serverless import (
    FunctionContext,
    FunctionGrid,
    search_functions,
    solve_serverless,
)
from tests.perfmodel.example_clusters import gpu_facts, host

LAW = ServerlessLaw(
    samples_per_s_per_mb=0.03,
    samples_per_s_offset=5.6,
    storage_mbps_per_mb=0.017824,
    storage_mbps_offset=128.96,
    batch_per_function_count=64,
    max_global_batch_count=512,
)
LAWS = {
    "published": LAW,
    "fitted": replace(
        LAW, samples_per_s_per_mb=None, s_per_sample=0.004, mb_s_per_sample=25.0, resume_s=60.0
    ),
    "no speed below 1200 MB": replace(LAW, samples_per_s_offset=-36.0),
    "memory slows loading": replace(LAW, storage_mbps_per_mb=-0.01, storage_mbps_offset=920.0),
}
COARSE_MB = np.arange(1280.0, 10_241.0, 1280.0)
FEW = np.array([1.0, 3.0, 8.0, 11.0])


def server(name: str = "m.small", *, usd: float = 0.1, taken: float | None = None) -> Offer:
    mbps = {"m.small": 4_000.0, "m.large": 20_000.0}[name]
    return Offer(
        instance_type=host(name, None, network_baseline_mbps=mbps, quota_class="standard"),
        region="r1",
        zone="z1",
        market=Market.ON_DEMAND if taken is None else Market.SPOT,
        price_usd_per_hour=usd,
        interruption_fraction=taken,
    )


SERVERS = [server(), server(usd=0.03, taken=0.3), server("m.large", usd=0.5)]


def problem(
    law: ServerlessLaw = LAW,
    servers: Sequence[Offer] = SERVERS,
    *,
    deadline_s: float | None = None,
    budget_usd: float | None = None,
    limits: Limits | None = None,
) -> Problem:
    """Return ten epochs of MobileNet on CIFAR-10, as in lambdaDNN's paper."""
    work = Workload(
        strategy=Strategy.SERVERLESS,
        model=ModelSize(parameter_bytes=18e6),
        serverless=law,
        dataset=Dataset(sample_count=50_000, size_bytes=148e6),
        parameter_serving=ParameterServing(largest_shard_fraction=0.5),
    )
    target = Target(kind=TargetKind.EPOCHS, value=10)
    goal = Goal(target=target, deadline_s=deadline_s, budget_usd=budget_usd)
    limits = limits or Limits(max_nodes=11, max_parameter_servers=2)
    job = JobSpec(name="example", workload=work, goal=goal, limits=limits)
    return Problem(job=job, worker_offers=(), server_offers=servers, gpu_facts=gpu_facts)


def fleet(offer: Offer, servers: int, memory_mb: float, functions: float) -> Fleet:
    group = NodeGroup(
        role=Role.PS,
        instance_type=offer.instance_type,
        node_count=servers,
        gpus_per_node=0.0,
        offer=offer,
    )
    size = FunctionGroup(memory_mb=round(memory_mb), function_count=round(functions))
    return Fleet(nodes=(group,), functions=size)


def coarse_predictions(asked: Problem) -> list[Prediction]:
    """Predict every fleet of a coarse grid at which functions have a speed."""
    law = asked.job.workload.serverless
    assert law is not None
    known = [m for m in COARSE_MB if law.mb_s_per_sample or 0.03 * m + law.samples_per_s_offset > 0]
    return [
        predict(asked.job, fleet(offer, servers, memory_mb, functions), asked.gpu_facts)
        for offer, servers, memory_mb, functions in product(
            asked.server_offers, (1, 2), known, FEW.tolist()
        )
    ]


def best_of(
    predictions: Sequence[Prediction], asked: Problem, objective: Objective
) -> tuple[float, float] | None:
    """Return what is minimised and the other measure of the best fleet that keeps both goals."""
    goal, ranks = asked.job.goal, []
    for found in predictions:
        assert found.cost_usd is not None
        seconds, dollars = found.duration_s.mid, found.cost_usd.mid
        if seconds <= (goal.deadline_s or math.inf) and dollars <= (goal.budget_usd or math.inf):
            ranks.append((dollars, seconds) if objective is Objective.COST else (seconds, dollars))
    return min(ranks, default=None)


def coarse_search(asked: Problem, objective: Objective) -> Solution:
    law = asked.job.workload.serverless
    assert law is not None
    groups = [fleet(o, n, 128, 1).servers[0] for o in asked.server_offers for n in (1, 2)]
    contexts = [FunctionContext(asked.job, group, objective=objective) for group in groups]
    return search_functions(contexts, FunctionGrid(law, COARSE_MB, FEW), watch=Watch())


@pytest.mark.parametrize("objective", [Objective.COST, Objective.TIME])
@pytest.mark.parametrize("name", LAWS)
def test_the_best_of_a_coarse_grid_is_that_of_a_loop_over_predictions(
    name: str, objective: Objective
) -> None:
    free = problem(LAWS[name])
    predictions = coarse_predictions(free)
    seconds = sorted(found.duration_s.mid for found in predictions)
    dollars = sorted(found.cost_usd.mid for found in predictions if found.cost_usd)
    for deadline_s, budget_usd in product(
        (None, seconds[0] / 2, seconds[3], seconds[60]), (None, dollars[2], dollars[60])
    ):
        asked = problem(LAWS[name], deadline_s=deadline_s, budget_usd=budget_usd)
        expected = best_of(predictions, asked, objective)

        found = coarse_search(asked, objective)

        rank = (found.cost_usd, found.duration_s)
        rank = rank if objective is Objective.COST else rank[::-1]
        assert rank == pytest.approx(expected or (math.inf, math.inf), rel=1e-12)
        assert (found.lower_bound, found.complete) == (rank[0], True)


@pytest.mark.parametrize("objective", [Objective.COST, Objective.TIME])
@pytest.mark.parametrize("deadline_s", [None, 4000.0, 1500.0, 1240.0])
@pytest.mark.parametrize("name", LAWS)
def test_no_fleet_of_the_whole_grid_is_better_than_the_plan(
    name: str, deadline_s: float | None, objective: Objective
) -> None:
    asked = problem(LAWS[name], deadline_s=deadline_s)
    slope, offset = LAWS[name].samples_per_s_per_mb, LAWS[name].samples_per_s_offset
    sizes = np.arange(128.0, 10_241.0)
    sizes = sizes if slope is None else sizes[slope * sizes + offset > 0]
    memory_mb, functions = np.tile(sizes, 11), np.repeat(np.arange(1.0, 12.0), len(sizes))
    groups = [fleet(offer, n, 128, 1).servers[0] for offer, n in product(SERVERS, (1, 2))]
    contexts = [FunctionContext(asked.job, group, objective=objective) for group in groups]
    best = min(context.values(memory_mb, functions).objective.min() for context in contexts)

    found = solve_serverless(asked, objective=objective)

    assert (found.cost_usd if objective is Objective.COST else found.duration_s) == best
    assert found.complete


@pytest.mark.parametrize("objective", [Objective.COST, Objective.TIME])
def test_a_plan_has_the_figures_of_its_prediction(objective: Objective) -> None:
    asked = problem(deadline_s=2000.0)

    found = solve_serverless(asked, objective=objective)

    assert found.fleet is not None
    predicted = predict(asked.job, found.fleet, asked.gpu_facts)
    assert predicted.cost_usd is not None
    assert (found.cost_usd, found.duration_s) == (predicted.cost_usd.mid, predicted.duration_s.mid)
    assert found.duration_s <= 2000


def test_a_goal_out_of_reach_is_proved_to_be() -> None:
    found = solve_serverless(problem(deadline_s=10.0))

    assert (found.fleet, found.complete) == (None, True)
    assert (found.lower_bound, found.cost_usd, found.duration_s) == (math.inf,) * 3


def test_of_equally_fast_functions_the_smallest_are_rented() -> None:
    law = replace(LAWS["fitted"], mb_s_per_sample=0.0, storage_mbps_per_mb=0.0)

    found = solve_serverless(problem(law), objective=Objective.TIME)

    assert found.fleet is not None
    assert found.fleet.functions is not None
    assert found.fleet.functions.memory_mb == 128


@pytest.mark.parametrize(
    "limits",
    [
        Limits(max_nodes=11, max_vcpus={("standard", Market.ON_DEMAND): 8}),
        Limits(max_nodes=11, max_usd_per_hour={Market.ON_DEMAND: 0.6}),
        Limits(max_nodes=11, max_parameter_servers=1),
    ],
)
def test_servers_keep_the_limits(limits: Limits) -> None:
    slow = [server(usd=0.5)]
    free = problem(servers=slow, limits=Limits(max_nodes=11))
    assert server_count(solve_serverless(free, objective=Objective.TIME)) > 1

    limited = problem(servers=slow, limits=limits)

    assert server_count(solve_serverless(limited, objective=Objective.TIME)) == 1


def server_count(found: Solution) -> int:
    assert found.fleet is not None
    return found.fleet.servers[0].node_count


def test_without_servers_there_is_no_fleet() -> None:
    assert solve_serverless(problem(servers=())).fleet is None


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_search_that_is_stopped_proves_nothing(calls: int) -> None:
    found = solve_serverless(problem(), watch=Watch(stopped=after(calls)))

    assert (found.complete, found.lower_bound, found.box_count) == (False, 0.0, calls)
    assert (found.fleet is None) == (calls == 0)


def after(calls: int) -> Callable[[], bool]:
    answers = iter([False] * calls)
    return lambda: next(answers, True)
