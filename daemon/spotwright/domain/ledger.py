"""What is written down about the rent of a job: who was seen when, where, and at which price."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

SILENCE = timedelta(minutes=2)  # a node that is not seen for longer counts as gone


class RentedPool(NamedTuple):
    """Where a node is rented, as its host tells; what the host could not tell is empty."""

    instance_type: str
    zone: str
    market: str  # spot or on-demand, as granted

    def __str__(self) -> str:
        return f"{self.instance_type or '?'}@{self.zone or '?'}/{self.market or '?'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One node of a job from its first sighting to its last one, without a longer silence."""

    job_id: str
    agent_id: str
    start_time: datetime
    end_time: datetime  # of the last sighting; it moves on while the node is seen
    instance_id: str  # empty: the host could not tell
    pool: RentedPool
    price_usd_per_hour: float | None  # by the catalog, or the plan; None: nobody knows yet

    def __post_init__(self) -> None:
        if self.end_time < self.start_time:
            raise ValueError(f"an entry must not end before it starts, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressMark:
    """How far a job had come at one time."""

    job_id: str
    time: datetime
    fraction: float  # of the goal
