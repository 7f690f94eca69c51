"""Good fleets early: the better the best known fleet, the more boxes are dropped at sight."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.offer import Market
from spotwright.planner.branch_and_bound import Incumbent, Relaxed
from spotwright.planner.context import Context

Floats = NDArray[np.float64]

_SIZES = 12
_BEGINNINGS = 2  # fleets of one pool that are improved in each context
_STEPS_AT_START, _STEPS_OF_A_POINT = 24, 12  # at most, in climbing from one place
_STRIDES = (1, 4)  # nodes added or dropped at once
_WORTH_POLISHING = 1.1  # times the best
_NEARLY = 1.01  # times what a rounded point misses a goal by at least
_IN_VAIN = 4  # points in a row that were no help: then one in so many is tried
_OFTEN_ENOUGH = 4  # points of as many nodes in one context
_POOLS = 10  # that a point's fleets may have beside those the point uses
_MOST_PAIRS = 4_000  # of exchanges


class LocalSearch:
    """Add, drop and swap nodes while that helps."""

    def __init__(self, incumbent: Incumbent) -> None:
        """Improve this incumbent."""
        self._incumbent = incumbent
        self._least_missed = math.inf
        self._polished: Counter[tuple[Context, int]] = Counter()  # by context and number of nodes
        self._in_vain = 0  # points since the last that helped
        self._begun: set[tuple[Context, bytes]] = set()  # fleets that points were rounded to

    def start(self, contexts: Sequence[Context]) -> None:
        """Try fleets of one pool in several sizes, then improve the best of them."""
        beginnings = [place for context in contexts for place in _of_one_pool(context)]
        beginnings.sort(key=lambda place: place[0])
        for _, context, fleet in beginnings[:_BEGINNINGS]:
            others = np.array(_cheapest_of_their_kind(context), dtype=np.intp)
            self._offer_climbed(context, fleet, _STEPS_AT_START, others)

    def polish(self, context: Context, relaxed: Relaxed) -> None:
        """Round a relaxation's point; if that is promising, improve it with pools it likes."""
        x, limits = relaxed.point[: len(context.workers)], context.limits
        key = context, round(float(x.sum()))
        if relaxed.program is None or self._polished[key] >= _OFTEN_ENOUGH:
            return
        fleet = _rounded(context, x)
        if not 1 <= fleet.sum() <= context.most_workers:
            return
        value, missed = context.estimate(fleet)
        self._least_missed = min(self._least_missed, missed)
        likely = missed < self._least_missed * _NEARLY
        begun = context, fleet.tobytes()
        is_new = begun not in self._begun
        if is_new and likely and value < self._incumbent.objective * _WORTH_POLISHING:
            self._begun.add(begun)
            self._in_vain += 1
            if self._in_vain > _IN_VAIN and self._in_vain % _IN_VAIN:
                return
            self._polished[key] += 1
            free = np.flatnonzero((x <= 1e-6) & (limits.lower <= 0) & (limits.upper > 0))
            liked = free[np.argsort(relaxed.reduced[free], kind="stable")[:_POOLS]]
            best = self._incumbent.objective
            self._offer_climbed(context, fleet, _STEPS_OF_A_POINT, liked)
            if self._incumbent.objective < best:
                self._in_vain = 0

    def _offer_climbed(
        self, context: Context, x: Floats, steps: int, others: NDArray[np.intp]
    ) -> None:
        """Climb with the pools that are in use, or must be, and some others."""
        used = np.flatnonzero((x > 1e-6) | (context.limits.lower > 0))
        pools = np.union1d(used, others)
        narrow = context.narrowed(pools)
        fleet = _rounded(narrow, x[pools])
        if 1 <= fleet.sum() <= narrow.most_workers:
            whole = np.zeros(len(context.workers))
            whole[pools] = self._climbed(narrow, fleet, steps)
            self._incumbent.offer(context, whole[:, None])

    def _climbed(self, context: Context, fleet: Floats, steps: int) -> Floats:
        """Return the best fleet that so many steps lead to; two exchanges where one is no help."""
        score = float(context.scores(fleet[:, None])[0])
        for _ in range(steps):
            for near in _neighbours(context, fleet):
                scores = context.scores(near) if near.shape[1] else np.full(1, np.inf)
                best = int(np.argmin(scores))
                if scores[best] < score * (1 - 1e-9):
                    fleet, score = near[:, best], float(scores[best])
                    break
            else:
                break
        return fleet


def _of_one_pool(context: Context) -> Iterator[tuple[float, Context, Floats]]:
    """Yield the score and the counts of the best fleets of one pool beside the pins."""
    limits = context.limits
    sizes = np.unique(np.geomspace(1, max(1, context.most_workers), _SIZES).astype(int))
    columns = []
    for i in _cheapest_of_their_kind(context):
        mine = sizes[sizes <= limits.upper[i]]
        fleets = np.repeat(limits.lower[:, None], len(mine), axis=1)
        fleets[i] = np.maximum(mine, limits.lower[i])
        columns.append(fleets)
    fleets = np.concatenate(columns, axis=1)
    nodes = fleets.sum(axis=0)
    fleets = fleets[:, (nodes > 0) & (nodes <= context.most_workers)]
    if fleets.shape[1]:
        scores = context.scores(fleets)
        for best in np.argsort(scores, kind="stable")[:_BEGINNINGS]:
            if np.isfinite(scores[best]):
                yield float(scores[best]), context, fleets[:, best]


def _rounded(context: Context, x: Floats) -> Floats:
    whole = np.floor(x + 1e-9)
    missing = round(float(x.sum() - whole.sum()))
    for i in np.argsort(-(x - whole), kind="stable")[: max(0, missing)]:
        whole[i] += 1
    return np.clip(whole, context.limits.lower, context.limits.upper)


def _neighbours(context: Context, fleet: Floats) -> Iterator[Floats]:
    """Yield fleets with some nodes more, some less or one exchanged; then, with two exchanged."""
    used = np.flatnonzero(fleet > 0)
    one = np.eye(len(fleet))
    more, less = one[:, _cheapest_of_their_kind(context, fleet)], one[:, used]
    swaps = np.concatenate([more - one[:, [i]] for i in used], axis=1)
    steps = [stride * part for stride in _STRIDES for part in (more, -less)]
    yield _inside(context, fleet[:, None] + np.concatenate((*steps, swaps), axis=1))
    if swaps.shape[1] ** 2 <= 2 * _MOST_PAIRS:
        first, second = np.triu_indices(swaps.shape[1])
        yield _inside(context, fleet[:, None] + swaps[:, first] + swaps[:, second])


def _inside(context: Context, fleets: Floats) -> Floats:
    limits, nodes = context.limits, fleets.sum(axis=0)
    inside = (fleets >= limits.lower[:, None]) & (fleets <= limits.upper[:, None])
    return fleets[:, inside.all(axis=0) & (nodes >= 1) & (nodes <= context.most_workers)]


def _cheapest_of_their_kind(context: Context, fleet: Floats | None = None) -> list[int]:
    """Return the cheapest pool of each type, market and region that a fleet does not exhaust."""
    full = np.zeros(len(context.price)) if fleet is None else fleet
    free = (full < context.limits.upper).tolist()
    prices = context.price.tolist()
    best: dict[tuple[str, Market, str], int] = {}
    for i, worker in enumerate(context.workers):
        offer = worker.group.offer
        assert offer is not None
        kind = (offer.instance_type.name, offer.market, offer.region)
        if free[i] and (kind not in best or prices[i] < prices[best[kind]]):
            best[kind] = i
    return sorted(best.values())
