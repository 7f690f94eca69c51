"""Memory against batch: what a step keeps for its backward pass, by sample.

    bytes(batch) = fixed + per sample * batch

On a GPU it is the peak that torch's allocator saw, which also holds what is gone after an
operation. On a CPU, which has no such figure, the tensors that autograd saves are counted, each
storage once and parameters left out: that is what a GPU would keep, and less than its peak.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spotwright.domain.errors import MemoryDoesNotFitError
from spotwright.profiler.sizes import Sizes
from spotwright.profiler.training import Trainee

_GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFigures:
    """How memory grows with the batch."""

    fixed_bytes: float
    bytes_per_sample: float
    source: str  # CUDA peak, or saved tensors
    points: tuple[tuple[int, float], ...]  # batch, bytes

    def activation_bytes(self, batch: int) -> float:
        """Return what a batch keeps."""
        return self.fixed_bytes + self.bytes_per_sample * batch


def measure_memory(trainee: Trainee, *, batches: Sequence[int]) -> MemoryFigures:
    """Measure the smallest batches, which tell the slope without filling memory."""
    few = sorted(set(batches))[:3]
    one = _peak_bytes if trainee.device.is_gpu else _saved_bytes
    points = tuple((batch, one(trainee, batch)) for batch in few)
    x, y = np.array(points, dtype=np.float64).T
    slope, fixed = np.polyfit(x, y, 1) if len(few) > 1 else (y[0] / x[0], 0.0)
    return MemoryFigures(
        fixed_bytes=max(float(fixed), 0.0),
        bytes_per_sample=max(float(slope), 0.0),
        source="CUDA peak" if trainee.device.is_gpu else "saved tensors",
        points=points,
    )


def check_room(trainee: Trainee, sizes: Sizes, memory: MemoryFigures, *, batch: int) -> None:
    """Refuse a batch that would end in a kill by the kernel instead of an error.

    Raises:
        MemoryDoesNotFitError: it needs more than is free.
    """
    states = sizes.gradient_bytes + sizes.optimizer_bytes
    needed = memory.activation_bytes(batch) + sizes.input_bytes_per_sample * batch + states
    available = trainee.device.available_bytes()
    if needed > available:
        raise MemoryDoesNotFitError(
            device=f"the {trainee.device.name} here",
            needed_gib=needed / _GIB,
            available_gib=available / _GIB,
            batch=batch,
        )


def _saved_bytes(trainee: Trainee, batch: int) -> float:
    own = {t.untyped_storage().data_ptr() for t in _own_tensors(trainee)}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    made = trainee.device.moved(trainee.batch(batch))
    with torch.autograd.graph.saved_tensors_hooks(pack, _as_it_is):
        loss = trainee.loss(made, size=batch)  # holds them all, so that no address is used twice
    del loss
    return float(sum(saved.values()))


def _as_it_is(tensor: Any) -> Any:
    return tensor


def _own_tensors(trainee: Trainee) -> list[Tensor]:
    return [*trainee.model.parameters(), *trainee.model.buffers()]


def _peak_bytes(trainee: Trainee, batch: int) -> float:
    device = trainee.device.torch
    made = trainee.device.moved(trainee.batch(batch))
    trainee.step(made, size=batch)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    trainee.step(made, size=batch)
    return float(torch.cuda.max_memory_allocated(device) - before)
