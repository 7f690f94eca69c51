"""What came of a simulated run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spotwright.domain.offer import Pool


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at one time, for a picture of it."""

    time_s: float
    training: Mapping[Pool, int]
    starting: Mapping[Pool, int]
    done_fraction: float
    spent_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run, to its end."""

    finish_s: float | None  # None: ended before the goal was reached
    deadline_s: float | None
    done_fraction: float
    cost_usd: float
    usd_by_pool: Mapping[Pool, float]
    node_s_by_pool: Mapping[Pool, float]
    moved_usd: float
    losses: int  # nodes taken away
    interruptions: int  # times at which nodes were taken away
    changes: int  # decisions to have other workers
    grants: int
    end_s: float
    moments: tuple[Moment, ...] = field(default=(), repr=False)

    @property
    def is_late(self) -> bool:
        """Whether the deadline was missed, or the goal never reached."""
        if self.finish_s is None:
            return True
        return self.deadline_s is not None and self.finish_s > self.deadline_s + 1e-6
