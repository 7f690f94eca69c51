"""What a job cost, beside what it was to cost."""

from dataclasses import dataclass
from datetime import datetime

from spotwright.domain.ledger import RentedPool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpan:
    """A node that was rented for a job without a break."""

    agent_id: str
    instance_id: str
    pool: RentedPool
    start_time: datetime
    end_time: datetime
    price_usd_per_hour: float | None
    is_running: bool  # it still was when the accounts were made

    @property
    def node_hours(self) -> float:
        """How long it was rented."""
        return (self.end_time - self.start_time).total_seconds() / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolAccount:
    """One pool as planned and as granted; None: not planned, or not known."""

    instance_type: str
    zone: str
    market: str  # as granted; of a pool that gave nothing, as planned
    planned_market: str | None  # of the same type in the same zone
    role: str  # in the plan; empty: not planned
    planned_node_count: int
    price_usd_per_hour: float | None  # planned; else the mean that was paid
    planned_usd: float | None
    granted_node_hours: float
    actual_usd: float | None  # None: some of it has no known price
    interruption_count: int
    below_planned_fraction: float | None  # of the job's time, with fewer nodes than planned

    @property
    def pool(self) -> RentedPool:
        """Which pool it is."""
        return RentedPool(self.instance_type, self.zone, self.market)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCount:
    """How often something happened to a job."""

    kind: str
    event_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMark:
    """An event that a chart of the job shows."""

    time: datetime
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressPoint:
    """How far the job had come."""

    time: datetime
    fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccounts:
    """The bill of a job, as far as its ledger tells it."""

    until: datetime  # what is rented later is not in it
    pools: tuple[PoolAccount, ...] = ()
    timeline: tuple[NodeSpan, ...] = ()
    event_counts: tuple[EventCount, ...] = ()
    marks: tuple[EventMark, ...] = ()
    progress: tuple[ProgressPoint, ...] = ()
    priced_usd: float = 0.0  # of all hours that have a price
    unpriced_node_hours: float = 0.0  # of pools that the plan has no price for

    @property
    def spent_usd(self) -> float | None:
        """All that was spent; None where nothing was seen, or some of it has no price."""
        return None if self.unpriced_node_hours or not self.timeline else self.priced_usd
