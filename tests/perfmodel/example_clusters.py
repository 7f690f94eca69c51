"""Small hardware and workloads with round figures, and a few lines to put them together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.hardware import Cloud, Gpu, InstanceType, Precision
from spotwright.domain.job import Goal, JobSpec, Limits, NetworkRate, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    FixedBatch,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.perfmodel.step_model import WorkerClass, worker_class
from spotwright.perfmodel.strategies import build_model

Floats = NDArray[np.float64]
GPUS = {
    "Small": Gpu(
        name="Small",
        architecture="X",
        memory_gib=16,
        memory_mbps=1e6,
        fp32_flops=10e12,
        fp16_flops=40e12,
        bf16_flops=None,
    ),
    "Large": Gpu(
        name="Large",
        architecture="X",
        memory_gib=80,
        memory_mbps=4e6,
        fp32_flops=20e12,
        fp16_flops=320e12,
        bf16_flops=None,
    ),
    "Secret": Gpu(
        name="Secret",
        architecture="X",
        memory_gib=80,
        memory_mbps=None,
        fp32_flops=None,
        fp16_flops=None,
        bf16_flops=None,
    ),
}


def gpu_facts(name: str) -> Gpu:
    return GPUS[name]


def host(name: str = "g.small", gpu: str | None = "Small", **changes: Any) -> InstanceType:
    facts: dict[str, Any] = {
        "vcpu_count": 8,
        "memory_gib": 64,
        "gpu_count": 1.0 if gpu else 0.0,
        "gpu_memory_gib": GPUS[gpu].memory_gib if gpu else 0.0,
        "network_baseline_mbps": 8_000.0,
        "pcie_mbps": 80_000.0,
        "disk_mbps": 4_000.0,
    }
    return InstanceType(name=name, cloud=Cloud.AWS, gpu_name=gpu, **(facts | changes))


def server(count: int = 1, **changes: Any) -> NodeGroup:
    return nodes(host("m.server", None, **({"vcpu_count": 4} | changes)), count, role=Role.PS)


def nodes(
    instance_type: InstanceType,
    count: int = 1,
    *,
    gpus: float | None = None,
    role: Role = Role.WORKER,
    offer: Offer | None = None,
) -> NodeGroup:
    used = instance_type.gpu_count if gpus is None else gpus
    return NodeGroup(
        role=role, instance_type=instance_type, node_count=count, gpus_per_node=used, offer=offer
    )


def offered(
    instance_type: InstanceType,
    count: int = 1,
    *,
    usd: float = 1.0,
    interrupted: float | None = None,
    role: Role = Role.WORKER,
) -> NodeGroup:
    """Return a group with a price; on spot if it can be interrupted."""
    market = Market.ON_DEMAND if interrupted is None else Market.SPOT
    offer = Offer(
        instance_type=instance_type,
        region="r1",
        zone="z1",
        market=market,
        price_usd_per_hour=usd,
        interruption_fraction=interrupted,
    )
    return nodes(instance_type, count, role=role, offer=offer)


def workload(strategy: Strategy, **changes: Any) -> Workload:
    """Return 100 MB of parameters, 32 samples per GPU and 0.2 s per step on a Small GPU."""
    parts: dict[str, Any] = {
        "model": ModelSize(parameter_bytes=100e6, tensor_count=10, precision=Precision.FP32),
        "batch": FixedBatch(per_gpu_count=32),
        "compute": {"Small": ComputeProfile(per_sample_s=0.2 / 32, relative_sd=0.0)},
        "parameter_serving": ParameterServing() if strategy.uses_parameter_servers else None,
        "allreduce": AllreduceTuning() if strategy is Strategy.ALLREDUCE else None,
    }
    return Workload(strategy=strategy, **(parts | changes))


def job(work: Workload, kind: TargetKind = TargetKind.STEPS, value: float = 1000) -> JobSpec:
    goal = Goal(target=Target(kind=kind, value=value))
    return JobSpec(name="example", workload=work, goal=goal, limits=Limits())


def classes(work: Workload, groups: Sequence[NodeGroup]) -> list[WorkerClass]:
    return [worker_class(work, group, gpu_facts, NetworkRate.BASELINE) for group in groups]


def model(work: Workload, groups: Sequence[NodeGroup], servers: Sequence[NodeGroup] = ()) -> Any:
    """Return the step model for these groups, with one server where the strategy needs it."""
    needed = servers or ([server()] if work.strategy.uses_parameter_servers else [])
    return build_model(job(work), classes(work, groups), needed, most_workers=64)


def fleet_of(*counts: float) -> Floats:
    """Return one fleet as a matrix with one column."""
    return np.array(counts, dtype=np.float64)[:, None]


def step_s(work: Workload, groups: Sequence[NodeGroup], servers: Sequence[NodeGroup] = ()) -> float:
    """Return the time between updates of one fleet."""
    counts = fleet_of(*(group.node_count for group in groups))
    return float(model(work, groups, servers).speed(counts).iteration_s[0])
