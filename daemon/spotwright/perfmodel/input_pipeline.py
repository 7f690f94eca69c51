"""How fast one node can be fed (DS-Analyzer's what-if).

    fetch seconds per sample = cached * bytes / memory rate + (1 - cached) * bytes / disk rate
    node rate = min(fetch rate, vCPUs * prep rate per vCPU)

A step whose samples arrive later than it computes waits for the difference.
"""

import math

from spotwright.domain.errors import MissingFactError
from spotwright.domain.hardware import InstanceType
from spotwright.domain.workload import Workload


def node_input_rate(workload: Workload, instance_type: InstanceType) -> float:
    """Return the samples/s that one node can be fed; infinite where the job says nothing."""
    pipeline = workload.input
    if pipeline is None:
        return math.inf
    prep = pipeline.prep_samples_per_s_per_vcpu
    prep_rate = prep * instance_type.vcpu_count if prep else math.inf
    return min(prep_rate, _fetch_rate(workload, instance_type))


def _fetch_rate(workload: Workload, instance_type: InstanceType) -> float:
    pipeline, dataset = workload.input, workload.dataset
    if pipeline is None or dataset is None or dataset.size_bytes is None:
        return math.inf
    sample_megabits = dataset.size_bytes * 8e-6 / dataset.sample_count
    uncached = 1 - pipeline.cached_fraction
    fetch_s = pipeline.cached_fraction * sample_megabits / pipeline.memory_mbps
    if uncached > 0:
        disk_mbps = pipeline.disk_mbps or instance_type.disk_mbps
        if disk_mbps is None:
            raise MissingFactError(
                f"the disk rate of {instance_type.name}", way_out="add workload.input.disk"
            )
        fetch_s += uncached * sample_megabits / disk_mbps
    return 1 / fetch_s
