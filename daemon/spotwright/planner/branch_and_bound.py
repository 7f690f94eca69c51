"""Best-first search over boxes: what is dropped is proved to hold nothing better.

A space of fleets is covered by boxes. Each is relaxed to a linear program that bounds every fleet
in it; a box whose bound does not beat (1 - gap) times the best fleet found so far is dropped, one
that holds few whole fleets is settled by evaluating them all, the others are split where the
relaxation flatters most. When no box is left, the best fleet is optimal within the gap; when time
runs out, the least bound left says how far off it may be.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from spotwright.planner.context import Context
from spotwright.planner.linear_program import LinearProgram
from spotwright.planner.problem import SearchProgress, Watch

Floats = NDArray[np.float64]
Box = TypeVar("Box")

_REPORT_EVERY = 16  # boxes
_SCOUTS = 8  # one root in so many is looked at first: good fleets early
# Fleets times the pools they use, evaluated at once.
_FEWEST_COUNTS, _MOST_COUNTS = 30_000, 1_000_000


class Relaxed(NamedTuple):
    """What the relaxation of a box says."""

    bound: float  # no fleet in the box is better
    promise: float  # how good a fleet it may hold: the order of the search
    point: Floats  # fractional counts where the relaxation is smallest
    fleets: Floats | None  # all whole fleets that are left, (pools, fleets); None: too many
    lower: Floats  # nodes of each pool in anything better
    upper: Floats
    reduced: Floats  # what a node of each pool adds to the program's optimum
    program: LinearProgram | None  # that was relaxed; None: the solver gave up
    asked: bool  # there is a target: an optimum of the program above 0 proves the box empty


class Space(Protocol[Box]):
    """The fleets of one context, cut into boxes."""

    context: Context

    def roots(self, target: float) -> Iterable[tuple[float, Box]]:
        """Return boxes that cover every fleet better than `target`, with bounds by no solver."""

    def relax(self, box: Box, target: float, *, most_counts: int) -> Relaxed | None:
        """Bound a box; None: it is proved to hold nothing better than `target`.

        If few whole fleets are left, `most_counts` counts at most, they are all returned.
        """

    def split(
        self, box: Box, relaxed: Relaxed, improves: Callable[[Floats], bool]
    ) -> Sequence[Box]:
        """Return boxes that cover what is left of a box, none if that is nothing.

        `improves` takes a whole fleet found on the way, and tells whether it is the best so far;
        the box itself may then be returned, to be asked again.
        """


@dataclass(slots=True)
class Incumbent:
    """The best fleet found so far, in whichever context."""

    objective: float = math.inf
    context: Context | None = None
    counts: Floats | None = None
    cost_usd: float = math.inf
    duration_s: float = math.inf

    def offer(self, context: Context, counts: Floats) -> bool:
        """Take the best of some whole fleets, (pools, fleets), if it is better."""
        if counts.shape[1] == 0:
            return False
        values = context.values(counts, better_than=self.objective)
        best = int(np.argmin(values.objective))
        if not values.objective[best] < self.objective:
            return False
        self.objective = float(values.objective[best])
        self.cost_usd = float(values.cost_usd[best])
        self.duration_s = float(values.duration_s[best])
        self.context, self.counts = context, counts[:, best].copy()
        return True


class _Open(NamedTuple, Generic[Box]):
    """A box that may hold something better."""

    promise: float
    order: int
    bound: float
    depth: int
    space: Space[Box]
    box: Box


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search proved."""

    bound: float
    complete: bool
    box_count: int


def search(
    spaces: Sequence[Space[Box]],
    incumbent: Incumbent,
    *,
    gap_fraction: float,
    watch: Watch,
    polish: Callable[[Context, Relaxed], None],
) -> Found:
    """Search all spaces; `polish` makes whole fleets of a relaxation's point."""
    order = count()
    heap = [
        _Open(bound if i % _SCOUTS else 0.0, next(order), bound, 0, space, box)
        for space in spaces
        for i, (bound, box) in enumerate(space.roots(incumbent.objective * (1 - gap_fraction)), 1)
    ]
    heapq.heapify(heap)
    boxes = 0
    while heap:
        if boxes % _REPORT_EVERY == 0:
            bound = _least_bound(incumbent, heap, gap_fraction)
            watch.report(_progress(incumbent, bound, boxes))
        if watch.stopped():
            bound = _least_bound(incumbent, heap, gap_fraction)
            return Found(bound=bound, complete=False, box_count=boxes)
        _, _, bound, depth, space, box = heapq.heappop(heap)
        target = incumbent.objective * (1 - gap_fraction)
        if bound >= target:
            continue
        boxes += 1
        relaxed = space.relax(box, target, most_counts=_most_counts(depth))
        if relaxed is None:
            continue
        if relaxed.fleets is not None:
            incumbent.offer(space.context, relaxed.fleets)
            continue
        polish(space.context, relaxed)
        bound = max(bound, relaxed.bound)
        improves = partial(_improves, incumbent, space.context)
        for child in space.split(box, relaxed, improves):
            child_open = _Open(relaxed.promise, next(order), bound, depth + 1, space, child)
            heapq.heappush(heap, child_open)
    proved = incumbent.objective * (1 - gap_fraction)
    return Found(bound=proved, complete=True, box_count=boxes)


def _improves(incumbent: Incumbent, context: Context, fleet: Floats) -> bool:
    if not context.least_workers <= fleet.sum() <= context.most_workers:
        return False
    return incumbent.offer(context, fleet[:, None])


def _most_counts(depth: int) -> int:
    """Return how many fleets are evaluated rather than split: more where splitting did not help."""
    return int(min(_FEWEST_COUNTS * 1.15**depth, _MOST_COUNTS))


def _progress(incumbent: Incumbent, bound: float, boxes: int) -> SearchProgress:
    best = incumbent.objective if incumbent.counts is not None else None
    return SearchProgress(best=best, lower_bound=bound, box_count=boxes)


def _least_bound(incumbent: Incumbent, heap: Sequence[_Open[Box]], gap_fraction: float) -> float:
    """Return what holds of all fleets: dropped boxes are no better than the best by the gap."""
    return min(incumbent.objective * (1 - gap_fraction), *(item.bound for item in heap))
