"""What is read of the daemon when someone asks for its metrics.

Each callable of `Sources` runs on a thread of the metrics endpoint, never on the event loop: it may
block for a moment, and must be safe to call from another thread. One that raises a SpotwrightError,
such as a store that is away, leaves out its own series and none besides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from spotwright.domain.telemetry import AgentFacts
from spotwright.usecases.record_telemetry import WriterFigures

# As the wire's HostSample, GpuSample and StepSample name them; what cannot be read is absent.
Readings = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneFigures:
    """Work for the planner's processes, of one kind."""

    running_count: int
    waiting_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFigures:
    """One agent and the latest that it sent."""

    facts: AgentFacts
    connected: bool
    last_seen: datetime | None  # None: it never sent anything
    clock_skew_s: float
    dropped_sample_count: int
    notice_active: bool
    host: Readings = field(default_factory=dict)
    gpus: Mapping[int, Readings] = field(default_factory=dict)  # by number on the host
    step: Readings = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the figures come from."""

    lanes: Callable[[], Mapping[str, LaneFigures]]  # by name
    ingest: Callable[[], WriterFigures]
    session_count: Callable[[], int]  # open on this replica
    jobs: Callable[[], Mapping[str, int]]  # by state
    controlled_job_count: Callable[[], int]  # by this replica
    certificate_days_left: Callable[[], Mapping[str, float]]  # by name: server, ca
    store_bytes: Callable[[], int]
    loop_lag_s: Callable[[], float]
    agents: Callable[[], Sequence[AgentFigures]]
