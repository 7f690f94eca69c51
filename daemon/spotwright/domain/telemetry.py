"""What agents send, as it is kept: whole batches, and their figures summed up by time."""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Self

# What is summed up, by its name in the wire's HostSample, GpuSample or StepSample.
FIGURES = (
    "utilization_fraction",
    "memory_used_bytes",
    "pcie_rx_mbps",
    "pcie_tx_mbps",
    "nvlink_rx_mbps",
    "nvlink_tx_mbps",
    "cpu_fraction",
    "cpu_steal_fraction",
    "network_rx_mbps",
    "network_tx_mbps",
    "rdma_rx_mbps",
    "rdma_tx_mbps",
    "disk_read_mbps",
    "cpu_limit_count",
    "cpu_throttled_fraction",
    "network_reached_mbps",
    "step_s",
    "data_wait_s",
    "compute_s",
    "communication_s",
)
RESOLUTIONS_S = (10, 60)  # the finest first: what is written; others are made from it


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """Who an agent is."""

    agent_id: str
    boot_id: str  # changes whenever the count of batches starts anew
    agent_version: str = ""
    hostname: str = ""
    instance_id: str = ""
    instance_type: str = ""
    zone: str = ""
    market: str = ""
    job_id: str = ""  # empty: works for none
    gpu_names: tuple[str, ...] = ()


class BatchKey(NamedTuple):
    """What makes a batch the same batch, however often it is sent."""

    agent_id: str
    boot_id: str
    sequence: int


class Statistic(NamedTuple):
    """One figure summed up."""

    value_count: int
    total: float
    largest: float

    @classmethod
    def of(cls, value: float) -> Self:
        """Sum up one value."""
        return cls(1, value, value)

    def merged(self, other: "Statistic") -> "Statistic":
        """Sum up both."""
        return Statistic(
            self.value_count + other.value_count,
            self.total + other.total,
            max(self.largest, other.largest),
        )

    @property
    def mean(self) -> float:
        """The mean value."""
        return self.total / self.value_count


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupPart:
    """Samples of one agent within one interval, or some of them: parts of it can be merged."""

    start_unix_s: int
    host_sample_count: int = 0
    gpu_sample_count: int = 0
    step_count: int = 0
    statistics: Mapping[str, Statistic] = field(default_factory=dict)  # keys are of FIGURES

    def merged(self, other: "RollupPart") -> "RollupPart":
        """Sum up both; they are of the same interval."""
        together = dict(self.statistics)
        for name, statistic in other.statistics.items():
            mine = together.get(name)
            together[name] = statistic if mine is None else mine.merged(statistic)
        return RollupPart(
            start_unix_s=self.start_unix_s,
            host_sample_count=self.host_sample_count + other.host_sample_count,
            gpu_sample_count=self.gpu_sample_count + other.gpu_sample_count,
            step_count=self.step_count + other.step_count,
            statistics=together,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNotice:
    """What a cloud said about taking a host away, as the agent saw it."""

    kind: str  # hint, interruption or withdrawn
    time: datetime
    deadline: datetime | None
    source: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProbe:
    """What a measurement of the network to another host found; None: not measured."""

    command_id: str  # that asked for it; empty: a person did
    peer: str
    time: datetime
    sent_mbps: float | None = None
    received_mbps: float | None = None
    round_trip_s: float | None = None
    limited_by: str = ""  # rate-limit or cpu, where it was not the network
    problem: str = ""  # why there is no result

    @property
    def has_result(self) -> bool:
        """It measured something."""
        return not self.problem

    @property
    def attainable_mbps(self) -> float | None:
        """The slower direction, where it was the network that held it down."""
        rates = [rate for rate in (self.sent_mbps, self.received_mbps) if rate]
        return min(rates) if rates and self.has_result and not self.limited_by else None

    @property
    def stays_on_host(self) -> bool:
        """The peer, HOST, HOST:PORT or [IPV6]:PORT, is the host itself: no network was measured."""
        peer = self.peer
        if peer.startswith("["):
            peer = peer[1:].partition("]")[0]
        elif peer.count(":") == 1:
            peer = peer.partition(":")[0]
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return peer.lower().rstrip(".") == "localhost"
        address = getattr(address, "ipv4_mapped", None) or address
        return address.is_loopback or address.is_unspecified


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSums:
    """The steps of one agent for one job, added up."""

    step_count: int
    last_step: int  # the largest number that training gave to one
    samples: float | None = None  # None: training does not tell
    loss: float | None = None  # the latest that was told

    def added(self, later: "StepSums") -> "StepSums":
        """Add up both."""
        told = [sums.samples for sums in (self, later) if sums.samples is not None]
        return StepSums(
            step_count=self.step_count + later.step_count,
            last_step=max(self.last_step, later.last_step),
            samples=sum(told) if told else None,
            loss=self.loss if later.loss is None else later.loss,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedBatch:
    """One batch of an agent, ready to be stored. Times are corrected to the daemon's clock."""

    key: BatchKey
    job_id: str  # that the agent works for; empty for none
    receive_unix_ms: int
    first_unix_ms: int  # of its samples and steps; receive_unix_ms where it has none
    last_unix_ms: int
    clock_skew_s: float  # the agent's clock less the daemon's, to be taken off its times
    document: bytes  # as it was sent
    parts: tuple[RollupPart, ...]  # of the finest resolution
    latest_sample: bytes | None = None  # documents, their times corrected
    latest_step: bytes | None = None
    steps: StepSums | None = None  # None: it has none
    notices: tuple[AgentNotice, ...] = ()
    probes: tuple[NetworkProbe, ...] = ()
    faults: bytes | None = None  # None: as before
    dropped_sample_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """One batch as it was kept."""

    key: BatchKey
    receive_unix_ms: int
    clock_skew_s: float
    document: bytes


class SampleRow(NamedTuple):
    """One GPU during one interval, with its host, as history keeps it. None: not readable."""

    agent_id: str
    boot_id: str
    sequence: int  # of the batch
    time_unix_ms: int  # end of the interval, corrected to the daemon's clock
    interval_s: float
    gpu_index: int | None = None  # None: a host without GPUs
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """An agent and the latest of its figures."""

    facts: AgentFacts
    session_id: str  # of the open session; empty: not connected
    replica: str  # that has the session
    last_seen: datetime | None
    clock_skew_s: float
    last_sequence: int
    dropped_sample_count: int
    latest_sample: bytes | None
    latest_step: bytes | None
    notice: AgentNotice | None  # that holds now
    faults: bytes | None
    latest_probe: NetworkProbe | None = None  # that had a result
    failed_probe: NetworkProbe | None = None  # the latest that had none


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedCommand:
    """Something for an agent to do, until a replica has handed it over."""

    command_id: str
    agent_id: str
    document: bytes


def merge_parts(parts: Iterable[RollupPart]) -> list[RollupPart]:
    """Merge the parts of each interval; oldest first."""
    whole: dict[int, RollupPart] = {}
    for part in parts:
        mine = whole.get(part.start_unix_s)
        whole[part.start_unix_s] = part if mine is None else mine.merged(part)
    return [whole[start] for start in sorted(whole)]
