"""A workload for a model that was never run, from its FLOPs and the models that were."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from spotwright.domain.errors import CannotFitError
from spotwright.domain.job import JobSpec
from spotwright.domain.measurement import Configuration
from spotwright.domain.workload import ComputeProfile, FixedBatch, StepInterval, Workload
from spotwright.perfmodel.compute import measured_compute
from spotwright.perfmodel.laws.flops_law import FlopsLaw, ModelFacts, fit_flops_law
from spotwright.perfmodel.uncertainty import Z90

_MODEL_SD = 0.05  # of everything but compute


def job_of_unmeasured_model(
    row: Configuration, jobs: Mapping[str, JobSpec], devices: Iterable[str]
) -> JobSpec | None:
    """Return a job for a row's model, or None where FLOPs are not known well enough.

    The compute time on each device comes from a regression over the models measured there.
    """
    facts = _facts(row.flops_per_sample, row.batch_per_gpu, row.tensor_count, row.parameter_bytes)
    if facts is None:
        return None
    compute, doubt = {}, 0.0
    for device in devices:
        law = _law(list(jobs.values()), device)
        if law is None:
            return None
        seconds = law.step_s(facts)
        compute[device] = ComputeProfile(per_sample_s=seconds / row.batch_per_gpu)
        doubt = max(doubt, law.relative_sd)
    template = next(iter(jobs.values()))
    interval = StepInterval(
        low_quantile=-Z90, high_quantile=Z90, base_scale=math.hypot(doubt, _MODEL_SD)
    )
    return replace(
        template, workload=replace(template.workload, compute=compute, interval=interval)
    )


def _law(jobs: Sequence[JobSpec], device: str) -> FlopsLaw | None:
    points = [point for job in jobs if (point := _point(job.workload, device)) is not None]
    if not points:
        return None
    try:
        return fit_flops_law(points, server_s_per_tensor=0.0, server_s_per_byte=0.0)
    except CannotFitError:
        return None


def _point(workload: Workload, device: str) -> tuple[ModelFacts, float] | None:
    profile, rule = workload.compute.get(device), workload.batch
    if profile is None or not isinstance(rule, FixedBatch) or rule.per_gpu_count is None:
        return None
    model, batch = workload.model, rule.per_gpu_count
    facts = _facts(model.flops_per_sample, batch, model.tensor_count, model.parameter_bytes)
    return (facts, measured_compute(profile).step_s(batch)) if facts else None


def _facts(
    flops: float | None, batch: int, tensors: int | None, size: float | None
) -> ModelFacts | None:
    if flops is None or size is None:
        return None
    return ModelFacts(
        flops_per_sample=flops, batch=batch, tensor_count=tensors or 1, parameter_bytes=size
    )
