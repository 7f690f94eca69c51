"""The search's view of many fleets and the explanation of one must be the same figures."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotwright.domain.errors import (
    MemoryDoesNotFitError,
    OutsideFittedRangeError,
    UnreachableTargetError,
)
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.job import JobSpec, TargetKind
from spotwright.domain.workload import (
    Contention,
    CynthiaLoss,
    GlobalBatch,
    Lifetimes,
    MemoryUse,
    ParameterServing,
    SpotBehaviour,
    SpotdnnLoss,
    Strategy,
)
from spotwright.perfmodel.fleets import FleetEvaluator, FleetFigures
from spotwright.perfmodel.predict import predict
from tests.perfmodel.example_clusters import (
    classes,
    gpu_facts,
    host,
    job,
    nodes,
    offered,
    workload,
)

LAW = SpotdnnLoss(c1=90, c2=-2.0, c3=2500, c4=0.2, c5=0.5, batch_range=(40, 120))
STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]
SHORT_LIVED = Lifetimes(hours=(0.5, 2.0, 3.0, 3.0), revoked=(True, True, True, False))


def placed(group: NodeGroup, zone: str, region: str = "r1") -> NodeGroup:
    assert group.offer is not None
    return replace(group, offer=replace(group.offer, zone=zone, region=region))


FOUR = offered(host(gpu_count=4.0), usd=3.5, interrupted=0.3)
GROUPS = [
    FOUR,
    replace(FOUR, gpus_per_node=2.0),  # of the same pool
    offered(host("g.slow", network_baseline_mbps=1_500), usd=0.4),
    placed(offered(host("g.taken"), usd=0.2, interrupted=0.05), "z2"),
    placed(
        offered(
            host("g.wide", "Large", network_baseline_mbps=25_000, efa_interface_count=1), usd=1.1
        ),
        "z9",
        "r2",
    ),
]
SERVER = offered(host("m.server", None), usd=0.2, role=Role.PS)
SERVERS = [
    SERVER,
    placed(offered(host("m.spot", None), 2, usd=0.1, interrupted=0.2, role=Role.PS), "z2"),
    offered(host(gpu_count=4.0), usd=3.5, interrupted=0.3, role=Role.PS),  # in a pool of workers
]
counts = st.tuples(*[st.integers(0, 10)] * len(GROUPS)).filter(any)


def asked(
    strategy: Strategy, contention: Contention = Contention.QUEUEING, **changes: Any
) -> JobSpec:
    serving = ParameterServing(
        contention=contention, requested_mbps=1_136, contention_slope=0.2, contention_offset=-0.2
    )
    work = workload(
        strategy,
        parameter_serving=serving if strategy.uses_parameter_servers else None,
        convergence=LAW if strategy is Strategy.ASP_PS else CynthiaLoss(k0=9e4, k1=0.5),
        spot=SpotBehaviour(lifetimes={"g.taken": SHORT_LIVED}),
    )
    profiles = {**work.compute, "Large": replace(work.compute["Small"], fixed_s=0.01)}
    return job(replace(work, compute=profiles, **changes), TargetKind.LOSS, 0.6)


def evaluated(spec: JobSpec, fleets: np.ndarray) -> FleetFigures:
    servers = SERVERS if spec.workload.strategy.uses_parameter_servers else []
    workers = classes(spec.workload, GROUPS)
    return FleetEvaluator(spec, workers, servers, most_workers=64).evaluate(fleets)


def fleet(spec: JobSpec, numbers: tuple[int, ...]) -> Fleet:
    chosen = [replace(group, node_count=n) for group, n in zip(GROUPS, numbers, strict=True) if n]
    servers = SERVERS if spec.workload.strategy.uses_parameter_servers else []
    return Fleet(nodes=(*chosen, *servers))


def assert_same(spec: JobSpec, numbers: tuple[int, ...], found: FleetFigures) -> None:
    """Compare the figures of one fleet with its prediction, or with why there is none."""
    if not found.fits_memory[0]:
        with pytest.raises(MemoryDoesNotFitError):
            predict(spec, fleet(spec, numbers), gpu_facts)
        return
    if not found.in_fitted_range[0]:
        with pytest.raises(OutsideFittedRangeError):
            predict(spec, fleet(spec, numbers), gpu_facts)
        return
    one = predict(spec, fleet(spec, numbers), gpu_facts)
    assert one.cost_usd is not None
    expected = {
        "iteration_s": one.iteration_s.mid,
        "samples_per_s": one.samples_per_s,
        "weighted_batch": one.weighted_batch,
        "coefficient": one.convergence_coefficient or 0.0,
        "updates": one.steps_to_goal,
        "work_s": one.steps_to_goal * one.iteration_s.mid,
        "duration_s": one.duration_s.mid,
        "cost_usd": one.cost_usd.mid,
        "traffic_usd": one.traffic_usd,
    }
    for figure, value in expected.items():
        assert getattr(found, figure)[0] == pytest.approx(value, rel=1e-9, abs=1e-7), figure


@pytest.mark.parametrize(
    ("strategy", "contention"),
    [(Strategy.ASP_PS, rule) for rule in Contention]
    + [(Strategy.BSP_PS, Contention.QUEUEING), (Strategy.ALLREDUCE, Contention.QUEUEING)],
)
@settings(max_examples=40)
@given(numbers=counts)
def test_the_figures_are_those_of_the_prediction(
    strategy: Strategy, contention: Contention, numbers: tuple[int, ...]
) -> None:
    spec = asked(strategy, contention)

    assert_same(spec, numbers, evaluated(spec, np.array(numbers, float)[:, None]))


@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize(
    ("strategy", "whole"),
    [
        (Strategy.ASP_PS, None),
        (Strategy.BSP_PS, GlobalBatch(sample_count=512)),
        (Strategy.ALLREDUCE, None),
        (Strategy.ALLREDUCE, GlobalBatch(sample_count=512, max_per_gpu_count=24)),
    ],
)
@settings(max_examples=15)
@given(numbers=counts)
def test_memory_is_that_of_the_prediction(
    strategy: Strategy, whole: GlobalBatch | None, stage: int, numbers: tuple[int, ...]
) -> None:
    tight = MemoryUse(
        activation_bytes_per_sample=5.4e8,
        optimizer_bytes_per_parameter=400.0,
        reserved_bytes=1e8,
        zero_stage=stage,
    )
    batch: dict[str, Any] = {"batch": whole} if whole else {}
    spec = asked(strategy, memory=tight, **batch)

    assert_same(spec, numbers, evaluated(spec, np.array(numbers, float)[:, None]))


def test_more_gpus_make_room_where_zero_spreads_the_state() -> None:
    use = MemoryUse(optimizer_bytes_per_parameter=2_000.0, zero_stage=1)  # 50 GB in all
    spec = asked(Strategy.ALLREDUCE, memory=use)
    fleets = np.zeros((len(GROUPS), 8))
    fleets[2] = np.arange(1, 9)  # of 16 GiB each

    assert evaluated(spec, fleets).fits_memory.tolist() == [False] * 3 + [True] * 5


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_chunks_leave_no_seam(strategy: Strategy) -> None:
    spec, fleets = asked(strategy), np.random.default_rng(2).integers(0, 11, (5, 9_001)) + 0.0
    fleets[0] += fleets.sum(axis=0) == 0

    whole = evaluated(spec, fleets)

    for i in (0, 4095, 4096, 8191, 8192, 9000):
        alone = evaluated(spec, fleets[:, i : i + 1])
        assert whole.cost_usd[i] == pytest.approx(alone.cost_usd[0], rel=1e-12)
        assert whole.duration_s[i] == pytest.approx(alone.duration_s[0], rel=1e-12)
        assert whole.in_fitted_range[i] == alone.in_fitted_range[0]


def test_whole_numbers_of_any_kind_are_counts() -> None:
    spec = asked(Strategy.ASP_PS)
    fleets = np.array([[1, 2], [0, 3], [4, 0], [0, 0], [0, 1]])

    as_integers, as_floats = evaluated(spec, fleets), evaluated(spec, fleets + 0.0)

    assert (as_integers.cost_usd == as_floats.cost_usd).all()


def test_a_goal_below_the_floor_is_refused_for_all_fleets() -> None:
    spec = asked(Strategy.ASP_PS)
    goal = replace(spec.goal, target=replace(spec.goal.target, value=0.4))

    with pytest.raises(UnreachableTargetError):
        evaluated(replace(spec, goal=goal), np.ones((5, 3)))


@pytest.mark.parametrize("where", ["workers", "servers"])
def test_a_node_without_a_price_is_refused(where: str) -> None:
    spec = asked(Strategy.ASP_PS)
    workers = classes(spec.workload, [nodes(host()) if where == "workers" else GROUPS[0]])
    server = nodes(host("m.server", None), role=Role.PS) if where == "servers" else SERVER

    with pytest.raises(ValueError, match="has no offer"):
        FleetEvaluator(spec, workers, [server], most_workers=8)
