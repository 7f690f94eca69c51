"""One GPU: its figures, asked for as long as the GPU has them."""

from collections.abc import Callable, Mapping
from typing import Any

import pynvml

from spotwright_agent.collectors.gpu.errors import LOST, UNSUPPORTED
from spotwright_agent.collectors.gpu.links import PCIE, LinkCounters, sample_pcie_mbps
from spotwright_agent.readings import GpuReading, PcieSource

_Call = Callable[[Any], float]


def _uncorrected_errors(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetTotalEccErrors(
        handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    )


def _temperature_c(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)


def _temperature_v_c(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU)


# Where there are two calls, drivers have the one or the other.
_CALLS: Mapping[str, tuple[_Call, ...]] = {
    "utilization_fraction": (lambda gpu: pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,),
    "memory_used_bytes": (lambda gpu: pynvml.nvmlDeviceGetMemoryInfo(gpu).used,),
    "sm_clock_mhz": (lambda gpu: pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM),),
    "throttle_reasons": (
        pynvml.nvmlDeviceGetCurrentClocksEventReasons,
        pynvml.nvmlDeviceGetCurrentClocksThrottleReasons,
    ),
    "uncorrected_error_count": (_uncorrected_errors,),
    "power_w": (lambda gpu: pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000,),
    "temperature_c": (_temperature_c, _temperature_v_c),
}


class GpuDevice:
    """A GPU of an open NVML."""

    def __init__(self, index: int) -> None:
        """Find the GPU.

        Raises:
            NVMLError: it cannot be had.
        """
        self.index = index
        self.handle: Any = pynvml.nvmlDeviceGetHandleByIndex(index)
        self.name = str(pynvml.nvmlDeviceGetName(self.handle))
        self._calls = dict(_CALLS)
        self._links = LinkCounters(self.handle)
        self._can_sample_pcie = True

    @property
    def needs_pcie_sample(self) -> bool:
        """Whether PCIe has no counters here, but can be sampled."""
        return self._can_sample_pcie and not self._links.count_pcie

    def read(self, now_s: float, *, sample_pcie: bool, last_xid: int | None) -> GpuReading:
        """Return the figures of this interval.

        Raises:
            NVMLError: the GPU or the driver is lost.
        """
        figures: dict[str, Any] = {name: self._ask(name) for name in tuple(self._calls)}
        figures |= self._links.read(now_s)
        source = PcieSource.COUNTER
        if not self._links.count_pcie:
            source = PcieSource.SAMPLED
            figures |= dict.fromkeys(PCIE)  # one direction alone is no figure of the bus
            figures |= self._pcie_sample() if sample_pcie else {}
        seen = any(figures.get(name) is not None for name in PCIE)
        return GpuReading(
            gpu_index=self.index,
            pcie_source=source if seen else None,
            last_xid=last_xid,
            **figures,
        )

    def _ask(self, figure: str) -> float | None:
        for call in self._calls[figure]:
            try:
                return call(self.handle)
            except pynvml.NVMLError as error:
                if error.value in LOST:
                    raise
                if error.value not in UNSUPPORTED:
                    return None
                self._calls[figure] = self._calls[figure][1:]
        del self._calls[figure]
        return None

    def _pcie_sample(self) -> dict[str, float]:
        try:
            return sample_pcie_mbps(self.handle) if self._can_sample_pcie else {}
        except pynvml.NVMLError as error:
            if error.value in LOST:
                raise
            self._can_sample_pcie = error.value not in UNSUPPORTED
            return {}
