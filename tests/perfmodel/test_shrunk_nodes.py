"""Fleets with nodes that have become less, against arithmetic by hand."""

from typing import Any

import numpy as np
import pytest

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.hardware import Cloud, InstanceType
from spotwright.domain.job import Goal, JobSpec, Limits, NetworkRate, Target, TargetKind
from spotwright.domain.shrunk import Shrinkage
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    FixedBatch,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.perfmodel.shrunk_nodes import with_shrunk
from spotwright.perfmodel.step_model import worker_class
from spotwright.perfmodel.strategies import build_model

COMPUTE_S, BATCH = 0.8, 8
LINK_MBPS, MEGABYTES = 400.0, 5.0
PUSH_S = MEGABYTES * 8 / LINK_MBPS


def kind(name: str, mbps: float, gpus: int = 0) -> InstanceType:
    return InstanceType(
        name=name, cloud=Cloud.AWS, vcpu_count=4.0, memory_gib=4.0, gpu_count=gpus,
        gpu_name="G" if gpus else None, gpu_memory_gib=16.0 if gpus else 0.0,
        network_baseline_mbps=mbps,
    )  # fmt: skip


def job(strategy: Strategy) -> JobSpec:
    workload = Workload(
        strategy=strategy,
        model=ModelSize(parameter_bytes=round(MEGABYTES * 1e6), tensor_count=4),
        batch=FixedBatch(per_gpu_count=BATCH),
        compute={"G": ComputeProfile(fixed_s=0.0, per_sample_s=COMPUTE_S / BATCH, relative_sd=0)},
        parameter_serving=ParameterServing(
            cpu_s_per_tensor=0.0, cpu_s_per_byte=0.0, overlap_fraction=0.0
        ),
        allreduce=AllreduceTuning(
            head_fraction=1.0, gpu_spread_fraction=0.0, link_spread_fraction=0.0,
            two_node_loss=0.0, hop_loss=0.0, overlap_power=200.0,
        ),
        pcie_mbps=1e12,
    )  # fmt: skip
    return JobSpec(
        name="j",
        workload=workload,
        goal=Goal(target=Target(kind=TargetKind.STEPS, value=100)),
        limits=Limits(network=NetworkRate.BASELINE),
    )


def iteration_s(strategy: Strategy, *shrunk: Shrinkage, workers: int = 4) -> float:
    """Return the seconds between updates of equal workers, some of which have shrunk."""
    asked: Any = job(strategy)
    group = NodeGroup(
        role=Role.WORKER, instance_type=kind("w", LINK_MBPS, 1), node_count=workers,
        gpus_per_node=1, offer=None,
    )  # fmt: skip
    server = NodeGroup(
        role=Role.PS, instance_type=kind("s", 1e6), node_count=1, gpus_per_node=0, offer=None
    )
    whole = worker_class(asked.workload, group, None, NetworkRate.BASELINE)  # type: ignore[arg-type]
    classes, counts = with_shrunk([whole], [float(workers)], [(0, each) for each in shrunk])
    servers = [server] if strategy.uses_parameter_servers else []
    model = build_model(asked, classes, servers, most_workers=workers)
    return float(model.speed(np.array(counts)[:, None]).iteration_s[0])


def test_rates_of_asynchronous_workers_add_up() -> None:
    whole_s, slow_s = COMPUTE_S + 2 * PUSH_S, 2 * COMPUTE_S + 2 * PUSH_S
    cut_s = COMPUTE_S + 2 * 4 * PUSH_S

    found = iteration_s(
        Strategy.ASP_PS, Shrinkage(compute_factor=2.0), Shrinkage(network_mbps=LINK_MBPS / 4)
    )

    assert found == pytest.approx(1 / (2 / whole_s + 1 / slow_s + 1 / cut_s), rel=0.01)


@pytest.mark.parametrize("factor", [1.0, 1.3, 2.0, 5.0])
def test_the_slowest_synchronous_worker_sets_the_pace(factor: float) -> None:
    found = iteration_s(
        Strategy.BSP_PS, Shrinkage(compute_factor=factor), Shrinkage(compute_factor=1.0)
    )

    assert found == pytest.approx(factor * COMPUTE_S + 2 * PUSH_S, rel=0.01)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
def test_the_slowest_link_sets_the_pace_of_an_exchange_in_step(share: float) -> None:
    cut = Shrinkage(network_mbps=LINK_MBPS * share)
    ring_s = 2 * (4 - 1) / 4 * PUSH_S / share

    assert iteration_s(Strategy.BSP_PS, cut) == pytest.approx(
        COMPUTE_S + 2 * PUSH_S / share, rel=0.01
    )
    assert iteration_s(Strategy.ALLREDUCE, cut) == pytest.approx(COMPUTE_S + ring_s, rel=0.02)


def test_of_two_that_have_shrunk_each_slows_what_it_has_less_of() -> None:
    both = (Shrinkage(compute_factor=2.0), Shrinkage(network_mbps=LINK_MBPS / 4))

    assert iteration_s(Strategy.BSP_PS, *both) == pytest.approx(
        2 * COMPUTE_S + 8 * PUSH_S, rel=0.01
    )


def test_more_than_there_are_cannot_have_shrunk() -> None:
    with pytest.raises(ValueError, match="more nodes of class 0 have shrunk"):
        iteration_s(Strategy.BSP_PS, Shrinkage(), Shrinkage(), workers=1)


@pytest.mark.parametrize("bad", [{"compute_factor": 0.0}, {"network_mbps": 0.0}])
def test_nothing_left_is_no_shrunk_node(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Shrinkage(**bad)
