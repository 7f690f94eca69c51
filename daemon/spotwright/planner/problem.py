"""What a search is asked, and what it answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.perfmodel.compute import GpuFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A job and everything it may rent."""

    job: JobSpec
    worker_offers: Sequence[Offer]
    server_offers: Sequence[Offer]  # empty where the strategy has no parameter servers
    gpu_facts: GpuFacts
    running: RunningFleet = field(default_factory=RunningFleet)

    def on_demand(self) -> "Problem":
        """Return the same without anything that could be taken away."""
        return replace(
            self,
            worker_offers=[o for o in self.worker_offers if o.market is Market.ON_DEMAND],
            server_offers=[o for o in self.server_offers if o.market is Market.ON_DEMAND],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """How far a search has come."""

    best: float | None  # dollars or seconds; None: no fleet yet
    lower_bound: float
    box_count: int

    @property
    def gap_fraction(self) -> float | None:
        """How much better the optimum could still be."""
        return None if self.best is None else max(0.0, 1 - self.lower_bound / self.best)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who looks on, and may end a search early."""

    stopped: Callable[[], bool] = lambda: False
    report: Callable[[SearchProgress], None] = lambda _: None


def at_most(watch: Watch, boxes: int) -> Watch:
    """Return a silent watch that ends a search after so many boxes, or when another one ends it.

    Counting boxes instead of seconds keeps answers the same from run to run.
    """
    left = iter(range(boxes))
    return Watch(stopped=lambda: watch.stopped() or next(left, None) is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a search found and proved."""

    fleet: Fleet | None  # None with `complete`: proved that there is none
    cost_usd: float  # infinite without a fleet
    duration_s: float
    lower_bound: float  # of what was minimised, dollars or seconds
    complete: bool  # the gap was reached, or infeasibility proved
    box_count: int

    def value(self, objective: Objective) -> float:
        """Return what was minimised."""
        return self.cost_usd if objective is Objective.COST else self.duration_s
