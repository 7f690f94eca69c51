"""Where a profile runs, what memory there is, and how running out of it is told."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spotwright.domain.errors import BadInputError, MemoryDoesNotFitError, OutsideWorldError
from spotwright.profiler.free_memory import free_memory_bytes

_CPU_ALLOCATION = re.compile(r"you tried to allocate (\d+) bytes")
_CUDA_ALLOCATION = re.compile(r"Tried to allocate ([\d.]+) (MiB|GiB)")
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or the CPU of this host."""

    torch: torch.device

    @property
    def is_gpu(self) -> bool:
        """Whether it is a CUDA device."""
        return self.torch.type == "cuda"

    @property
    def name(self) -> str:
        """What the device is called."""
        return torch.cuda.get_device_name(self.torch) if self.is_gpu else "CPU"

    def synchronize(self) -> None:
        """Wait until all work that was queued is done."""
        if self.is_gpu:
            torch.cuda.synchronize(self.torch)

    def moved(self, batch: Any) -> Any:
        """Return a batch with its tensors on this device."""
        match batch:
            case Tensor():
                return batch.to(self.torch)
            case Mapping():
                return {key: self.moved(value) for key, value in batch.items()}
            case tuple() if hasattr(batch, "_fields"):
                return type(batch)(*(self.moved(value) for value in batch))
            case tuple() | list():
                return type(batch)(self.moved(value) for value in batch)
        return batch

    def available_bytes(self) -> float:
        """Return the memory that can still be taken."""
        if self.is_gpu:
            return float(torch.cuda.mem_get_info(self.torch)[0])
        free = free_memory_bytes()
        return float("inf") if free is None else float(free)

    def held_bytes(self) -> float:
        """Return what tensors hold now; of a host it is not known, and counts as nothing."""
        return float(torch.cuda.memory_allocated(self.torch)) if self.is_gpu else 0.0


HOST = Device(torch.device("cpu"))


def open_device(asked: str) -> Device:
    """Return a device by its name; `auto` is CUDA where there is some.

    Raises:
        BadInputError: there is no such device.
    """
    wanted = ("cuda" if torch.cuda.is_available() else "cpu") if asked == "auto" else asked
    if not re.fullmatch(r"cpu|cuda(:\d+)?", wanted):
        raise BadInputError(f"--device is auto, cpu, cuda or cuda:N, not {asked!r}")
    device = torch.device(wanted)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise BadInputError(f"--device {asked}: torch sees {count} CUDA devices here; use cpu")
    return Device(device)


def tensors_of(batch: Any) -> list[Tensor]:
    """Return every tensor of a batch."""
    match batch:
        case Tensor():
            return [batch]
        case Mapping():
            return [tensor for value in batch.values() for tensor in tensors_of(value)]
        case tuple() | list():
            return [tensor for value in batch for tensor in tensors_of(value)]
    return []


@contextmanager
def telling_out_of_memory(device: Device, *, batch: int | None = None) -> Iterator[None]:
    """Turn the ways in which torch runs out of memory into one error with its figure.

    Raises:
        MemoryDoesNotFitError: at that batch.
        OutsideWorldError: the model alone does not fit.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        asked = _asked_bytes(error)
        if asked is None:
            raise
        needed, available = asked + device.held_bytes(), device.available_bytes()
        if batch is None:
            raise OutsideWorldError(
                f"the model does not fit: {asked / _GIB:.1f} GiB more were asked for on the "
                f"{device.name}, which has {available / _GIB:.1f} GiB; take a larger one"
            ) from error
        raise MemoryDoesNotFitError(
            device=f"the {device.name} here",
            needed_gib=needed / _GIB,
            available_gib=(available + device.held_bytes()) / _GIB,
            batch=batch,
        ) from error


def _asked_bytes(error: Exception) -> float | None:
    """Return how much was asked for when memory ran out; None where the error is another one."""
    if found := _CPU_ALLOCATION.search(str(error)):
        return float(found[1])
    if found := _CUDA_ALLOCATION.search(str(error)):
        return float(found[1]) * (_GIB if found[2] == "GiB" else 2**20)
    return 0.0 if isinstance(error, MemoryError | torch.OutOfMemoryError) else None
