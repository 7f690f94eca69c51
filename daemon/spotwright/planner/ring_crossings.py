"""How many zones a ring visits at least: it pays for every one, as often as it steps.

A zone in which at most U nodes of a box can stand is visited by x / U of a visit for x nodes there,
or by a whole one where the box demands it. Rings inside a single zone are planned apart, so that
two visits are the least.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotwright.planner.synchronous_workers import Box, SynchronousWorkers

Floats = NDArray[np.float64]

_FEWEST = 2.0


class Crossings(NamedTuple):
    """per_node . x + constant: the zones that a ring visits, at least."""

    per_node: Floats
    constant: float

    def at(self, x: Floats) -> float:
        """Return the visits at a point."""
        return float(self.per_node @ x) + self.constant


def crossings(workers: SynchronousWorkers, box: Box, near: Floats) -> Crossings:
    """Bound the visits of every ring in a box, as well as can be near a point."""
    most = np.clip(workers.zones @ box.upper, 1.0, box.nodes[1])
    visited = np.array(box.visited)
    per_node = np.where(visited, 0.0, 1 / most) @ workers.zones
    by_room = Crossings(per_node, float(visited.sum()))
    at_least = Crossings(np.zeros_like(per_node), _FEWEST)
    return max(by_room, at_least, key=lambda bound: bound.at(near))


def visits(workers: SynchronousWorkers, x: Floats) -> float:
    """Return how many zones a point, its counts possibly fractional, has nodes in."""
    return float(((workers.zones @ x) > 1e-6).sum())


def split_zone(
    workers: SynchronousWorkers, box: Box, x: Floats
) -> list[tuple[Floats, tuple[bool, ...]]]:
    """Cut at the zone whose visit is counted least: not visited (upper counts), or visited."""
    nodes, most = workers.zones @ x, np.clip(workers.zones @ box.upper, 1.0, box.nodes[1])
    missed = np.where((nodes > 1e-6) & ~np.array(box.visited), 1 - nodes / most, -1.0)
    zone = int(np.argmax(missed))
    avoided = np.where(workers.zones[zone] > 0, 0.0, box.upper)
    visited = (*box.visited[:zone], True, *box.visited[zone + 1 :])
    return [(avoided, box.visited), (box.upper, visited)]
