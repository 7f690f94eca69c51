"""Does it fit? What training keeps on one GPU.

    parameters + gradients + optimiser state, each divided by the GPUs that ZeRO spreads it over,
    + activations per sample * batch + what the runtime reserves

With parameter servers the optimiser state lives on the servers.
"""

from spotwright.domain.errors import MemoryDoesNotFitError
from spotwright.domain.hardware import InstanceType, Precision
from spotwright.domain.workload import Strategy, Workload

_BYTES = {Precision.FP32: 4, Precision.FP16: 2, Precision.BF16: 2}


def gpu_memory_gib(workload: Workload, *, batch_per_gpu: float, gpu_count: float) -> float:
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
    per_parameter = sum(
        size / (gpu_count if use.zero_stage >= sharded_from else 1) for size, sharded_from in states
    )
    activations = use.activation_bytes_per_sample * batch_per_gpu
    return (parameter_count * per_parameter + activations + use.reserved_bytes) / 2**30


def check_memory(
    workload: Workload, instance_type: InstanceType, *, batch_per_gpu: float, gpu_count: float
) -> float | None:
    """Return the memory one GPU needs, or None where the device has no GPU memory.

    Raises:
        MemoryDoesNotFitError: it is more than the GPU has.
    """
    available = instance_type.gpu_memory_gib  # of a shared GPU, only the share
    if instance_type.gpu_name is None or available == 0:
        return None
    needed = gpu_memory_gib(workload, batch_per_gpu=batch_per_gpu, gpu_count=gpu_count)
    if needed > available:
        raise MemoryDoesNotFitError(
            device=f"{instance_type.gpu_name} ({instance_type.name})",
            needed_gib=needed,
            available_gib=available,
            batch=round(batch_per_gpu),
        )
    return needed


def _keeps_optimizer(workload: Workload) -> bool:
    return workload.strategy is Strategy.ALLREDUCE
