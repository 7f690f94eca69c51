"""Bytes over PCIe and NVLink, from counters that never stop, read in one call per GPU.

From the GPU's side, as in our figures: RX comes to the GPU, TX leaves it. NVLink counts KiB, and
the scope asks for the sum over all links.
"""

from dataclasses import dataclass, field
from typing import Any

import pynvml

from spotwright_agent.collectors.counters import CounterRate, mbps
from spotwright_agent.collectors.gpu.errors import LOST, UNSUPPORTED

_ALL_LINKS = 2**32 - 1
PCIE = ("pcie_rx_mbps", "pcie_tx_mbps")
# A counter of 32 bits wraps within 0.2 s of PCIe at full speed: nobody can follow it.
_NARROW = frozenset({pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, pynvml.NVML_VALUE_TYPE_SIGNED_INT})


@dataclass(slots=True)
class _Counter:
    """A field of NVML that counts."""

    figure: str
    asked: tuple[int, int]  # number of the field, and scope
    unit_bytes: int
    rate: CounterRate = field(default_factory=CounterRate)


class LinkCounters:
    """The counters of one GPU; those that it does not have are asked once."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._counters = [
            _Counter("pcie_tx_mbps", (pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0), 1),
            _Counter("pcie_rx_mbps", (pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 0), 1),
            _Counter(
                "nvlink_tx_mbps", (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, _ALL_LINKS), 1024
            ),
            _Counter(
                "nvlink_rx_mbps", (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _ALL_LINKS), 1024
            ),
        ]

    @property
    def count_pcie(self) -> bool:
        """Whether both directions of PCIe have a counter."""
        return sum(counter.figure in PCIE for counter in self._counters) == len(PCIE)

    def read(self, now_s: float) -> dict[str, float]:
        """Return the rates in 10^6 bit/s since the call before.

        Raises:
            NVMLError: the GPU or the driver is lost.
        """
        found: dict[str, float] = {}
        values = self._values()
        for counter, value in zip(tuple(self._counters), values, strict=False):
            rate = self._rate(counter, value, now_s)
            if rate is not None:
                found[counter.figure] = rate
        return found

    def _values(self) -> Any:
        if not self._counters:
            return ()
        fields = [counter.asked for counter in self._counters]
        try:
            return pynvml.nvmlDeviceGetFieldValues(self._handle, fields)
        except pynvml.NVMLError as error:
            if error.value in LOST:
                raise
            if error.value in UNSUPPORTED:
                self._counters = []
            return ()

    def _rate(self, counter: _Counter, value: Any, now_s: float) -> float | None:
        if value.nvmlReturn in LOST:
            raise pynvml.NVMLError(value.nvmlReturn)
        narrow = value.nvmlReturn == pynvml.NVML_SUCCESS and value.valueType in _NARROW
        if value.nvmlReturn in UNSUPPORTED or (narrow and counter.figure in PCIE):
            self._counters.remove(counter)
            return None
        if value.nvmlReturn != pynvml.NVML_SUCCESS:
            return None
        count = value.value.uiVal if narrow else value.value.ullVal
        per_s = counter.rate.update(count * counter.unit_bytes, now_s=now_s)
        return mbps(per_s)


def sample_pcie_mbps(handle: Any) -> dict[str, float]:
    """Return the rates seen during 20 ms, one direction after the other: it blocks that long.

    Raises:
        NVMLError: the GPU does not have them, or it is lost.
    """
    tx_kb_per_s = pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_TX_BYTES)
    rx_kb_per_s = pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_RX_BYTES)
    return {"pcie_tx_mbps": tx_kb_per_s * 8 / 1000, "pcie_rx_mbps": rx_kb_per_s * 8 / 1000}
