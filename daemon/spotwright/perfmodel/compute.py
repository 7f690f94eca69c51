"""Seconds one GPU computes per step, measured or derived.

A profile measured on that instance type or GPU is taken as it is. For a GPU never measured, the
time per sample lies between two roofs: t_ref * peak_ref / peak (compute-bound) and
t_ref * memory_ref / memory (bandwidth-bound). The geometric mean is the estimate and the distance
of the roofs its uncertainty. Where nothing was measured at all, FLOPs / (efficiency * peak).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from spotwright.domain.errors import MissingFactError, UnknownNameError
from spotwright.domain.hardware import Gpu, InstanceType, Precision
from spotwright.domain.workload import ComputeProfile, Workload

MEASURED_SD = 0.03  # spread between equal instances, where the job does not say
ROOFLINE_SD = 0.35  # rms error of three transfers that were measured: K80 to P100, T4 to V100
PEAK_SD = 0.40  # from the data sheet and a guessed efficiency

GpuFacts = Callable[[str], Gpu]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeEstimate:
    """Compute time at batch b per GPU: (fixed_s^k + (per_sample_s * b)^k)^(1/k), k the knee."""

    fixed_s: float
    per_sample_s: float
    knee: float = 1.0
    source: str  # measured, roofline or data sheet
    device_sd: float  # relative, between equal devices
    model_sd: float  # relative, of the estimate itself

    def step_s(self, batch_per_gpu: float) -> float:
        """Return the compute time of one step."""
        work_s = self.per_sample_s * batch_per_gpu
        larger, smaller = max(self.fixed_s, work_s), min(self.fixed_s, work_s)
        return larger * math.pow(1 + math.pow(smaller / larger, self.knee), 1 / self.knee)


def estimate_compute(
    workload: Workload, instance_type: InstanceType, gpu_facts: GpuFacts
) -> ComputeEstimate:
    """Return the best figure there is for a device.

    Raises:
        MissingFactError: nothing was measured and no FLOPs or peak rate are known.
    """
    if instance_type.name in workload.compute:
        return measured_compute(workload.compute[instance_type.name])
    return _share(_whole_gpu(workload, instance_type, gpu_facts), instance_type.gpu_count)


def _whole_gpu(
    workload: Workload, instance_type: InstanceType, gpu_facts: GpuFacts
) -> ComputeEstimate:
    profile = workload.compute.get(instance_type.gpu_name or "")
    if profile is not None:
        return measured_compute(profile)
    gpu = _gpu(instance_type, gpu_facts)
    references = _references(workload, gpu_facts)
    if references:
        return _roofline(gpu, references, workload.model.precision)
    return _data_sheet(gpu, workload)


def measured_compute(profile: ComputeProfile) -> ComputeEstimate:
    """Return a measured profile as an estimate."""
    spread = profile.relative_sd if profile.relative_sd is not None else MEASURED_SD
    return ComputeEstimate(
        fixed_s=profile.fixed_s,
        per_sample_s=profile.per_sample_s,
        knee=profile.knee,
        source="measured",
        device_sd=spread,
        model_sd=0.0,
    )


def _gpu(instance_type: InstanceType, gpu_facts: GpuFacts) -> Gpu:
    if instance_type.gpu_name is None:
        raise MissingFactError(
            f"the compute time on {instance_type.name}, which has no GPU,",
            way_out=f"add workload.compute.{instance_type.name}",
        )
    return gpu_facts(instance_type.gpu_name)


def _references(workload: Workload, gpu_facts: GpuFacts) -> list[tuple[Gpu, ComputeProfile]]:
    found = []
    for device, profile in sorted(workload.compute.items()):
        try:
            found.append((gpu_facts(device), profile))
        except UnknownNameError:
            continue  # an instance type: its profile says nothing about other hosts
    return found


def _roofline(
    gpu: Gpu, references: list[tuple[Gpu, ComputeProfile]], precision: Precision
) -> ComputeEstimate:
    """Average, in logarithms, what each measured GPU says about this one."""
    logs, distances, profiles = [], [], []
    for reference, profile in references:
        by_peak = _ratio(reference.peak_flops(precision), gpu.peak_flops(precision))
        by_memory = _ratio(reference.memory_mbps, gpu.memory_mbps)
        roofs = [roof for roof in (by_peak, by_memory) if roof is not None]
        if not roofs:
            continue
        middle = sum(math.log(roof) for roof in roofs) / len(roofs)
        logs.append(math.log(profile.per_sample_s) + middle)
        distances.append(abs(math.log(roofs[0] / roofs[-1])) / 2)
        profiles.append(profile)
    if not logs:
        raise _no_facts(gpu)
    closest = min(range(len(logs)), key=lambda i: distances[i])
    return ComputeEstimate(
        fixed_s=sum(profile.fixed_s for profile in profiles) / len(profiles),
        per_sample_s=math.exp(sum(logs) / len(logs)),
        knee=profiles[closest].knee,
        source="roofline",
        device_sd=MEASURED_SD,
        model_sd=math.hypot(ROOFLINE_SD, distances[closest] / 2),
    )


def _data_sheet(gpu: Gpu, workload: Workload) -> ComputeEstimate:
    flops, peak = workload.model.flops_per_sample, gpu.peak_flops(workload.model.precision)
    if flops is None:
        raise MissingFactError(
            f"the compute time on {gpu.name}",
            way_out=f"add workload.compute.{gpu.name} or workload.model.flops_per_sample",
        )
    if peak is None:
        raise _no_facts(gpu)
    return ComputeEstimate(
        fixed_s=0.0,
        per_sample_s=flops / (workload.efficiency_fraction * peak),
        source="data sheet",
        device_sd=MEASURED_SD,
        model_sd=PEAK_SD,
    )


def _share(estimate: ComputeEstimate, gpu_count: float) -> ComputeEstimate:
    """Slow an estimate down on an instance that carries a fraction of a GPU."""
    if not 0 < gpu_count < 1:
        return estimate
    return replace(estimate, per_sample_s=estimate.per_sample_s / gpu_count)


def _ratio(reference: float | None, wanted: float | None) -> float | None:
    return reference / wanted if reference and wanted else None


def _no_facts(gpu: Gpu) -> MissingFactError:
    return MissingFactError(
        f"the speed of {gpu.name}, whose peak rate is not published,",
        way_out=f"measure it and add workload.compute.{gpu.name}",
    )
