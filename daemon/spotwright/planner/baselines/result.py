"""What a rival's search answers, and how it keeps the best fleet it has seen."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import Fleet
from spotwright.planner.best_value import best_value
from spotwright.planner.context import Context

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineResult:
    """The fleet that a search settles on; it meets the goal and keeps the limits."""

    name: str
    fleet: Fleet | None  # None: nothing that the search looks at does
    cost_usd: float  # infinite without a fleet
    duration_s: float
    fleet_count: int  # evaluated; boxes, where the exact search was asked


@dataclass(slots=True)
class BestFleet:
    """The best of the fleets offered so far."""

    rank: tuple[float, float] = (math.inf, math.inf)
    fleet: Fleet | None = None
    cost_usd: float = math.inf
    duration_s: float = math.inf
    fleet_count: int = 0

    def offer(self, context: Context, counts: Floats) -> None:
        """Evaluate whole fleets, (pools, fleets), none empty, and keep the best."""
        counts = counts[:, context.limits.allow(counts)]
        if counts.shape[1]:
            self.fleet_count += counts.shape[1]
            self._compare(context, counts)

    def offer_first(self, context: Context, counts: Floats) -> None:
        """Look at whole fleets one after another, and keep the first that meets the goal."""
        counts = counts[:, context.limits.allow(counts)]
        if counts.shape[1]:
            meets = np.isfinite(context.values(counts).objective)
            first = int(np.argmax(meets))
            self.fleet_count += first + 1 if meets[first] else counts.shape[1]
            self._compare(context, counts[:, [first]])

    def _compare(self, context: Context, counts: Floats) -> None:
        values = context.values(counts)
        rank, best = best_value(values, context.objective)
        if math.isfinite(rank[0]) and rank < self.rank:
            self.rank, self.fleet = rank, context.fleet(counts[:, best])
            self.cost_usd = float(values.cost_usd[best])
            self.duration_s = float(values.duration_s[best])

    def result(self, name: str) -> BaselineResult:
        """Return it as the answer of a search."""
        return BaselineResult(
            name=name,
            fleet=self.fleet,
            cost_usd=self.cost_usd,
            duration_s=self.duration_s,
            fleet_count=self.fleet_count,
        )
