"""How fast bytes get from the host to the device; on a CPU, how fast the host's memory copies."""

import statistics
from dataclasses import dataclass

import torch

from spotwright.profiler.devices import Device
from spotwright.profiler.training import Clock

_COPIES = 9
_SIZE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRates:
    """Medians, in 10^6 bits per second."""

    host_memory_mbps: float  # reading and writing at once, by as many threads as torch has
    to_device_mbps: float | None  # from pinned memory, over PCIe; None: there is no GPU
    copied_bytes: int


def measure_copies(device: Device, *, clock: Clock) -> CopyRates:
    """Copy a block that no cache holds, a few times."""
    source = torch.ones(_SIZE_BYTES, dtype=torch.uint8)
    target = torch.empty_like(source)
    return CopyRates(
        host_memory_mbps=_rate_mbps(target, source, device, clock),
        to_device_mbps=_to_device_mbps(device, source, clock) if device.is_gpu else None,
        copied_bytes=_SIZE_BYTES,
    )


def _to_device_mbps(device: Device, source: torch.Tensor, clock: Clock) -> float:
    target = torch.empty_like(source, device=device.torch)
    return _rate_mbps(target, source.pin_memory(), device, clock)


def _rate_mbps(target: torch.Tensor, source: torch.Tensor, device: Device, clock: Clock) -> float:
    target.copy_(source)  # the first touch of fresh pages is not the rate of a copy
    seconds = []
    for _ in range(_COPIES):
        device.synchronize()
        start_s = clock()
        target.copy_(source, non_blocking=True)
        device.synchronize()
        seconds.append(clock() - start_s)
    return source.nbytes * 8e-6 / statistics.median(seconds)
