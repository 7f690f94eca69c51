"""GPUs of this host, through NVIDIA's management library."""

from dataclasses import dataclass

import pynvml


class GpuUnavailableError(Exception):
    """NVML cannot be used on this host; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU as the driver describes it."""

    index: int
    name: str
    memory_bytes: int
    pcie_generation: int
    pcie_lane_count: int


def read_gpus() -> list[GpuFacts]:
    """Return the GPUs of this host.

    Raises:
        GpuUnavailableError: no driver, or the driver does not answer.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise GpuUnavailableError(str(error)) from error
    try:
        return [_facts(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        raise GpuUnavailableError(str(error)) from error
    finally:
        pynvml.nvmlShutdown()


def _facts(index: int) -> GpuFacts:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return GpuFacts(
        index=index,
        name=pynvml.nvmlDeviceGetName(handle),
        memory_bytes=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
        pcie_generation=pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        pcie_lane_count=pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
    )
