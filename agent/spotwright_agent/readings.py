"""What the agent reads on its host. Units end the names; None: not supported, or not readable."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypedDict


class PcieSource(StrEnum):
    """Where a figure about PCIe comes from."""

    COUNTER = "counter"  # never stops: every byte counts
    SAMPLED = "sampled"  # a rate seen during 20 ms of the interval


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One GPU during one interval."""

    gpu_index: int
    utilization_fraction: float | None = None
    memory_used_bytes: int | None = None
    pcie_rx_mbps: float | None = None
    pcie_tx_mbps: float | None = None
    pcie_source: PcieSource | None = None
    nvlink_rx_mbps: float | None = None
    nvlink_tx_mbps: float | None = None
    sm_clock_mhz: float | None = None
    throttle_reasons: int | None = None
    uncorrected_error_count: int | None = None
    last_xid: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None


class HostFigures(TypedDict, total=False):
    """What collectors add to a sample, each its own part."""

    cpu_fraction: float
    cpu_steal_fraction: float
    cpu_limit_count: float
    cpu_throttled_fraction: float
    memory_used_bytes: int
    network_rx_mbps: float
    network_tx_mbps: float
    network_reached_mbps: float
    rdma_rx_mbps: float
    rdma_tx_mbps: float
    disk_read_mbps: float
    gpus: tuple[GpuReading, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """The host during one interval."""

    time_unix_ms: int  # its end, by the host's clock
    interval_s: float  # by a clock that never jumps
    figures: HostFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReading:
    """One training step of one process."""

    time_unix_ms: int  # its end
    rank: int
    step: int
    step_s: float
    data_wait_s: float | None = None
    compute_s: float | None = None
    communication_s: float | None = None
    samples: float | None = None
    loss: float | None = None


class NoticeKind(StrEnum):
    """How sure a cloud is that it takes the host away."""

    HINT = "hint"  # it may; expires
    INTERRUPTION = "interruption"  # it will
    WITHDRAWN = "withdrawn"  # an earlier one no longer holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a cloud said about taking the host away."""

    kind: NoticeKind
    time_unix_ms: int  # when the agent saw it
    deadline_unix_ms: int | None  # when the host is gone, or the hint expires
    source: str  # aws, gcp or azure
    detail: str
    deadline_by_host_clock: bool = False  # counted from what our clock showed; else the cloud's


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a probe of the network to another host found."""

    peer: str
    time_unix_ms: int
    command_id: str = ""  # empty: a person asked
    sent_mbps: float | None = None
    received_mbps: float | None = None
    round_trip_s: float | None = None
    limited_by: str = ""  # rate-limit or cpu; empty: the network
    problem: str = ""  # why there is no result


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What the host is called, as far as its cloud tells; empty: not known."""

    instance_id: str = ""
    instance_type: str = ""
    zone: str = ""
    market: str = ""  # spot or on-demand


class CollectorError(Exception):
    """Something on this host cannot be read; the text says what and why."""


class Collector(Protocol):
    """Reads one part of the host. Only the thread that samples calls it."""

    name: str

    def read(self, now_s: float) -> HostFigures:
        """Return what happened since the call before; rates are absent in the first.

        Args:
            now_s: a clock that never jumps.

        Raises:
            CollectorError: it cannot be read now. The next call tries anew.
        """
