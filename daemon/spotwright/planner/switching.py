"""What changing a running fleet costs: switching . max(0, x - running), dollars.

Of a pool that has at least its running nodes in a box, every node beyond them is counted; of one
that may have fewer, none is, until its counts are cut there. The dollars stand beside the rent,
which is a ratio c . x / D: with D between two values, both

    (c + D0 switching) . x / D    and    c . x / D1 + switching . x

are at most the cost, and the narrower the range of D is, the less they miss.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotwright.planner.context import Context

Floats = NDArray[np.float64]


class SwitchingBound(NamedTuple):
    """per_node . x + constant: the least dollars for switching to a fleet of a box."""

    per_node: Floats
    constant: float

    def at(self, x: Floats) -> float:
        """Return the dollars at a point."""
        return float(self.per_node @ x) + self.constant


def switching_bound(context: Context, lower: Floats) -> SwitchingBound:
    """Bound the cost of switching to fleets of at least so many nodes in each pool."""
    counted = lower >= context.running
    per_node = np.where(counted, context.switching, 0.0)
    return SwitchingBound(per_node, -float(per_node @ context.running))


def missed_running(context: Context, lower: Floats, x: Floats) -> Floats:
    """Return, by pool, the dollars for switching to a point that the bound does not count."""
    return np.where(lower >= context.running, 0.0, x - context.running) * context.switching


def split_running(
    context: Context, lower: Floats, upper: Floats, x: Floats
) -> list[tuple[Floats, Floats]]:
    """Cut the counts of the pool whose switching is missed most where its running nodes end."""
    pool = int(np.argmax(missed_running(context, lower, x)))
    fewer, more = upper.copy(), lower.copy()
    fewer[pool], more[pool] = context.running[pool] - 1, context.running[pool]
    return [(lower, fewer), (more, upper)]


def missed_by_range(
    rent_usd: float, switching_usd: float, at: float, ends: tuple[float, float]
) -> float:
    """Return, in logarithms, what the bounds miss of a cost at D = at, D between two ends."""
    if switching_usd <= 0 or not math.isfinite(rent_usd):
        return 0.0
    low, high = ends
    known = max(rent_usd + switching_usd * low / at, rent_usd * at / high + switching_usd)
    return math.log(max((rent_usd + switching_usd) / known, 1.0))
