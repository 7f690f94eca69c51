"""How many samples each GPU takes per step."""

import math

from spotwright.domain.errors import BadInputError, MissingFactError
from spotwright.domain.hardware import InstanceType
from spotwright.domain.workload import FixedBatch, GlobalBatch, MemoryBatch, Workload


def batch_per_gpu(workload: Workload, instance_type: InstanceType) -> int:
    """Return the batch of one GPU where the rule gives it by device.

    Raises:
        MissingFactError: the rule names no batch for this device.
        BadInputError: the rule is a global batch, which only a synchronous cluster can split.
    """
    rule, gpu = workload.batch, instance_type.gpu_name or ""
    match rule:
        case FixedBatch():
            batch = rule.by_device.get(instance_type.name) or rule.by_device.get(gpu)
            batch = batch or rule.per_gpu_count
            if batch is None:
                raise MissingFactError(
                    f"the batch on {gpu or instance_type.name}",
                    way_out="add it to workload.batch.per_gpu_by_device",
                )
            return batch
        case MemoryBatch():
            room = rule.per_gib * instance_type.gpu_memory_gib + rule.offset
            return 2 ** math.floor(math.log2(room)) if room >= 1 else 1
        case GlobalBatch():
            raise BadInputError(
                "batch.whole is split between synchronous workers; asp-ps needs a batch per GPU"
            )
        case None:
            raise MissingFactError("the batch", way_out="add workload.batch")
