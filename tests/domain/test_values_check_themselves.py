import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from spotwright.domain.catalog import ZonePrice
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.hardware import Cloud, Gpu, InstanceType, Precision
from spotwright.domain.job import Goal, Limits, Target, TargetKind
from spotwright.domain.offer import Market, Offer, Pool
from spotwright.domain.plan import Objective, Plan, PlanStatus
from spotwright.domain.prediction import Interval, Prediction, StepTerms
from spotwright.domain.workload import Strategy

G5 = InstanceType(
    name="g5.12xlarge",
    cloud=Cloud.AWS,
    vcpu_count=48,
    memory_gib=192,
    gpu_name="A10G",
    gpu_count=4,
)
POOL = Pool("g5.12xlarge", "use1-az1", Market.SPOT)
PREDICTION = Prediction(
    strategy=Strategy.ALLREDUCE,
    fleet=Fleet(nodes=()),
    groups=(),
    iteration_s=Interval(1, 2, 3),
    cluster_steps_per_s=1,
    samples_per_s=1,
    weighted_batch=1,
    convergence_coefficient=None,
    steps_to_goal=1,
    duration_s=Interval(1, 2, 3),
    duration_p95_s=3,
    deadline_probability=None,
    overall_deadline_probability=None,
    uninterrupted_probability=1,
    cost_usd=None,
    traffic_usd=0,
    bottleneck="compute",
    network_basis="baseline",
)


def offer(**changes: Any) -> Offer:
    facts: dict[str, Any] = {"region": "us-east-1", "zone": "use1-az1", "market": Market.SPOT}
    return Offer(**facts | {"instance_type": G5, "price_usd_per_hour": 2.0} | changes)


def group(**changes: Any) -> NodeGroup:
    facts: dict[str, Any] = {"role": Role.WORKER, "instance_type": G5, "offer": offer()}
    return NodeGroup(**{"node_count": 3, "gpus_per_node": 4} | facts | changes)


def goal(**changes: Any) -> Goal:
    return Goal(target=Target(kind=TargetKind.LOSS, value=0.5), **changes)


def gpu(**changes: Any) -> Gpu:
    facts: dict[str, Any] = {"name": "T4", "architecture": "Turing", "memory_gib": 16}
    speeds = {"memory_mbps": None, "fp32_flops": 8e12, "fp16_flops": 65e12, "bf16_flops": None}
    return Gpu(**facts | speeds | changes)


def plan(**changes: Any) -> Plan:
    facts: dict[str, Any] = {
        "why": (),
        "savings": (),
        "alternatives": (),
        "frontier": (),
        "solve_s": 0.1,
        "prediction": PREDICTION,
        "lower_bound_s": None,
        "changes": (),
    }
    money = {"cost_usd": 20.0, "lower_bound_usd": 19.0, "deadline_probability": 0.97}
    kind = {"status": PlanStatus.OPTIMAL, "objective": Objective.COST}
    return Plan(catalog_time=datetime(2026, 8, 22, tzinfo=UTC), **money | kind | facts | changes)


@pytest.mark.parametrize(
    ("make", "changes", "complaint"),
    [
        (offer, {"price_usd_per_hour": 0}, "price_usd_per_hour must be positive"),
        (offer, {"price_usd_per_hour": -1}, "price_usd_per_hour must be positive"),
        (offer, {"price_usd_per_hour": math.nan}, "price_usd_per_hour must be positive"),
        (offer, {"interruption_fraction": 1}, "interruption_fraction"),
        (offer, {"interruption_fraction": -0.1}, "interruption_fraction"),
        (offer, {"interruption_fraction": math.nan}, "interruption_fraction"),
        (group, {"node_count": 0}, "node_count must be at least 1"),
        (group, {"gpus_per_node": 5}, "from 0 to 4, got 5"),
        (group, {"gpus_per_node": -1}, "from 0 to 4, got -1"),
        (group, {"gpus_per_node": math.nan}, "from 0 to 4, got nan"),
        (goal, {"deadline_s": 0}, "deadline_s must be positive"),
        (goal, {"deadline_s": math.nan}, "deadline_s must be positive"),
        (goal, {"budget_usd": -5}, "budget_usd must be positive"),
        (goal, {"confidence_fraction": 95}, "confidence_fraction must be 0 to 1"),
        (goal, {"confidence_fraction": math.nan}, "confidence_fraction must be 0 to 1"),
        (Limits, {"max_parameter_servers": 0}, "max_parameter_servers must be positive"),
        (Limits, {"min_count_by_pool": {POOL: 0}}, "at least 1, got 0 for g5.12xlarge@use1-az1/"),
        (Limits, {"excluded_pools": {POOL: datetime(2026, 11, 16)}}, "times with a timezone"),
        (gpu, {"memory_gib": 0}, "memory_gib must be positive"),
        (plan, {"lower_bound_usd": 20.01}, "bound 20.01 above cost 20"),
        (plan, {"lower_bound_usd": math.nan}, "bound nan"),
    ],
)
def test_a_value_that_cannot_be_is_refused(
    make: Callable[..., object], changes: dict[str, Any], complaint: str
) -> None:
    make()  # as it stands the value is good: only the change is to blame

    with pytest.raises(ValueError, match=complaint):
        make(**changes)


@pytest.mark.parametrize("bounds", [(2, 1, 3), (1, 3, 2), (math.nan, 1, 2), (0, math.nan, 1)])
def test_an_interval_holds_its_middle(bounds: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must hold its middle"):
        Interval(*bounds)


def test_a_gpu_has_a_name_and_a_count_or_neither() -> None:
    machine: dict[str, Any] = {"name": "x", "cloud": Cloud.AWS, "vcpu_count": 1, "memory_gib": 1}

    for gpu_facts in ({"gpu_name": "T4"}, {"gpu_count": 1}):
        with pytest.raises(ValueError, match="gpu_name and gpu_count must be given together"):
            InstanceType(**machine | gpu_facts)


@pytest.mark.parametrize("price", [0, -1, math.nan])
def test_a_zone_price_is_positive_or_absent(price: float) -> None:
    ZonePrice("g5.xlarge", "us-east-1", "use1-az1", None, None)

    with pytest.raises(ValueError, match="a price must be positive"):
        ZonePrice("g5.xlarge", "us-east-1", "use1-az1", None, price)


def test_an_interval_scales_as_a_whole() -> None:
    assert Interval(1, 2, 4).scaled(3600) == Interval(3600, 7200, 14_400)


def test_a_fleet_costs_what_its_nodes_cost_together() -> None:
    server = group(role=Role.PS, node_count=1, offer=offer(price_usd_per_hour=0.192))

    assert Fleet(nodes=(group(), server)).usd_per_hour == pytest.approx(3 * 2.0 + 0.192)


def test_a_fleet_with_a_node_nobody_rents_out_has_no_price() -> None:
    assert Fleet(nodes=(group(), group(offer=None))).usd_per_hour is None


def test_the_gap_is_what_the_bound_leaves_open_and_never_negative() -> None:
    assert plan().gap_fraction == pytest.approx(0.05)
    assert plan(lower_bound_usd=20.0 * (1 + 1e-10)).gap_fraction == 0


def test_the_gap_of_the_fastest_fleet_is_counted_in_seconds() -> None:
    assert plan(lower_bound_s=1.5).gap_fraction == pytest.approx(0.25)  # of a mid of 2 s


def test_step_terms_sum_up_and_the_largest_is_the_bottleneck() -> None:
    terms = StepTerms(compute_s=0.2, network_s=0.3, input_stall_s=0.1)

    assert terms.total_s == pytest.approx(0.6)
    assert terms.bottleneck == "network"


def test_a_gpu_without_bf16_hardware_computes_at_its_fp32_rate() -> None:
    assert gpu().peak_flops(Precision.FP16) == 65e12
    assert gpu().peak_flops(Precision.BF16) == 8e12
