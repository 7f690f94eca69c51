"""Markets of so few fleets that none of them is left to a search."""

from dataclasses import replace

import pytest

from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.domain.workload import (
    ComputeProfile,
    FixedBatch,
    ModelSize,
    SpotBehaviour,
    Strategy,
    Workload,
)
from spotwright.planner.problem import Problem
from spotwright.planner.solve import solve
from tests.planner.oracle import EveryFleet
from tests.usecases.example_job import catalog

ZONES = ("use1-az1", "use1-az2", "use1-az4", "use1-az6", "use1-az5")
DEADLINE_S = 1e6


def offer(number: int, zone: str, market: Market) -> Offer:
    usd = 3.0 if market is Market.ON_DEMAND else 1.0 + 0.1 * number
    interrupted = 0.9 - 0.1 * number if market is Market.SPOT else None
    return Offer(
        instance_type=catalog().instance_type("g5.xlarge"),
        region="us-east-1",
        zone=zone,
        market=market,
        price_usd_per_hour=usd,
        interruption_fraction=interrupted,
    )


def problem(*, max_nodes: int = 1, restart_s: float = 720.0) -> Problem:
    workload = Workload(
        strategy=Strategy.ALLREDUCE,
        model=ModelSize(parameter_bytes=1e8),
        batch=FixedBatch(per_gpu_count=32),
        compute={"A10G": ComputeProfile(per_sample_s=0.05)},
        spot=SpotBehaviour(checkpoint_s=30.0, restart_s=restart_s),
    )
    goal = Goal(target=Target(kind=TargetKind.SAMPLES, value=1e7), deadline_s=DEADLINE_S)
    limits = Limits(max_nodes=max_nodes, placement=Placement.ANYWHERE)
    offers = [offer(i, zone, market) for i, zone in enumerate(ZONES) for market in Market]
    return Problem(
        job=JobSpec(name="one node", workload=workload, goal=goal, limits=limits),
        worker_offers=offers,
        server_offers=(),
        gpu_facts=catalog().gpu,
    )


@pytest.mark.parametrize("restart_s", [0.0, 720.0, 7200.0, 72000.0])
def test_a_node_in_one_of_five_zones_is_the_best_of_all_without_a_search(restart_s: float) -> None:
    asked = problem(restart_s=restart_s)
    best = EveryFleet(asked).best(Objective.COST, deadline_s=DEADLINE_S)
    assert best is not None

    found = solve(asked)

    assert (found.box_count, found.complete) == (0, True)
    assert found.fleet == best.fleet
    assert found.cost_usd == pytest.approx(best.cost_usd, rel=1e-9)
    assert found.duration_s == pytest.approx(best.duration_s, rel=1e-9)


def test_what_it_costs_to_start_another_node_counts() -> None:
    asked = problem()
    cheapest = solve(asked)
    assert cheapest.fleet is not None
    other = next(o for o in asked.worker_offers if o.pool.zone == "use1-az6")
    for switching_s, stays in ((1.0, False), (1e6, True)):
        running = RunningFleet(nodes={other.pool: 1}, switching_s=switching_s)
        found = solve(replace(asked, running=running))
        assert found.fleet is not None
        (group,) = found.fleet.workers
        assert (group.offer == other) is stays


def test_none_that_is_in_time_is_proved() -> None:
    asked = problem()
    hurried = replace(asked.job, goal=replace(asked.job.goal, deadline_s=1e3))
    found = solve(replace(asked, job=hurried))
    assert (found.fleet, found.complete, found.box_count) == (None, True, 0)


def test_many_fleets_are_left_to_the_search() -> None:
    assert solve(problem(max_nodes=9)).box_count > 0
