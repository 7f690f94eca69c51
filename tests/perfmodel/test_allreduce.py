"""Oracles: the bucket pipeline of DDP played through, and the volume of a ring by hand."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import MissingFactError
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    GlobalBatch,
    GradientBucket,
    InputPipeline,
    Links,
    MemoryUse,
    ModelSize,
    Strategy,
    Workload,
)
from tests.perfmodel.example_clusters import fleet_of, host, model, nodes, step_s, workload

SHARP = 400.0  # an overlap power that leaves nothing to round off
IDEAL: dict[str, Any] = {
    "gpu_spread_fraction": 0.0,
    "link_spread_fraction": 0.0,
    "two_node_loss": 0.0,
    "hop_loss": 0.0,
    "overlap_power": SHARP,
}


def work(*, links: dict[str, Links] | None = None, **tuning: float) -> Workload:
    """Return 0.2 s of compute and 100 MB of gradients, without any friction."""
    return workload(
        Strategy.ALLREDUCE, allreduce=AllreduceTuning(**{**IDEAL, **tuning}, links=links or {})
    )


def pipeline_s(compute_s: float, sync_s: float, *, head: float, buckets: int = 4000) -> float:
    """Play DDP: bucket i is ready during the backward pass and waits for the one before it."""
    end = 0.0
    for i in range(buckets):
        ready = compute_s * (head + (1 - head) * i / (buckets - 1))
        end = max(ready, end) + sync_s / buckets
    return max(compute_s, end)


@pytest.mark.parametrize("network_mbps", [500.0, 2_000.0, 5_000.0, 64_000.0])
@pytest.mark.parametrize(
    "buckets",
    [
        [(1.0, 1.0)],
        [(0.42, 0.1), (1.0, 0.9)],
        [(0.4, 0.04), (0.72, 0.54), (0.95, 0.42)],
    ],
)
def test_known_buckets_are_sent_one_after_another(
    buckets: list[tuple[float, float]], network_mbps: float
) -> None:
    sync_s = 2 * 3 / 4 * 800 / network_mbps
    end_s = 0.0
    for ready, share in buckets:
        end_s = max(0.2 * ready, end_s) + share * sync_s
    cut = tuple(GradientBucket(ready_fraction=r, bytes_fraction=b) for r, b in buckets)
    links = {"g.small": Links(network_mbps=network_mbps)}
    tuning = AllreduceTuning(**IDEAL, links=links, buckets=cut)

    found = step_s(workload(Strategy.ALLREDUCE, allreduce=tuning), [nodes(host(), 4)])

    assert found == pytest.approx(max(0.2, end_s), rel=0.005)


def test_buckets_that_hold_more_or_less_than_all_gradients_are_refused() -> None:
    half = GradientBucket(ready_fraction=1.0, bytes_fraction=0.5)

    with pytest.raises(ValueError, match=r"all gradients together, got 0\.5"):
        AllreduceTuning(buckets=(half,))


@pytest.mark.parametrize("head", [0.1, 0.45, 0.9])
@pytest.mark.parametrize("network_mbps", [500.0, 2_000.0, 5_000.0, 8_000.0, 64_000.0])
@pytest.mark.parametrize("count", [2, 3, 16])
def test_a_step_is_what_the_bucket_pipeline_takes(
    head: float, network_mbps: float, count: int
) -> None:
    sync_s = 2 * (count - 1) / count * 800 / network_mbps  # 100 MB are 800 Mbit
    links = {"g.small": Links(network_mbps=network_mbps)}

    found = step_s(work(links=links, head_fraction=head), [nodes(host(), count)])

    assert found == pytest.approx(pipeline_s(0.2, sync_s, head=head), rel=0.003)


def test_one_gpu_exchanges_nothing() -> None:
    alone = model(work(overlap_power=2.0), [nodes(host())])

    (terms,) = alone.terms(fleet_of(1)[:, 0])

    assert terms.total_s == terms.compute_s == pytest.approx(0.2)
    assert alone.speed(fleet_of(1)).communication_fraction[0] == 0.0


def test_the_slowest_network_of_the_nodes_present_decides() -> None:
    slow = host("g.slow", network_baseline_mbps=1_000)
    mixed = model(work(), [nodes(host()), nodes(slow)])
    all_slow = model(work(), [nodes(slow)])

    assert mixed.speed(fleet_of(3, 1)).iteration_s == all_slow.speed(fleet_of(4)).iteration_s
    assert mixed.speed(fleet_of(4, 0)).iteration_s < all_slow.speed(fleet_of(4)).iteration_s


@pytest.mark.parametrize(
    ("friction", "count", "slowdown"),
    [
        ({"two_node_loss": 0.4}, 2, 1.4),
        ({"two_node_loss": 0.4}, 3, 1.0),
        ({"hop_loss": 0.01}, 4, 1.04),
        ({"link_spread_fraction": 0.2}, 4, math.exp(0.2 * 1.0491)),  # Blom: ndtri(3.625 / 4.25)
    ],
)
def test_each_friction_slows_the_links_between_nodes(
    friction: dict[str, Any], count: int, slowdown: float
) -> None:
    found = step_s(work(head_fraction=1.0, **friction), [nodes(host(), count)]) - 0.2

    assert found == pytest.approx(2 * (count - 1) / count * 0.1 * slowdown, rel=1e-4)


def test_every_micro_batch_pays_the_fixed_time_again() -> None:
    shared = workload(
        Strategy.ALLREDUCE,
        batch=GlobalBatch(sample_count=100, max_per_gpu_count=32),
        compute={"Small": ComputeProfile(fixed_s=0.05, per_sample_s=0.01)},
    )

    assert step_s(shared, [nodes(host())]) == pytest.approx(4 * 0.05 + 100 * 0.01)


def test_an_uneven_placement_is_the_sum_of_its_classes() -> None:
    box = host(gpu_count=4.0, pcie_mbps=4_000)
    uneven = model(work(), [nodes(box, gpus=4), nodes(box, gpus=2)])
    sharing = 0.2 * (1 + 0.05 * 3 / 4)  # four GPUs share a host: the slower nodes decide
    sync_s = 2 * 9 / 10 * 800 / 4_000

    speed = uneven.speed(fleet_of(2, 1))

    assert speed.iteration_s[0] == pytest.approx(pipeline_s(sharing, sync_s, head=0.45), rel=0.003)
    assert speed.weighted_batch[0] == pytest.approx(10 * 32)
    split = model(work(), [nodes(box, gpus=4), nodes(box, gpus=4), nodes(box, gpus=2)])
    assert split.speed(fleet_of(1, 1, 1)).iteration_s == speed.iteration_s


def test_efa_reaches_most_of_the_line_rate_and_tcp_one_flow() -> None:
    def seconds(efa: int) -> float:
        links = host(network_baseline_mbps=100_000, efa_interface_count=efa, pcie_mbps=1e9)
        tuning = work(head_fraction=1.0)
        return step_s(tuning, [nodes(links, 4)]) - 0.2

    ring_mbit = 2 * 3 / 4 * 800
    assert seconds(efa=1) == pytest.approx(ring_mbit / (0.8 * 100_000), rel=1e-6)
    assert seconds(efa=0) == pytest.approx(ring_mbit / 10_000, rel=1e-6)


def test_a_type_with_efa_that_is_not_in_the_fleet_changes_nothing() -> None:
    tuned = workload(Strategy.ALLREDUCE)  # spreads and losses by kind of network
    efa = host("g.efa", efa_interface_count=1)
    together = model(tuned, [nodes(host()), nodes(efa)])

    for count in (2, 5):
        alone_efa = model(tuned, [nodes(efa)]).speed(fleet_of(count)).iteration_s
        alone_tcp = model(tuned, [nodes(host())]).speed(fleet_of(count)).iteration_s
        assert together.speed(fleet_of(0, count)).iteration_s == alone_efa
        assert together.speed(fleet_of(count, 0)).iteration_s == alone_tcp


@pytest.mark.parametrize(("stage", "factor"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_zero_3_sends_half_as_much_again(stage: int, factor: int) -> None:
    tuning = AllreduceTuning(**{**IDEAL, "head_fraction": 1.0})
    sharded = workload(Strategy.ALLREDUCE, allreduce=tuning, memory=MemoryUse(zero_stage=stage))

    found = step_s(sharded, [nodes(host(), 4)])

    assert found - 0.2 == pytest.approx(factor * 3 / 4 * 800 / 8_000, rel=1e-6)


def test_inside_a_node_nvlink_or_pcie_decides_and_is_named() -> None:
    tuned = work(head_fraction=1.0)
    for nvlink, rate, name in ((1e6, 1e6, "nvlink"), (0.0, 80_000, "pcie")):
        box = nodes(host(gpu_count=4.0, nvlink_mbps=nvlink))
        (terms,) = model(tuned, [box]).terms(fleet_of(1)[:, 0])
        assert terms.by_name()[name] == pytest.approx(2 * 3 / 4 * 800 / rate, rel=0.05)


def test_the_exposed_part_of_the_exchange_between_nodes_is_named_network() -> None:
    (terms,) = model(work(head_fraction=1.0), [nodes(host(), 4)]).terms(fleet_of(4)[:, 0])

    assert terms.network_s == pytest.approx(2 * 3 / 4 * 800 / 8_000, rel=1e-6)
    assert terms.pcie_s == terms.nvlink_s == 0.0


@given(counts=st.lists(st.integers(1, 60), min_size=1, max_size=6, unique=True).map(sorted))
def test_more_nodes_never_shorten_the_step_of_a_fixed_batch(counts: list[int]) -> None:
    tuned = workload(Strategy.ALLREDUCE, allreduce=AllreduceTuning(two_node_loss=0.0))
    ddp = model(tuned, [nodes(host(gpu_count=4.0))])

    steps = [float(ddp.speed(fleet_of(count)).iteration_s[0]) for count in counts]
    compute = [ddp.terms(fleet_of(count)[:, 0])[0].compute_s for count in counts]

    assert steps == sorted(steps)
    assert compute == sorted(compute)


@given(count=st.integers(1, 64))
def test_a_whole_batch_stays_whole_however_many_gpus_share_it(count: int) -> None:
    shared = workload(
        Strategy.ALLREDUCE,
        batch=GlobalBatch(sample_count=512),
        compute={
            "Small": ComputeProfile(fixed_s=0.01, per_sample_s=0.01),
            "Large": ComputeProfile(fixed_s=0.02, per_sample_s=0.002),
        },
    )
    mixed = model(shared, [nodes(host()), nodes(host("g.large", "Large"))])

    assert mixed.speed(fleet_of(count, 2)).weighted_batch[0] == pytest.approx(512)


def test_a_starved_gpu_waits_for_its_samples() -> None:
    hungry = workload(
        Strategy.ALLREDUCE, input=InputPipeline(prep_samples_per_s_per_vcpu=2)
    )  # 8 vCPUs prepare 16 samples/s, a step takes 32

    (terms,) = model(hungry, [nodes(host())]).terms(fleet_of(1)[:, 0])

    assert terms.total_s == pytest.approx(2.0)
    assert terms.input_stall_s == pytest.approx(1.8)


def test_compression_and_size_set_the_volume() -> None:
    def network_s(size: float, ratio: float) -> float:
        sized = workload(
            Strategy.ALLREDUCE,
            model=ModelSize(parameter_bytes=size),
            allreduce=AllreduceTuning(**{**IDEAL, "head_fraction": 1.0}, compression_ratio=ratio),
        )
        return step_s(sized, [nodes(host(), 4)]) - 0.2

    assert network_s(400e6, 4.0) == pytest.approx(network_s(100e6, 1.0), rel=1e-6)
    assert network_s(400e6, 1.0) == pytest.approx(4 * network_s(100e6, 1.0), rel=1e-6)


def test_an_unknown_network_is_a_missing_fact_with_a_way_out() -> None:
    with pytest.raises(MissingFactError, match=r"add workload.allreduce.links.g\.small.network"):
        step_s(work(), [nodes(host(network_baseline_mbps=None), 2)])
