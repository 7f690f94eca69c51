"""Oracles: Cynthia's step by hand for one server of 8 Gbit/s and 100 MB of parameters."""

import math
import random
import statistics
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.workload import (
    ComputeProfile,
    GlobalBatch,
    InputPipeline,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from tests.perfmodel.example_clusters import (
    fleet_of,
    host,
    model,
    nodes,
    offered,
    server,
    step_s,
    workload,
)

PUSH_S = 800 / 8_000  # 100 MB at 8 Gbit/s
LOCAL_S = 0.2 + 2 * 800 / 80_000  # compute, and both ways over PCIe
fractions = st.floats(0, 1)


def work(overlap: float = 0.0, *, cpu_s_per_byte: float = 0.0, **changes: object) -> Workload:
    serving = ParameterServing(
        overlap_fraction=overlap, cpu_s_per_tensor=0.0, cpu_s_per_byte=cpu_s_per_byte
    )
    return workload(Strategy.BSP_PS, parameter_serving=serving, **changes)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize("overlap", [0.0, 0.4, 1.0])
def test_a_step_is_compute_and_what_sticks_out_of_the_burst(count: int, overlap: float) -> None:
    burst_s = 2 * count * PUSH_S
    hidden_s = overlap * min(LOCAL_S, burst_s)

    found = step_s(work(overlap), [nodes(host(), count)])

    assert found == pytest.approx(LOCAL_S + burst_s - hidden_s)


@pytest.mark.parametrize("count", [1, 5])
def test_full_overlap_is_cynthias_maximum(count: int) -> None:
    found = step_s(work(1.0), [nodes(host(), count)])

    assert found == pytest.approx(max(LOCAL_S, 2 * count * PUSH_S))


def round_of_pushes_s(arrivals: list[float], *, alone_s: float) -> float:
    """Play pushes that share a link fairly, each no faster than alone; return when all are in."""
    left: dict[int, float] = {}
    coming, now = sorted((at, i) for i, at in enumerate(arrivals)), 0.0
    while coming or left:
        until_done = min(left.values(), default=math.inf) * alone_s * max(len(left), 1)
        until_next = coming[0][0] - now if coming else math.inf
        passed = min(until_done, until_next)
        left = {i: part - passed / (alone_s * len(left)) for i, part in left.items()}
        left = {i: part for i, part in left.items() if part > 1e-12}
        now += passed
        if coming and until_next <= until_done:
            left[coming.pop(0)[1]] = 1.0
    return now


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("push_s", [0.005, 0.02, 0.1, 0.4])
def test_pushes_begin_while_the_slowest_still_computes(count: int, push_s: float) -> None:
    spread, dice = 0.1, random.Random(count)
    played_s = statistics.fmean(
        round_of_pushes_s([dice.gauss(0.2, 0.2 * spread) for _ in range(count)], alone_s=push_s)
        for _ in range(4_000)
    )
    compute = {"Small": ComputeProfile(per_sample_s=0.2 / 32, relative_sd=spread)}
    bytes_count = push_s * 8_000 / 8e-6
    size = ModelSize(parameter_bytes=bytes_count)

    found = step_s(work(compute=compute, model=size, pcie_mbps=1e12), [nodes(host(), count)])

    pull_s = count * push_s
    assert found == pytest.approx(played_s + pull_s, rel=0.06)
    assert found >= played_s + pull_s - 0.002  # what is played through is an average of maxima


def test_the_burst_grows_by_the_same_time_with_every_worker() -> None:
    bsp = model(work(), [nodes(host())])
    steps = [float(bsp.speed(fleet_of(n)).iteration_s[0]) for n in range(1, 9)]

    gaps = [after - before for before, after in pairwise(steps)]

    assert gaps == pytest.approx([2 * PUSH_S] * 7)


def test_the_slowest_worker_present_decides() -> None:
    slow = host("g.slow", "Large")
    mixed_work = work(
        compute={
            "Small": ComputeProfile(per_sample_s=0.2 / 32, relative_sd=0.0),
            "Large": ComputeProfile(per_sample_s=1.0 / 32, relative_sd=0.0),
        }
    )
    mixed = model(mixed_work, [nodes(host()), nodes(slow)])

    gap = mixed.speed(fleet_of(3, 1)).iteration_s - mixed.speed(fleet_of(4, 0)).iteration_s

    assert gap[0] == pytest.approx(0.8)


def test_the_spread_of_a_type_that_is_not_in_the_fleet_changes_nothing() -> None:
    uneven = work(
        compute={
            "Small": ComputeProfile(per_sample_s=0.2 / 32, relative_sd=0.0),
            "Large": ComputeProfile(per_sample_s=0.1 / 32, relative_sd=0.5),
        }
    )
    mixed = model(uneven, [nodes(host()), nodes(host("g.large", "Large"))])
    alone = model(uneven, [nodes(host())])

    assert mixed.speed(fleet_of(8, 0)).iteration_s == alone.speed(fleet_of(8)).iteration_s


def test_the_slower_of_link_and_cpu_takes_the_burst() -> None:
    busy = work(cpu_s_per_byte=5e-9)  # 0.5 s for 100 MB on four vCPUs
    found = model(busy, [nodes(host(), 4)])

    (terms,) = found.terms(fleet_of(4)[:, 0])

    assert terms.ps_service_s == pytest.approx(4 * 0.5)
    assert terms.network_s == 0.0
    assert step_s(work(), [nodes(host(), 4)]) == pytest.approx(LOCAL_S + 8 * PUSH_S)


def test_a_worker_with_a_slow_link_holds_up_the_burst() -> None:
    slow = host("g.slow", network_baseline_mbps=1_000)

    found = step_s(work(), [nodes(slow, 2)])

    assert found == pytest.approx(LOCAL_S + 2 * 800 / 1_000)


@pytest.mark.parametrize(("share", "shard"), [(0.1, 0.5), (0.5, 0.5), (0.9, 0.9), (1.0, 1.0)])
def test_the_largest_shard_of_two_servers_decides(share: float, shard: float) -> None:
    serving = ParameterServing(
        cpu_s_per_tensor=0.0, cpu_s_per_byte=0.0, largest_shard_fraction=share
    )
    sharded = workload(Strategy.BSP_PS, parameter_serving=serving)

    found = step_s(sharded, [nodes(host(), 10)], [server(2)])

    assert found == pytest.approx(LOCAL_S + 20 * PUSH_S * shard)


@pytest.mark.parametrize(
    ("zone", "region", "round_trip_s"), [("z2", "r1", 0.8e-3), ("y", "r2", 0.07)]
)
def test_a_far_server_costs_round_trips(zone: str, region: str, round_trip_s: float) -> None:
    near, far = offered(host(), 4), offered(host("m.server", None))
    assert far.offer is not None
    moved = replace(far, offer=replace(far.offer, zone=zone, region=region))

    apart = step_s(work(), [near], [moved]) - step_s(work(), [near], [far])

    assert apart == pytest.approx(2.4 * round_trip_s)


@given(overlap=fractions, counts=st.tuples(st.integers(1, 20), st.integers(0, 20)))
def test_terms_add_up_to_the_step(overlap: float, counts: tuple[int, int]) -> None:
    hungry = work(overlap, input=InputPipeline(prep_samples_per_s_per_vcpu=10))
    bsp = model(hungry, [nodes(host()), nodes(host("g.slow", network_baseline_mbps=900))])

    expected = bsp.speed(fleet_of(*counts)).iteration_s[0]

    for terms in bsp.terms(fleet_of(*counts)[:, 0]):
        assert terms.total_s == pytest.approx(expected)
        assert min(terms.by_name().values()) >= 0


def test_a_whole_batch_is_split_and_the_step_counts_it_once() -> None:
    whole = work(batch=GlobalBatch(sample_count=512))

    speed = model(whole, [nodes(host())]).speed(fleet_of(8))

    assert speed.weighted_batch[0] == pytest.approx(512)
    assert speed.iteration_s[0] == pytest.approx(0.4 + 0.02 + 16 * PUSH_S)  # 64 samples each
