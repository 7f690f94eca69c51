"""Does it fit? What training keeps on one GPU.

    parameters + gradients + optimiser state, each divided by the GPUs that ZeRO spreads it over,
    + activations per sample * batch + what the runtime reserves

With parameter servers the optimiser state lives on the servers. A share of a global batch that is
too large for one GPU is worked off in micro-batches, so that only one of them is held at a time.
"""

import math
from typing import TYPE_CHECKING, TypeVar

from spotwright.domain.errors import MemoryDoesNotFitError
from spotwright.domain.hardware import InstanceType, Precision
from spotwright.domain.workload import GlobalBatch, Strategy, Workload

if TYPE_CHECKING:
    from spotwright.perfmodel.step_model import Floats  # listing offers needs no numpy

_BYTES = {Precision.FP32: 4, Precision.FP16: 2, Precision.BF16: 2}

Numbers = TypeVar("Numbers", float, "Floats")


def gpu_memory_gib(workload: Workload, *, batch_per_gpu: Numbers, gpu_count: Numbers) -> Numbers:
    """Return the memory one GPU needs in a cluster of `gpu_count` GPUs."""
    use, element_bytes = workload.memory, _BYTES[workload.model.precision]
    parameter_count = workload.model.parameter_count
    if parameter_count is None:
        parameter_count = workload.model.parameter_bytes / element_bytes
    states = [
        (element_bytes, 3),
        (element_bytes, 2),
        (use.optimizer_bytes_per_parameter if _keeps_optimizer(workload) else 0.0, 1),
    ]
    whole = sum(size for size, sharded_from in states if use.zero_stage < sharded_from)
    sharded = sum(size for size, sharded_from in states if use.zero_stage >= sharded_from)
    per_parameter = whole + sharded / gpu_count
    activations = use.activation_bytes_per_sample * batch_per_gpu
    return (parameter_count * per_parameter + activations + use.reserved_bytes) / 2**30


def available_gib(instance_type: InstanceType) -> float | None:
    """Return the memory of one GPU, of a shared one only the share; None where there is none."""
    return (instance_type.gpu_memory_gib or None) if instance_type.gpu_name else None


def largest_batch(workload: Workload) -> float:
    """Return how many samples of a global batch one GPU may hold at a time."""
    rule = workload.batch
    largest = rule.max_per_gpu_count if isinstance(rule, GlobalBatch) else None
    return math.inf if largest is None else float(largest)


def least_gpu_count(
    workload: Workload, instance_type: InstanceType, *, batch_per_gpu: float
) -> float:
    """Return how many GPUs ZeRO must spread its state over for a type to have room; or infinity."""
    available = available_gib(instance_type)
    if available is None:
        return 1.0
    alone = gpu_memory_gib(workload, batch_per_gpu=batch_per_gpu, gpu_count=1.0)
    unshared = gpu_memory_gib(workload, batch_per_gpu=batch_per_gpu, gpu_count=math.inf)
    if alone <= available:
        return 1.0
    return (alone - unshared) / (available - unshared) if unshared < available else math.inf


def check_memory(
    workload: Workload, instance_type: InstanceType, *, batch_per_gpu: float, gpu_count: float
) -> float | None:
    """Return the memory one GPU needs, or None where the device has no GPU memory.

    Raises:
        MemoryDoesNotFitError: it is more than the GPU has.
    """
    available = available_gib(instance_type)
    if available is None:
        return None
    held = min(batch_per_gpu, largest_batch(workload))
    needed = gpu_memory_gib(workload, batch_per_gpu=held, gpu_count=gpu_count)
    if needed > available:
        raise MemoryDoesNotFitError(
            device=f"{instance_type.gpu_name} ({instance_type.name})",
            needed_gib=needed,
            available_gib=available,
            batch=round(held),
        )
    return needed


def _keeps_optimizer(workload: Workload) -> bool:
    return workload.strategy is Strategy.ALLREDUCE
