"""A workload for a model that was never run, from its FLOPs and the models that were.

The law is fitted to the step of a lone GPU: compute as calibrated, and what servers and links add
by the strategy's own model. The compute of the new model is what its own servers and links leave of
the step that the law gives. A law of the calibrated compute alone errs more on models left out:
4.9 and 9.1 % instead of 4.6 and 8.8 % (CM-DARE, 11 models on K80 and P100).
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from spotwright.domain.errors import CannotFitError
from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.job import JobSpec
from spotwright.domain.measurement import Configuration
from spotwright.domain.workload import ComputeProfile, FixedBatch, StepInterval
from spotwright.perfmodel.batch import batch_per_gpu
from spotwright.perfmodel.compute import GpuFacts, measured_compute
from spotwright.perfmodel.laws.flops_law import FlopsLaw, ModelFacts, fit_flops_law
from spotwright.perfmodel.parameter_server import server_demand
from spotwright.perfmodel.predict import evaluate_step
from spotwright.perfmodel.uncertainty import Z90
from spotwright.usecases.configured_fleets import MEASURED_NETWORK, job_of_row

_MODEL_SD = 0.05  # of everything but compute
_LEAST_COMPUTE_FRACTION = 0.05  # of a step that the law gives less time than its servers take


def job_of_unmeasured_model(
    row: Configuration, jobs: Mapping[str, JobSpec], fleet: Fleet, gpu_facts: GpuFacts
) -> JobSpec | None:
    """Return a job for a row's model, or None where FLOPs are not known well enough.

    Args:
        row: names the model and its size.
        jobs: of models that were measured, all of the row's strategy.
        fleet: of the row.
        gpu_facts: looks GPUs up by name.
    """
    if row.flops_per_sample is None or row.parameter_bytes is None:
        return None
    job = job_of_row(row, next(iter(jobs.values())))
    compute, doubt = {}, 0.0
    for device, lone in _lone_gpus(fleet).items():
        law, facts = _law(jobs, lone, gpu_facts), _facts(job, lone)
        if law is None or facts is None:
            return None
        step_s = law.step_s(facts)
        seconds = max(step_s - _other_s(job, lone, gpu_facts), _LEAST_COMPUTE_FRACTION * step_s)
        compute[device] = ComputeProfile(per_sample_s=seconds / row.batch_per_gpu)
        doubt = max(doubt, law.relative_sd)
    interval = StepInterval(
        low_quantile=-Z90, high_quantile=Z90, base_scale=math.hypot(doubt, _MODEL_SD)
    )
    return replace(job, workload=replace(job.workload, compute=compute, interval=interval))


def _lone_gpus(fleet: Fleet) -> dict[str, Fleet]:
    """Return by device one GPU of the fleet with all its servers."""
    return {
        group.device: Fleet(nodes=(_lone(group), *fleet.servers))
        for group in sorted(fleet.workers, key=lambda group: group.device)
    }


def _lone(group: NodeGroup) -> NodeGroup:
    return replace(group, node_count=1, gpus_per_node=min(group.gpus_per_node, 1.0))


def _law(jobs: Mapping[str, JobSpec], lone: Fleet, gpu_facts: GpuFacts) -> FlopsLaw | None:
    points = []
    for job in jobs.values():
        profile = job.workload.compute.get(lone.workers[0].device)
        facts = _facts(job, lone)
        if profile is not None and facts is not None:
            compute_s = measured_compute(profile).step_s(facts.batch)
            points.append((facts, compute_s + _other_s(job, lone, gpu_facts)))
    try:
        return fit_flops_law(points)
    except CannotFitError:
        return None


def _facts(job: JobSpec, lone: Fleet) -> ModelFacts | None:
    model, rule = job.workload.model, job.workload.batch
    if model.flops_per_sample is None or not isinstance(rule, FixedBatch) or not rule.per_gpu_count:
        return None
    servers = server_demand(job.workload, lone.servers, MEASURED_NETWORK) if lone.servers else None
    return ModelFacts(
        flops_per_sample=model.flops_per_sample,
        batch=rule.per_gpu_count,
        tensor_count=model.tensor_count or 1,
        known_s=servers.cpu_demand_s if servers else 0.0,
    )


def _other_s(job: JobSpec, lone: Fleet, gpu_facts: GpuFacts) -> float:
    """Return what a step takes beside compute."""
    samples = float(batch_per_gpu(job.workload, lone.workers[0].instance_type))
    a_second_each = {lone.workers[0].device: ComputeProfile(per_sample_s=1.0)}
    timed = replace(
        job,
        workload=replace(job.workload, compute=a_second_each),
        limits=replace(job.limits, network=MEASURED_NETWORK),
    )
    return float(evaluate_step(timed, lone, gpu_facts).speed.iteration_s[0]) - samples
