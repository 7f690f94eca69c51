"""What goes from the store into history files, and how far that has come."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from spotwright.domain.telemetry import StoredBatch
from spotwright.usecases.store_ports import HistorySource


class SampleRow(NamedTuple):
    """One GPU during one interval with its host beside it; None: not read, or no GPU."""

    agent_id: str
    boot_id: str
    sequence: int  # of the batch
    time_unix_ms: int  # end of the interval, by the daemon's clock
    interval_s: float
    gpu_index: int | None = None
    utilization_fraction: float | None = None
    memory_used_bytes: int | None = None
    pcie_rx_mbps: float | None = None
    pcie_tx_mbps: float | None = None
    nvlink_rx_mbps: float | None = None
    nvlink_tx_mbps: float | None = None
    sm_clock_mhz: float | None = None
    throttle_reasons: int | None = None
    uncorrected_error_count: int | None = None
    last_xid: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    cpu_fraction: float | None = None
    cpu_steal_fraction: float | None = None
    host_memory_used_bytes: int | None = None
    network_rx_mbps: float | None = None
    network_tx_mbps: float | None = None
    rdma_rx_mbps: float | None = None
    rdma_tx_mbps: float | None = None
    disk_read_mbps: float | None = None


class Archived(NamedTuple):
    """How far history has come."""

    until_unix_s: float  # everything received before is in it
    segment_count: int  # written just now
    row_count: int


class ClosableHistorySource(HistorySource, Protocol):
    """A source that was opened for this."""

    def close(self) -> None:
        """Let go of it."""


RowsOf = Callable[[StoredBatch], Iterable[SampleRow]]
OpenSource = Callable[[str], ClosableHistorySource]
