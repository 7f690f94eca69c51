"""Choices that are left out before the search begins must not be part of a better fleet.

Two that look alike on their own and differ in company: each is cheapest only with the other nodes.
"""

from dataclasses import replace

import pytest

from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Objective
from spotwright.domain.workload import (
    ComputeProfile,
    FixedBatch,
    ModelSize,
    ParameterServing,
    SpotBehaviour,
    Strategy,
    Workload,
)
from spotwright.planner.placements import sites
from spotwright.planner.problem import Problem
from spotwright.planner.solve import solve
from tests.planner.oracle import EveryFleet
from tests.planner.reference_problem import offer, reference_problem
from tests.usecases.example_job import catalog

GOAL = Goal(target=Target(kind=TargetKind.SAMPLES, value=1e6))


def on_demand(name: str, zone: str, usd: float) -> Offer:
    return Offer(
        instance_type=catalog().instance_type(name),
        region={"use1": "us-east-1", "use2": "us-east-2"}[zone[:4]],
        zone=zone,
        market=Market.ON_DEMAND,
        price_usd_per_hour=usd,
    )


def on_spot(name: str, zone: str, usd: float) -> Offer:
    offer = on_demand(name, zone, usd)
    return replace(offer, market=Market.SPOT, interruption_fraction=0.7)


def test_a_ring_stands_in_as_few_zones_as_it_can() -> None:
    workload = Workload(
        strategy=Strategy.ALLREDUCE,
        model=ModelSize(parameter_bytes=1e8),
        batch=FixedBatch(per_gpu_count=32),
        compute={gpu: ComputeProfile(per_sample_s=0.05) for gpu in ("A10G", "L4", "T4")},
    )
    offers = [
        on_demand("g5.xlarge", "use1-az4", 1.0),  # as cheap as the next, but far from the others
        on_demand("g5.xlarge", "use1-az6", 1.0),
        on_demand("g6.xlarge", "use1-az6", 1.0),
        on_demand("g4dn.xlarge", "use2-az1", 1.0),
    ]
    limits = Limits(
        max_nodes=3,
        max_count_by_type={offer.instance_type.name: 1 for offer in offers},
        placement=Placement.ANYWHERE,
    )
    job = JobSpec(name="ring", workload=workload, goal=GOAL, limits=limits)
    problem = Problem(job=job, worker_offers=offers, server_offers=(), gpu_facts=catalog().gpu)
    fastest = EveryFleet(problem).best(Objective.TIME)
    assert fastest is not None
    deadline_s = 1.01 * fastest.duration_s
    in_time = replace(problem, job=replace(job, goal=replace(GOAL, deadline_s=deadline_s)))

    assert_as_cheap_as_any(in_time)


def test_a_server_may_share_its_pool_with_workers_and_be_interrupted_less_often() -> None:
    workload = Workload(
        strategy=Strategy.BSP_PS,
        model=ModelSize(parameter_bytes=1e7),
        batch=FixedBatch(per_gpu_count=32),
        compute={"T4": ComputeProfile(per_sample_s=0.05)},
        parameter_serving=ParameterServing(
            cpu_s_per_tensor=0.0, cpu_s_per_byte=0.0, bandwidth_mbps=2000.0
        ),
        spot=SpotBehaviour(checkpoint_s=60.0, restart_s=2e5, common_shock_fraction=1.0),
    )
    limits = Limits(max_nodes=3, max_parameter_servers=1)
    shared = on_spot("g4dn.xlarge", "use1-az4", 0.3)

    assert_as_cheap_as_any(
        Problem(
            job=JobSpec(name="shared pool", workload=workload, goal=GOAL, limits=limits),
            worker_offers=[shared],
            server_offers=[on_spot("m5.xlarge", "use1-az4", 0.295), shared],
            gpu_facts=catalog().gpu,
        )
    )


def test_workers_of_a_far_zone_are_as_fast_and_dearer_where_the_rule_knows_no_distance() -> None:
    near = reference_problem(0.7, 3600.0, max_nodes=5)
    quota = {offer.instance_type.name: 2 for offer in near.worker_offers}
    offers = [
        offer(name, usd * factor, zone=zone)
        for zone, factor in (("use1-az1", 1.0), ("use1-az2", 1.0), ("use1-az4", 0.2))
        for name, usd in (("p3.2xlarge", 3.06), ("g4dn.12xlarge", 3.91), ("g3.8xlarge", 2.28))
    ]
    limits = replace(near.job.limits, max_count_by_type=quota)
    goal = replace(near.job.goal, deadline_s=2e4)
    problem = replace(near, job=replace(near.job, limits=limits, goal=goal), worker_offers=offers)
    (site,) = sites(problem)

    zones = {w.group.offer.zone for w in site.workers if w.group.offer}

    assert zones == {"use1-az1", "use1-az4"}  # of the servers, and the one that is cheaper
    assert_as_cheap_as_any(problem)


def assert_as_cheap_as_any(problem: Problem) -> None:
    best = EveryFleet(problem).best(Objective.COST, deadline_s=problem.job.goal.deadline_s)
    assert best is not None

    assert solve(problem).cost_usd == pytest.approx(best.cost_usd, rel=1e-3)
