"""Oracles: `predict` asked about fleet after fleet, Algorithm 1 in plain loops, published plans."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from spotwright.domain.fleet import Fleet, FunctionGroup, NodeGroup, Role
from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Objective
from spotwright.domain.workload import (
    Contention,
    Dataset,
    ModelSize,
    ParameterServing,
    ServerlessLaw,
    SpotdnnLoss,
    Strategy,
    Workload,
)
from spotwright.perfmodel.predict import predict
from spotwright.planner.baselines.cynthia import cynthia
from spotwright.planner.baselines.exhaustive import exhaustive
from spotwright.planner.baselines.homogeneous import homogeneous_fastest, homogeneous_slowest
from spotwright.planner.baselines.lambdadnn import lambdadnn
from spotwright.planner.baselines.on_demand_only import on_demand_only
from spotwright.planner.baselines.result import BaselineResult
from spotwright.planner.baselines.spotdnn import spotdnn
from spotwright.planner.baselines.srifty import srifty
from spotwright.planner.problem import Problem
from spotwright.planner.serverless import solve_serverless
from tests.planner.random_problems import draw
from tests.planner.reference_problem import GOALS, INFEASIBLE, offer, reference_problem
from tests.usecases.example_job import catalog

Rival = Callable[[Problem], BaselineResult]

RIVALS: list[Rival] = [spotdnn, srifty, cynthia, homogeneous_fastest, homogeneous_slowest]
MIXED = [(0.65, 3600.0), (0.6, 5400.0)]  # goals whose best fleets mix types
SMALL = 13  # nodes; the best fleets of the reference problem have at most ten


def limited(problem: Problem, **limits: Any) -> Problem:
    job = problem.job
    return replace(problem, job=replace(job, limits=replace(job.limits, **limits)))


def queueing(problem: Problem) -> Problem:
    """Let workers queue at the servers, so that these matter."""
    work = problem.job.workload
    assert work.parameter_serving is not None
    serving = replace(work.parameter_serving, contention=Contention.QUEUEING, bandwidth_mbps=None)
    return replace(
        problem, job=replace(problem.job, workload=replace(work, parameter_serving=serving))
    )


def group(role: Role, offered: Offer, count: int) -> NodeGroup:
    return NodeGroup(
        role=role,
        instance_type=offered.instance_type,
        node_count=count,
        gpus_per_node=offered.instance_type.gpu_count,
        offer=offered,
    )


def figures(problem: Problem, fleet: Fleet) -> tuple[float, float]:
    """Return what a fleet costs and how long it takes."""
    found = predict(problem.job, fleet, problem.gpu_facts)
    assert found.cost_usd is not None
    return found.cost_usd.mid, found.duration_s.mid


def meets_goal(problem: Problem, found: BaselineResult) -> bool:
    assert found.fleet is not None
    assert problem.job.goal.deadline_s is not None
    return figures(problem, found.fleet)[1] <= problem.job.goal.deadline_s


# ----- every fleet

TWO_ZONES = [
    offer("p3.2xlarge", 1.25, zone="use1-az1"),
    offer("g4dn.4xlarge", 0.36, zone="use1-az2", market=Market.SPOT),
    offer("g3.4xlarge", 0.34, zone="use1-az1", market=Market.SPOT),
]
TWO_SERVERS = [
    offer("m5.xlarge", 0.192, zone="use1-az1"),
    offer("c5n.2xlarge", 0.5, zone="use1-az2"),
]


def small_fleets(most: int) -> Iterator[Fleet]:
    for counts in product(range(most + 1), repeat=3):
        for server, server_count in product(TWO_SERVERS, (1, 2)):
            rented = [
                group(Role.WORKER, o, n) for o, n in zip(TWO_ZONES, counts, strict=True) if n > 0
            ]
            if rented and sum(counts) + server_count <= 5:
                yield Fleet(nodes=(*rented, group(Role.PS, server, server_count)))


def in_one_zone(fleet: Fleet) -> bool:
    return len({node.offer.zone for node in fleet.nodes if node.offer}) == 1


@pytest.mark.parametrize("objective", [Objective.COST, Objective.TIME])
@pytest.mark.parametrize("placement", [Placement.ONE_ZONE, Placement.ONE_REGION])
def test_exhaustive_search_is_a_plain_loop_over_predictions(
    placement: Placement, objective: Objective
) -> None:
    market = replace(
        queueing(reference_problem(0.8, 2400)), worker_offers=TWO_ZONES, server_offers=TWO_SERVERS
    )
    problem = limited(market, max_nodes=5, placement=placement, max_parameter_servers=2)
    found_by_loop = [
        (cost, duration) if objective is Objective.COST else (duration, cost)
        for fleet in small_fleets(4)
        if placement is Placement.ONE_REGION or in_one_zone(fleet)
        for cost, duration in [figures(problem, fleet)]
        if duration <= 2400
    ]

    found = exhaustive(problem, objective=objective)

    rank = (found.cost_usd, found.duration_s)
    assert found.fleet is not None
    assert figures(problem, found.fleet) == pytest.approx(rank)
    rank = rank if objective is Objective.COST else rank[::-1]
    assert rank == pytest.approx(min(found_by_loop))


def test_exhaustive_search_looks_at_each_fleet_once() -> None:
    problem = limited(reference_problem(0.8, 2400, max_nodes=8), max_parameter_servers=2)

    found = exhaustive(problem)

    assert found.fleet_count == math.comb(7 + 7, 7) - 1 + math.comb(6 + 7, 7) - 1


def test_a_market_too_large_to_look_at_is_refused() -> None:
    with pytest.raises(ValueError, match=r"7.79e\+07 fleets are more than 30,000,000"):
        exhaustive(reference_problem(0.8, 2400))


# ----- the reference problem


@pytest.mark.parametrize(("loss", "deadline_s"), GOALS)
def test_no_rival_is_cheaper_than_the_best_of_all_fleets_or_late(
    loss: float, deadline_s: float
) -> None:
    problem = reference_problem(loss, deadline_s, max_nodes=SMALL)
    best = exhaustive(problem)

    for rival in RIVALS:
        found = rival(problem)
        assert found.cost_usd >= best.cost_usd * (1 - 1e-9)
        assert found.fleet is None or meets_goal(problem, found)
    assert (best.fleet is None) == ((loss, deadline_s) == INFEASIBLE)


@pytest.mark.parametrize(("loss", "deadline_s"), MIXED)
def test_the_window_is_dearer_than_the_best_mix(loss: float, deadline_s: float) -> None:
    best = exhaustive(reference_problem(loss, deadline_s, max_nodes=SMALL))

    found = spotdnn(reference_problem(loss, deadline_s))

    assert best.cost_usd * 1.002 < found.cost_usd < best.cost_usd * 1.05


def test_an_infeasible_goal_yields_no_fleet() -> None:
    for rival in (*RIVALS, on_demand_only):
        found = rival(reference_problem(*INFEASIBLE))
        assert (found.fleet, found.cost_usd, found.duration_s) == (None, math.inf, math.inf)


# ----- spotDNN


def algorithm_1(problem: Problem, quota: int) -> float:
    """Follow Algorithm 1 of the paper in plain loops; return the cost of the best window."""
    server = group(Role.PS, problem.server_offers[0], 1)

    def alone(offered: Offer) -> tuple[float, float, float]:
        fleet = Fleet(nodes=(group(Role.WORKER, offered, 1), server))
        found = predict(problem.job, fleet, problem.gpu_facts)
        return found.iteration_s.mid, found.weighted_batch, found.samples_per_s

    law, goal = problem.job.workload.convergence, problem.job.goal
    assert isinstance(law, SpotdnnLoss)
    assert goal.deadline_s is not None
    speeds = {o.pool: alone(o) for o in problem.worker_offers}
    b_min = min(batch for _, batch, _ in speeds.values())
    v_max = max(speed for _, _, speed in speeds.values())
    crowd = (law.c2 * b_min + law.c3) * math.sqrt(law.c4) / (goal.target.value - law.c5)
    n_lower = math.ceil(b_min * (crowd - law.c1) / (v_max * goal.deadline_s))
    instances = [o for o in problem.worker_offers for _ in range(quota)]
    instances.sort(key=lambda o: -speeds[o.pool][0])
    costs = []
    for n in range(n_lower, min(len(instances), 36) + 1):  # ((1 + 0.2) / 0.2)^2
        for start in range(len(instances) - n + 1):
            cost, duration = figures(problem, window_fleet(instances[start : start + n], server))
            if duration <= goal.deadline_s:
                costs.append(cost)
    return min(costs, default=math.inf)


def window_fleet(window: Sequence[Offer], server: NodeGroup) -> Fleet:
    offers = {o.pool: o for o in window}
    counted = {pool: sum(o.pool == pool for o in window) for pool in offers}
    return Fleet(nodes=(*(group(Role.WORKER, offers[p], n) for p, n in counted.items()), server))


@pytest.mark.parametrize("goal", [(0.9, 2400.0), (0.7, 3600.0), (0.7, 2500.0), (0.7, 1800.0)])
def test_the_window_search_is_algorithm_1(goal: tuple[float, float]) -> None:
    problem = reference_problem(*goal)
    quotas = dict.fromkeys(problem.job.limits.max_count_by_type, 2)
    problem = limited(problem, max_count_by_type=quotas)

    assert spotdnn(problem).cost_usd == pytest.approx(algorithm_1(problem, quota=2))


def test_without_spotdnns_coefficients_the_window_takes_every_size() -> None:
    problem = queueing(reference_problem(0.8, 2400, max_nodes=70))
    goal = replace(problem.job.goal, target=Target(kind=TargetKind.STEPS, value=1000))

    found = spotdnn(replace(problem, job=replace(problem.job, goal=goal)))

    assert found.fleet_count == sum(70 - n + 1 for n in range(1, 70))


# ----- the other rivals


@pytest.mark.parametrize(("loss", "deadline_s"), GOALS[:-1])
def test_srifty_is_as_good_as_any_fleet_of_two_types(loss: float, deadline_s: float) -> None:
    problem = reference_problem(loss, deadline_s, max_nodes=SMALL)

    found = srifty(problem)

    best = exhaustive(limited(problem, max_pools=2))  # each type is one pool
    assert found.cost_usd == pytest.approx(best.cost_usd)


@pytest.mark.parametrize(("loss", "deadline_s"), GOALS[:-1])
def test_one_node_fewer_of_the_fastest_type_would_be_late(loss: float, deadline_s: float) -> None:
    problem = reference_problem(loss, deadline_s)

    found = homogeneous_fastest(problem)

    assert found.fleet is not None
    (workers,) = found.fleet.workers
    assert workers.instance_type.name == "p3.2xlarge"
    if workers.node_count > 1:
        fewer = replace(workers, node_count=workers.node_count - 1)
        smaller = Fleet(nodes=(fewer, *found.fleet.servers))
        assert figures(problem, smaller)[1] > deadline_s


def test_the_slowest_type_is_the_one_with_the_lowest_price() -> None:
    found = homogeneous_slowest(reference_problem(0.9, 2400))

    assert found.fleet is not None
    assert [node.instance_type.name for node in found.fleet.workers] == ["g3.4xlarge"]


@pytest.mark.parametrize(("loss", "deadline_s"), GOALS[:-1])
def test_cynthia_rents_one_type_and_does_not_saturate_its_servers(
    loss: float, deadline_s: float
) -> None:
    problem = queueing(reference_problem(loss, 3 * deadline_s))

    found = cynthia(problem)

    assert found.fleet is not None
    (workers,), (servers,) = found.fleet.workers, found.fleet.servers
    lone = Fleet(nodes=(replace(workers, node_count=1), servers))
    step_s = predict(problem.job, lone, problem.gpu_facts).iteration_s.mid
    cpu_s = 333 / servers.node_count * 0.108e-3 + 11.54e6 * 1.26e-9
    assert workers.node_count * cpu_s <= step_s


def test_rivals_stay_in_one_zone() -> None:
    problem = replace(
        reference_problem(0.9, 2400), worker_offers=TWO_ZONES, server_offers=TWO_SERVERS
    )

    for rival in RIVALS:
        found = rival(problem)
        assert found.fleet is not None
        assert in_one_zone(found.fleet)


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE])
@pytest.mark.parametrize("seed", range(8))
def test_in_random_markets_no_rival_is_cheaper_than_the_best_of_all_fleets(
    strategy: Strategy, seed: int
) -> None:
    drawn = draw(strategy, seed)
    goal = drawn.problem.job.goal
    best = drawn.fleets.best(Objective.COST, deadline_s=goal.deadline_s, budget_usd=goal.budget_usd)

    found = exhaustive(drawn.problem)

    assert found.cost_usd == pytest.approx(best.cost_usd if best else math.inf)
    for rival in RIVALS:
        assert rival(drawn.problem).cost_usd >= found.cost_usd * (1 - 1e-9)


def test_the_spot_market_makes_no_difference_to_what_is_rented_on_demand() -> None:
    problem = reference_problem(0.65, 3600)
    spot = [
        replace(o, market=Market.SPOT, price_usd_per_hour=o.price_usd_per_hour / 2)
        for o in problem.worker_offers
    ]

    found = on_demand_only(replace(problem, worker_offers=[*problem.worker_offers, *spot]))

    assert found.fleet is not None
    assert {node.market for node in found.fleet.nodes} == {Market.ON_DEMAND}
    best = exhaustive(reference_problem(0.65, 3600, max_nodes=SMALL))
    assert found.cost_usd == pytest.approx(best.cost_usd, rel=1e-3)  # the search's gap


# ----- lambdaDNN


def cnn_problem(deadline_s: float) -> Problem:
    """Return 1DCNN on IMDB, five epochs, as published; the server at the price that fits."""
    work = Workload(
        strategy=Strategy.SERVERLESS,
        model=ModelSize(parameter_bytes=2e6),
        serverless=ServerlessLaw(
            samples_per_s_per_mb=0.1,
            samples_per_s_offset=-8.8,
            batch_per_function_count=32,
            max_global_batch_count=512,
        ),
        dataset=Dataset(sample_count=15_000, size_bytes=41.1e6),
        parameter_serving=ParameterServing(bandwidth_mbps=9_600),
    )
    goal = Goal(target=Target(kind=TargetKind.EPOCHS, value=5), deadline_s=deadline_s)
    return Problem(
        job=JobSpec(name="1dcnn", workload=work, goal=goal, limits=Limits()),
        worker_offers=(),
        server_offers=[offer("m5.xlarge", 0.0935)],
        gpu_facts=catalog().gpu,
    )


def test_lambdadnn_plans_what_the_paper_published_or_a_little_better() -> None:
    problem = cnn_problem(90.0)
    functions = FunctionGroup(memory_mb=1088, function_count=10)
    server = group(Role.PS, problem.server_offers[0], 1)
    cost, duration = figures(problem, Fleet(nodes=(server,), functions=functions))
    assert duration == pytest.approx(86.2, rel=0.005)

    found = lambdadnn(problem)

    assert 0.95 * cost < found.cost_usd <= cost
    assert found.duration_s <= 90


def test_lambdadnn_looks_at_steps_of_64_mb_and_what_the_server_can_feed() -> None:
    found = lambdadnn(cnn_problem(90.0))

    assert found.fleet_count == 159 * 14  # 128 to 10,240 MB; 1.2 GB/s by 84 MB/s
    assert found.fleet is not None
    assert found.fleet.functions is not None
    assert found.fleet.functions.memory_mb % 64 == 0


@pytest.mark.parametrize("deadline_s", [30.0, 45.0, 60.0, 90.0, 20.0])
def test_the_exact_plan_is_never_dearer_than_lambdadnns(deadline_s: float) -> None:
    problem = cnn_problem(deadline_s)

    assert solve_serverless(problem).cost_usd <= lambdadnn(problem).cost_usd
