"""Jobs to plan for. The market is real; everything about a job is made up, as stated here.

Samples/s of one GPU = 1 / (24.6 GFLOP / (0.35 * fp16 peak) + 0.25 GB / memory bandwidth), 10 ms on
top of every step. Batches fill the memory, 2^floor(log2(4 * GiB)), up to a cap. The loss laws:

    fitted       c = (200, -6, 4000, 0.5, 0.2), batches to 64, whole GPUs only: as fits are
    adversarial  c = (200, -1.2, 4000, 0.1, 0.2), batches to 256: one huge worker and a crowd
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from benchmarks.planner.markets import catalog, quotas
from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    Contention,
    FixedBatch,
    MemoryUse,
    ModelSize,
    ParameterServing,
    SpotdnnLoss,
    Strategy,
    Workload,
)

QUOTA = 16
LOSS = 0.4
_GFLOP_PER_SAMPLE, _GB_PER_SAMPLE, _EFFICIENCY = 24.6, 0.25, 0.35
_GUESSED_TFLOPS = {"T4g": 60.0, "RTX PRO 4500 Server": 250.0}  # the catalog has no figure
_GUESSED_GBYTES_PER_S = {"T4g": 320.0}


@dataclass(frozen=True, slots=True)
class Law:
    """A loss law with the batches it is used at."""

    name: str
    c2: float
    c4: float
    most_batch: int
    fractional_gpus: bool


FITTED = Law("fitted", c2=-6.0, c4=0.5, most_batch=64, fractional_gpus=False)
ADVERSARIAL = Law("adversarial", c2=-1.2, c4=0.1, most_batch=256, fractional_gpus=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Bytes, and the servers that take them."""

    name: str
    parameter_mb: float
    tensor_count: int
    server_types: frozenset[str]
    server_gbytes_per_s: float
    requested_mbytes_per_s: float
    slope: float = 0.12
    offset: float = 0.1

    def parameter_serving(self, contention: Contention) -> ParameterServing:
        """Return how parameters are served; queueing takes bandwidths from the catalog."""
        if contention is Contention.QUEUEING:
            return ParameterServing(default_type=min(self.server_types))
        return ParameterServing(
            default_type=min(self.server_types),
            contention=contention,
            bandwidth_mbps=8e3 * self.server_gbytes_per_s,
            requested_mbps=8 * self.requested_mbytes_per_s,
            contention_slope=self.slope,
            contention_offset=self.offset,
        )


LARGE = Serving(
    name="100 MB",
    parameter_mb=100.0,
    tensor_count=161,
    server_types=frozenset({"c5n.18xlarge"}),
    server_gbytes_per_s=12.5,
    requested_mbytes_per_s=562.0,
)
SMALL = Serving(
    name="11.5 MB",
    parameter_mb=11.54,
    tensor_count=333,
    server_types=frozenset({"m5.xlarge"}),
    server_gbytes_per_s=1.2,
    requested_mbytes_per_s=142.0,
)
# A server that hardly slows anyone down: fleets of more than 30 nodes pay.
ROOMY = Serving(
    name="100 MB, roomy server",
    parameter_mb=100.0,
    tensor_count=161,
    server_types=frozenset({"c6in.16xlarge"}),
    server_gbytes_per_s=60.0,
    requested_mbytes_per_s=562.0,
    slope=0.05,
    offset=0.05,
)


def loss_job(law: Law, serving: Serving, contention: Contention) -> JobSpec:
    """Return an asynchronous job that trains to a loss."""
    workload = Workload(
        strategy=Strategy.ASP_PS,
        model=ModelSize(
            parameter_bytes=serving.parameter_mb * 1e6, tensor_count=serving.tensor_count
        ),
        batch=FixedBatch(by_device=_batches(law.most_batch)),
        compute=_profiles(),
        memory=MemoryUse(reserved_bytes=0.0),
        parameter_serving=serving.parameter_serving(contention),
        convergence=SpotdnnLoss(
            c1=200.0,
            c2=law.c2,
            c3=4000.0,
            c4=law.c4,
            c5=0.2,
            batch_range=(1.0, 8.0 * law.most_batch),
        ),
        pcie_mbps=80e3,
    )
    fractional = frozenset() if law.fractional_gpus else _fractional_types()
    return JobSpec(
        name=f"{law.name}, {serving.name}, {contention}",
        workload=workload,
        goal=Goal(target=Target(kind=TargetKind.LOSS, value=LOSS)),
        limits=replace(
            _limits(), excluded_types=fractional, parameter_server_types=serving.server_types
        ),
    )


def samples_job(law: Law, serving: Serving, contention: Contention) -> JobSpec:
    """Return an asynchronous job that has a number of samples to work off."""
    job = loss_job(law, serving, contention)
    return replace(
        job,
        name=f"samples, {serving.name}, {contention}",
        workload=replace(job.workload, convergence=None),
        goal=Goal(target=Target(kind=TargetKind.SAMPLES, value=2e8)),
    )


def ring_job() -> JobSpec:
    """Return a long all-reduce job of ResNet-50's size."""
    return JobSpec(
        name="resnet50",
        workload=Workload(
            strategy=Strategy.ALLREDUCE,
            model=ModelSize(parameter_bytes=102e6, tensor_count=161, parameter_count=25.6e6),
            batch=FixedBatch(by_device=_batches(128)),
            compute=_profiles(),
            memory=MemoryUse(reserved_bytes=0.0),
            allreduce=AllreduceTuning(),
        ),
        goal=Goal(target=Target(kind=TargetKind.SAMPLES, value=1e10)),
        limits=_limits(),
    )


def within(job: JobSpec, deadline_s: float) -> JobSpec:
    """Return a job with a deadline."""
    return replace(job, goal=replace(job.goal, deadline_s=deadline_s))


def per_pool(job: JobSpec, count: int, placement: Placement = Placement.ONE_REGION) -> JobSpec:
    """Return a job that may rent only so many nodes of each pool, instead of each type."""
    limits = replace(
        job.limits, max_count_by_type={}, max_count_per_pool=count, placement=placement
    )
    return replace(job, limits=limits)


def _limits() -> Limits:
    return Limits(max_nodes=64, max_count_by_type=quotas(QUOTA))


@cache
def _profiles() -> Mapping[str, ComputeProfile]:
    profiles = {}
    for name in sorted({kind.gpu_name for kind in catalog().instance_types() if kind.gpu_name}):
        gpu = catalog().gpu(name)
        tflops = _GUESSED_TFLOPS.get(name, (gpu.fp16_flops or gpu.fp32_flops or 0.0) / 1e12)
        gbytes_per_s = _GUESSED_GBYTES_PER_S.get(name, (gpu.memory_mbps or 0.0) / 8e3)
        profiles[name] = ComputeProfile(
            fixed_s=0.01,
            per_sample_s=_GFLOP_PER_SAMPLE / (_EFFICIENCY * tflops * 1e3)
            + _GB_PER_SAMPLE / gbytes_per_s,
        )
    return profiles


@cache
def _batches(most: int) -> Mapping[str, int]:
    return {
        kind.name: min(most, 2 ** math.floor(math.log2(max(1.0, 4 * kind.gpu_memory_gib))))
        for kind in catalog().instance_types()
        if kind.gpu_count
    }


@cache
def _fractional_types() -> frozenset[str]:
    return frozenset(k.name for k in catalog().instance_types() if 0 < k.gpu_count < 1)
