"""Good fleets early: the better the best known fleet, the more boxes are dropped at sight."""

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.offer import Market
from spotwright.planner.branch_and_bound import Incumbent
from spotwright.planner.context import Context

Floats = NDArray[np.float64]

_MOST_POLISHED, _MOST_POLISHED_LOST = 40, 80  # the latter while no fleet is known
_WORTH_POLISHING = 1.05  # times the best
_SIZES = 12
_BEGINNINGS = 2  # fleets of one pool that are improved in each context
_ALWAYS, _SELDOM = 60, 8  # points polished; then one in so many
# Fleets times pools that may be evaluated in climbing from one place.
_COUNTS_AT_START, _COUNTS_OF_A_POINT = 600_000, 150_000
_STRIDES = (1, 4)  # nodes added or dropped at once


class LocalSearch:
    """Add, drop and swap nodes while that helps."""

    def __init__(self, incumbent: Incumbent) -> None:
        """Improve this incumbent."""
        self._incumbent = incumbent
        self._polished = self._asked = 0
        self._counts_left = 0

    def start(self, context: Context) -> None:
        """Try fleets of one pool in several sizes, then the neighbours of the best."""
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
        if fleets.shape[1] == 0:
            return
        self._counts_left = _COUNTS_AT_START
        scores = context.scores(fleets)
        for best in np.argsort(scores, kind="stable")[:_BEGINNINGS]:
            if scores[best] < self._incumbent.objective * _WORTH_POLISHING:
                self._climb(context, fleets[:, best], float(scores[best]))

    def polish(self, context: Context, point: Floats) -> None:
        """Round a relaxation's point, and improve it if it is nearly as good as the best."""
        self._asked += 1
        lost = not np.isfinite(self._incumbent.objective)
        if not lost and self._asked > _ALWAYS and self._asked % _SELDOM:
            return
        fleet = self._rounded(context, point[: len(context.workers)])
        if not 1 <= fleet.sum() <= context.most_workers:
            return
        score = float(context.scores(fleet[:, None])[0])
        close = score <= self._incumbent.objective * _WORTH_POLISHING
        most = _MOST_POLISHED_LOST if lost else _MOST_POLISHED
        if close and np.isfinite(score) and self._polished < most:
            self._polished += 1
            self._counts_left = _COUNTS_OF_A_POINT
            self._climb(context, fleet, score)

    def _climb(self, context: Context, fleet: Floats, score: float) -> None:
        self._incumbent.offer(context, fleet[:, None])
        while self._counts_left > 0:
            near = _neighbours(context, fleet)
            if near.shape[1] == 0:
                return
            self._counts_left -= near.size
            scores = context.scores(near)
            best = int(np.argmin(scores))
            if not scores[best] < score * (1 - 1e-9):
                return
            fleet, score = near[:, best], float(scores[best])
            self._incumbent.offer(context, fleet[:, None])

    def _rounded(self, context: Context, x: Floats) -> Floats:
        whole = np.floor(x + 1e-9)
        missing = round(float(x.sum() - whole.sum()))
        for i in np.argsort(-(x - whole), kind="stable")[: max(0, missing)]:
            whole[i] += 1
        return np.clip(whole, context.limits.lower, context.limits.upper)


def _neighbours(context: Context, fleet: Floats) -> Floats:
    """Return fleets with some nodes more, some less, or one exchanged."""
    limits = context.limits
    used = np.flatnonzero(fleet > 0)
    open_pools = _cheapest_of_their_kind(context, fleet)
    one = np.eye(len(fleet))
    more, less = one[:, open_pools], one[:, used]
    steps = [stride * part for stride in _STRIDES for part in (more, -less)]
    steps += [more - one[:, [i]] for i in used]
    fleets = fleet[:, None] + np.concatenate(steps, axis=1)
    inside = (fleets >= limits.lower[:, None]) & (fleets <= limits.upper[:, None])
    nodes = fleets.sum(axis=0)
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
