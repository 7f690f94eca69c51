"""What the GPUs of this host are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pynvml

from spotwright_agent.collectors.gpu.errors import LOST


class GpuUnavailableError(Exception):
    """NVML cannot be used on this host; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU as the driver describes it; None: it does not tell."""

    index: int
    name: str | None
    memory_bytes: int | None
    pcie_generation: int | None
    pcie_lane_count: int | None
    problem: str | None = None  # why nothing is known of it


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """What reads the GPUs."""

    driver_version: str
    nvml_version: str


def read_gpus() -> list[GpuFacts]:
    """Return the GPUs of this host. May hang when the driver does.

    Raises:
        GpuUnavailableError: no driver, or the driver does not answer.
    """
    with _nvml():
        return [_facts(index) for index in range(pynvml.nvmlDeviceGetCount())]


def read_driver() -> DriverFacts:
    """Return the versions of driver and library. May hang when the driver does.

    Raises:
        GpuUnavailableError: no driver, or the driver does not answer.
    """
    with _nvml():
        return DriverFacts(
            driver_version=pynvml.nvmlSystemGetDriverVersion(),
            nvml_version=pynvml.nvmlSystemGetNVMLVersion(),
        )


@contextmanager
def _nvml() -> Iterator[None]:
    try:
        pynvml.nvmlInit()
        try:
            yield
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise GpuUnavailableError(str(error)) from error


def _facts(index: int) -> GpuFacts:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        return GpuFacts(
            index=index,
            name=_told(pynvml.nvmlDeviceGetName, handle),
            memory_bytes=_told(_memory_bytes, handle),
            pcie_generation=_told(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
            pcie_lane_count=_told(pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        )
    except pynvml.NVMLError as error:  # one GPU that is lost does not hide the others
        return GpuFacts(
            index=index,
            name=None,
            memory_bytes=None,
            pcie_generation=None,
            pcie_lane_count=None,
            problem=str(error),
        )


def _memory_bytes(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetMemoryInfo(handle).total


def _told(call: Callable[[Any], Any], handle: Any) -> Any:
    try:
        return call(handle)
    except pynvml.NVMLError as error:
        if error.value in LOST:
            raise
        return None
