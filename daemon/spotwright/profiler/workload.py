"""From a profile to the workload of a job file.

Counted figures hold everywhere and are written whatever the profile ran on. Measured speed is
written for the GPU it was measured on, and for no CPU. What a profile cannot tell, such as the
strategy, the loss law and what servers cost, is kept from the job it is written into.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from spotwright.domain.hardware import Gpu
from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    Dataset,
    FixedBatch,
    InputPipeline,
    MemoryUse,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.profiler.profile import Profile

_PLACEHOLDER_EPOCHS, _PLACEHOLDER_SAMPLES = 10.0, 1e6
_PLACEHOLDER_REGION, _PLACEHOLDER_NODES = "us-east-1", 16
_MEMORY_TOLERANCE = 0.2  # boards report a little less than their data sheet


def profiled_job(profile: Profile, *, strategy: Strategy, gpus: Iterable[Gpu]) -> JobSpec:
    """Return a job of its own, whose goal and limits are placeholders."""
    together = strategy is Strategy.ALLREDUCE
    model = _model_size(profile)
    empty = Workload(
        strategy=strategy,
        model=model,
        allreduce=AllreduceTuning() if together else None,
        parameter_serving=ParameterServing() if strategy.uses_parameter_servers else None,
    )
    workload = profiled_workload(profile, empty, gpus=gpus)
    target = (
        Target(kind=TargetKind.EPOCHS, value=_PLACEHOLDER_EPOCHS)
        if workload.dataset
        else Target(kind=TargetKind.SAMPLES, value=_PLACEHOLDER_SAMPLES)
    )
    return JobSpec(
        name=job_name(profile.options.target),
        workload=workload,
        goal=Goal(target=target),
        limits=Limits(  # all regions and 64 nodes would do, but such a search takes half a minute
            regions=frozenset({_PLACEHOLDER_REGION}),
            max_nodes=_PLACEHOLDER_NODES,
            placement=Placement.ONE_ZONE if together else Placement.ONE_REGION,
        ),
    )


def profiled_workload(
    profile: Profile, base: Workload, *, gpus: Iterable[Gpu], keep_batch: bool = False
) -> Workload:
    """Replace what was profiled; with `keep_batch` the job's own rule for batches stays."""
    batch = base.batch if keep_batch else FixedBatch(per_gpu_count=profile.options.batch)
    return replace(
        base,
        model=_model_size(profile),
        batch=batch,
        memory=_memory(profile, base.memory),
        compute={**base.compute, **_compute(profile, gpus)},
        dataset=_dataset(profile, base.dataset),
        input=_input(profile, base.input),
    )


def kept_notes(base: Workload) -> tuple[str, ...]:
    """Say which measured figures of the job were kept, for they may be of another model."""
    kept = [f"compute of {', '.join(sorted(base.compute))}"] if base.compute else []
    kept += ["loss law"] if base.convergence else []
    kept += ["interval"] if base.interval else []
    if not kept:
        return ()
    return (f"kept from the job: {'; '.join(kept)}; remove what was measured on another model",)


def job_name(target: str) -> str:
    """Return a name that job files may have."""
    stem = target.partition(":")[0].rpartition(".")[2] if ":" in target else PurePath(target).stem
    slug = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:63].strip("-")
    return slug or "profiled"


def catalog_gpu(device_name: str, memory_gib: float, gpus: Iterable[Gpu]) -> str | None:
    """Return what the catalog calls a GPU that CUDA names, told from variants by its memory."""
    words = set(re.split(r"[^A-Za-z0-9]+", device_name))
    misfit = {
        gpu.name: abs(memory_gib / gpu.memory_gib - 1)
        for gpu in gpus
        if gpu.name.partition("-")[0] in words
    }
    near = [name for name, gap in misfit.items() if gap <= _MEMORY_TOLERANCE]
    return min(near, key=lambda name: (round(misfit[name], 2), len(name)), default=None)


def _model_size(profile: Profile) -> ModelSize:
    sizes = profile.sizes
    return ModelSize(
        parameter_bytes=sizes.gradient_bytes,
        parameter_count=sizes.parameter_count,
        tensor_count=sizes.tensor_count,
        flops_per_sample=sizes.flops_per_sample,
        precision=sizes.precision,
    )


def _memory(profile: Profile, base: MemoryUse) -> MemoryUse:
    return replace(
        base,
        optimizer_bytes_per_parameter=profile.sizes.optimizer_bytes_per_parameter,
        activation_bytes_per_sample=profile.memory.bytes_per_sample,
    )


def _compute(profile: Profile, gpus: Iterable[Gpu]) -> dict[str, ComputeProfile]:
    name = (
        catalog_gpu(profile.device_name, profile.device_memory_gib, gpus)
        if profile.device_memory_gib is not None
        else None
    )
    if name is None:
        return {}
    law = profile.steps.law
    return {name: ComputeProfile(fixed_s=law.fixed_s.mid, per_sample_s=law.per_sample_s.mid)}


def _dataset(profile: Profile, base: Dataset | None) -> Dataset | None:
    fed = profile.input
    if fed is None:
        return base
    return Dataset(
        sample_count=fed.sample_count,
        size_bytes=fed.dataset_bytes,
        tokens_per_sample=base.tokens_per_sample if base else None,
    )


def _input(profile: Profile, base: InputPipeline | None) -> InputPipeline | None:
    if profile.input is None:
        return base
    rate = float(f"{profile.input.prepared_samples_per_s:.4g}")
    return replace(base or InputPipeline(), prep_samples_per_s_per_vcpu=rate)
