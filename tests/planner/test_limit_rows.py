"""A job's limits as rows, against the sentences that say what a fleet breaks."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.domain.prediction import Prediction
from spotwright.domain.workload import Strategy
from spotwright.planner.limit_rows import limit_rows
from spotwright.planner.problem import Problem
from spotwright.usecases.broken_limits import broken_limits
from spotwright.usecases.predict_fleet import predict_fleet
from tests.planner.dice import Dice
from tests.planner.random_problems import random_problem
from tests.planner.reference_problem import offer
from tests.usecases.example_job import catalog, job

SEEDS = range(64_000, 64_040)
FLEETS = 60  # of each problem
RESNET = Path(__file__).parents[2] / "examples/resnet50.yaml"
STEPS = Goal(target=Target(kind=TargetKind.STEPS, value=100))


@cache
def any_prediction() -> Prediction:
    """Return a prediction to put fleets into: broken limits are read off the fleet."""
    return predict_fleet(read_job_file(RESNET).spec, "g5.xlarge", catalog())


def keeps_every_limit(limits: Limits, fleet: Fleet) -> bool:
    spec = JobSpec(name="limited", workload=job().workload, goal=STEPS, limits=limits)
    return broken_limits(spec, replace(any_prediction(), fleet=fleet)) == []


def group(role: Role, offer: Offer, count: int) -> NodeGroup:
    gpus = offer.instance_type.gpu_count if role is Role.WORKER else 0.0
    return NodeGroup(
        role=role,
        instance_type=offer.instance_type,
        node_count=count,
        gpus_per_node=gpus,
        offer=offer,
    )


def drawn_limits(dice: Dice, problem: Problem) -> Limits:
    """Return the problem's limits and some more, so that each breaks now and then."""
    limits = problem.job.limits
    rent = sum(o.price_usd_per_hour for o in problem.worker_offers)
    more = Limits(
        max_nodes=limits.max_nodes + 6,
        max_pools=dice.pick((None, 2, 4)),
        max_count_by_type={problem.worker_offers[0].instance_type.name: dice.whole(0, 4)},
        max_usd_per_hour={dice.pick(list(Market)): rent * dice.between(0.3, 3)},
        min_on_demand_fraction=dice.pick((0.0, 0.25, 0.5)),
    )
    return replace(
        more if dice.chance(0.5) else limits,
        max_vcpus=limits.max_vcpus or {("g-vt", Market.SPOT): dice.whole(4, 200)},
        placement=Placement.ANYWHERE,
        min_count_by_pool=limits.min_count_by_pool,
    )


def drawn_servers(dice: Dice, problem: Problem) -> list[NodeGroup]:
    if not problem.server_offers:
        return []
    count = dice.whole(1, problem.job.limits.max_parameter_servers)
    return [group(Role.PS, dice.pick(problem.server_offers), count)]


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.ALLREDUCE])
def test_fleets_are_allowed_when_no_limit_is_said_to_be_broken(strategy: Strategy) -> None:
    allowed = 0
    for seed in SEEDS:
        dice, problem = Dice(seed, 6), random_problem(strategy, seed)
        offers, servers = problem.worker_offers, drawn_servers(dice, problem)
        limits = drawn_limits(dice, problem)
        rows = limit_rows(limits, offers, servers)
        for _ in range(FLEETS):
            counts = [dice.pick((0, 0, 0, 1, 1, 2, 3)) for _ in offers]
            if sum(counts) == 0:
                continue
            workers = [group(Role.WORKER, o, n) for o, n in zip(offers, counts, strict=True) if n]
            kept = keeps_every_limit(limits, Fleet(nodes=(*workers, *servers)))

            (found,) = rows.allow(np.array(counts, dtype=np.float64)[:, None])

            assert found == kept, (seed, counts)
            allowed += kept
    assert allowed > 100


def test_many_fleets_are_judged_as_each_by_itself() -> None:
    dice, problem = Dice(1), random_problem(Strategy.BSP_PS, SEEDS[0])
    servers = drawn_servers(dice, problem)
    rows = limit_rows(drawn_limits(dice, problem), problem.worker_offers, servers)
    shape = (len(problem.worker_offers), 50)
    fleets = np.random.default_rng(1).integers(0, 3, shape).astype(np.float64)

    together = rows.allow(fleets)

    assert together.tolist() == [bool(rows.allow(fleets[:, [i]])[0]) for i in range(50)]


# ----- at the limit itself


SPOT = offer("g4dn.xlarge", 0.1, market=Market.SPOT)
ON_DEMAND = offer("g4dn.xlarge", 0.3)


def both_allow(limits: Limits, *, spot: int, on_demand: int) -> tuple[bool, bool]:
    """Return what rows and sentences say of a fleet."""
    counts = np.array([[float(spot)], [float(on_demand)]])
    wanted = [(SPOT, spot), (ON_DEMAND, on_demand)]
    nodes = tuple(group(Role.WORKER, o, n) for o, n in wanted if n)
    allowed = limit_rows(limits, [SPOT, ON_DEMAND], ()).allow(counts)
    return bool(allowed[0]), keeps_every_limit(limits, Fleet(nodes=nodes))


def test_a_share_on_demand_that_is_just_had_is_had() -> None:
    limits = Limits(min_on_demand_fraction=0.28)  # 0.28 * 25 is 7.000000000000001

    assert both_allow(limits, spot=18, on_demand=7) == (True, True)
    assert both_allow(limits, spot=19, on_demand=6) == (False, False)


def test_a_rent_that_is_just_within_the_ceiling_is_within() -> None:
    limits = Limits(max_usd_per_hour={Market.SPOT: 0.3})  # 3 * 0.1 is 0.30000000000000004

    assert both_allow(limits, spot=3, on_demand=0) == (True, True)
    assert both_allow(limits, spot=4, on_demand=0) == (False, False)


def test_classes_that_share_a_quota_are_counted_together() -> None:
    p4, p5 = offer("p4d.24xlarge", 20.0), offer("p5.48xlarge", 60.0)
    vcpus = p4.instance_type.vcpu_count + p5.instance_type.vcpu_count
    one_of_each = np.ones((2, 1))

    for name in ("p", "p5"):
        for most, fits in ((vcpus, True), (vcpus - 1, False)):
            limits = Limits(max_vcpus={(name, Market.ON_DEMAND): round(most)})
            assert limit_rows(limits, [p4, p5], ()).allow(one_of_each).tolist() == [fits]


def test_servers_take_their_part_of_nodes_and_quotas() -> None:
    server = group(Role.PS, ON_DEMAND, 2)
    vcpus = 3 * round(ON_DEMAND.instance_type.vcpu_count)
    two, one = np.array([[0.0], [2.0]]), np.array([[0.0], [1.0]])

    for limits in (
        Limits(max_nodes=3),
        Limits(max_vcpus={("g-vt", Market.ON_DEMAND): vcpus}),
        Limits(max_usd_per_hour={Market.ON_DEMAND: 0.9}),
    ):
        rows = limit_rows(limits, [SPOT, ON_DEMAND], (server,))
        assert rows.allow(np.hstack((one, two))).tolist() == [True, False]
