"""Where a box of asynchronous fleets flatters a point: what to cut it by."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.plan import Objective
from spotwright.planner.asynchronous_workers import EPS, AsynchronousWorkers, Box, Range
from spotwright.planner.pace import pace
from spotwright.planner.switching import missed_by_range, missed_running, switching_bound

Floats = NDArray[np.float64]

_EXPLAINS = 0.3  # of the flattery: what the range to be cut should mend
_NARROW = 1e-7
_LAW_RANGES = ("batch", "share", "fastest", "samples", "squares")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a fleet, its counts possibly fractional, has of everything that boxes have ranges of."""

    x: Floats
    rates: Floats  # steps/s of one worker of each class, waiting included
    steps: float
    samples: float
    fastest: float
    share: float
    batch: float
    squares: float
    wait: float
    full_wait: float
    link: int
    hazard: float
    pace: float


class AsynchronousEffects:
    """Compares what a box assumes of a point with what is true of it."""

    def __init__(self, workers: AsynchronousWorkers) -> None:
        """Prepare for points of these workers."""
        self._workers = workers

    def place(self, box: Box, x: Floats) -> Place:
        """Return where a point is."""
        workers, lone_s = self._workers, self._workers.lone_s(box.n)
        link, wait, full_wait = 0, 0.0, 0.0
        if workers.queues_at(box.n):
            link = min(max(workers.link_of(x), box.link[0]), box.link[1])
            wait, full_wait = workers.queue(box.n).waits(x, lone_s, link)
        rates = 1 / np.maximum(lone_s + wait, workers.feed_s)
        speeds = workers.batch * rates
        steps, samples, fastest = float(x @ rates), float(x @ speeds), leader(speeds, x)[0]
        return Place(
            x=x,
            rates=rates,
            steps=steps,
            samples=samples,
            fastest=fastest,
            share=fastest / samples,
            batch=samples / steps,
            squares=float(x @ speeds**2),
            wait=wait,
            full_wait=full_wait,
            link=link,
            hazard=float(workers.context.hazard @ x),
            pace=pace(workers, box).at(steps, samples, fastest),
        )

    def effects(self, box: Box, place: Place) -> dict[str, float]:
        """Return by how much, in logarithms, each range flatters the point."""
        effects: dict[str, float] = {}
        if self._workers.queues_at(box.n):
            effects |= self._queue_effects(box, place)
        if self._workers.uses_batch and self._workers.per_step:
            effects |= self._law_effects(box, place)
        low, high = box.hazard
        if high > low + EPS:
            per_node = self._workers.context.restart_s / 3600 / box.n
            there = min(max(place.hazard, low), high)
            effects["hazard"] = math.log((1 + per_node * there) / (1 + per_node * low))
        found = {name: e for name, e in effects.items() if self._is_wide(box, name)}
        return found | self._switching_effects(box, place)

    def _switching_effects(self, box: Box, place: Place) -> dict[str, float]:
        """Return how much of the cost of switching the box does not know of."""
        context = self._workers.context
        if not context.switching.any() or not context.costs_matter:
            return {}
        rent = (float(context.price @ place.x) + context.servers_usd_per_hour) / 3600 / place.pace
        switching = switching_bound(context, box.lower).at(place.x)
        missed = float(missed_running(context, box.lower, place.x).max())
        return {
            "running": math.log(1 + max(missed, 0.0) / (rent + switching)),
            "pace": missed_by_range(rent, switching, place.pace, box.pace),
        }

    def _is_wide(self, box: Box, name: str) -> bool:
        low, high = getattr(box, name)
        scale = float(self._workers.lone_s(box.n).mean()) if "wait" in name else abs(high)
        return bool(high - low > _NARROW * max(scale, 1e-12))

    def _queue_effects(self, box: Box, place: Place) -> dict[str, float]:
        """Return how much too fast the point is: for its link, its full server, its wait."""
        workers, x, z = self._workers, place.x, box.full_wait[0]
        lone_s, queue = workers.lone_s(box.n), workers.queue(box.n)
        slow, fast = workers.rates(box)
        s = float((x / (lone_s + z)).sum())
        tangent, most = workers.tangent(box, s), float(x @ fast)
        at_link = min(queue.speed(s, z, place.link), most)
        s_full = float((x / (lone_s + place.full_wait)).sum())
        at_full = queue.speed(s_full, place.full_wait, place.link)
        weight = 1.0 if not workers.per_step else 0.3 if workers.uses_batch else 0.0
        away = np.abs(workers.batch - place.batch) * (fast - slow)  # see _samples_rows
        summed = min(float(x @ (workers.batch * fast)), place.samples + float(x @ away))
        too_fast = summed / place.samples
        effects = {
            "wait": weight * _log(too_fast),
            "full_wait": _log(at_link / at_full),
            "link": _log(min(tangent.at(s, x), most) / at_link),
        }
        if not workers.per_step:  # V <= B1 y, or the sum of the rates
            too_large = box.batch[1] / place.batch
            effects["wait"] = _log(min(too_fast, too_large))
            effects["batch"] = _log(too_large) if too_large < too_fast else 0.0
        effects["wait"] = max(effects["wait"], self._traffic_effect(place, slow))
        return effects

    def _traffic_effect(self, place: Place, slow: Floats) -> float:
        """Return by how much traffic between zones is cheaper at the rates of the longest wait."""
        context = self._workers.context
        if context.objective is not Objective.COST or not context.traffic.any():
            return 0.0
        rent = (float(context.price @ place.x) + context.servers_usd_per_hour) / 3600
        traffic = [float(place.x @ (rates * context.traffic)) for rates in (place.rates, slow)]
        return _log((rent + traffic[0]) / (rent + traffic[1]))

    def _law_effects(self, box: Box, place: Place) -> dict[str, float]:
        """Return what each range alone adds to the pace, or where that explains little, takes."""
        names = _LAW_RANGES if self._workers.spotdnn else ("batch",)
        wide: dict[str, Range] = {name: getattr(box, name) for name in names}
        point = {name: _point(wide[name], getattr(place, name)) for name in names}

        def at(part: Box) -> float:
            return pace(self._workers, part).at(place.steps, place.samples, place.fastest)

        here, single = at(box), box.between(**point)
        true = at(single)
        added = {name: _log(here / at(box.between(**{name: point[name]}))) for name in names}
        if max(added.values()) < _EXPLAINS * _log(here / true):  # they act together
            added = {n: _log(at(single.between(**{n: wide[n]})) / true) for n in names}
        return added


def leader(speeds: Floats, x: Floats) -> tuple[float, float]:
    """Return the mean speed of the fastest worker, counts possibly fractional, and the least."""
    order = np.argsort(-speeds, kind="stable")
    counts = np.minimum(np.cumsum(x[order]), 1.0)
    last = int(np.searchsorted(counts, 1.0 - 1e-9))
    mean = float(np.diff(counts, prepend=0.0) @ speeds[order]) / float(counts[-1])
    return mean, float(speeds[order[min(last, len(order) - 1)]])


def _point(limits: Range, value: float) -> Range:
    inside = min(max(value, limits[0]), limits[1])
    return inside, inside


def _log(ratio: float) -> float:
    return math.log(max(ratio, 1.0))
