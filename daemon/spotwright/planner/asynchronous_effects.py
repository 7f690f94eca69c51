"""Where a box of asynchronous fleets flatters a point: what to cut it by."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.plan import Objective
from spotwright.planner.asynchronous_workers import (
    EPS,
    AsynchronousWorkers,
    Box,
    least_coefficient,
)

Floats = NDArray[np.float64]

_EXPLAINS = 0.3  # of the flattery: what the range to be cut should mend
_NARROW = 1e-7


class AsynchronousEffects:
    """Compares what a box assumes of a point with what is true of it."""

    def __init__(self, workers: AsynchronousWorkers) -> None:
        """Prepare for points of these workers."""
        self._workers = workers

    def effects(self, box: Box, x: Floats) -> dict[str, float]:
        """Return by how much, in logarithms, each range flatters the point."""
        effects: dict[str, float] = {}
        if self._workers.queues_at(box.n):
            effects |= self._queue_effects(box, x)
        if self._workers.uses_batch and self._workers.per_step:
            effects |= self._law_effects(box, x)
        low, high = box.hazard
        if high > low + EPS:
            per_node = self._workers.context.restart_s / 3600 / box.n
            there = min(max(float(self._workers.context.hazard @ x), low), high)
            effects["hazard"] = math.log((1 + per_node * there) / (1 + per_node * low))
        return {name: e for name, e in effects.items() if self._is_wide(box, name)}

    def _is_wide(self, box: Box, name: str) -> bool:
        low, high = getattr(box, name)
        scale = float(self._workers.lone_s(box.n).mean()) if "wait" in name else abs(high)
        return bool(high - low > _NARROW * max(scale, 1e-12))

    def _queue_effects(self, box: Box, x: Floats) -> dict[str, float]:
        """Return how much too fast the point is: for its link, its full server, its wait."""
        lone_s, z = self._workers.lone_s(box.n), box.full_wait[0]
        queue, own = (
            self._workers.queue(box.n),
            min(max(self._workers.link_of(x), box.link[0]), box.link[1]),
        )
        wait, full_wait = queue.waits(x, lone_s, own)
        _, fast = self._workers.rates(box)
        rates = 1 / np.maximum(lone_s + wait, self._workers.feed_s)
        s = float((x / (lone_s + z)).sum())
        tangent, most = self._workers.tangent(box, s), float(x @ fast)
        at_link = min(queue.speed(s, z, own), most)
        at_full = queue.speed(float((x / (lone_s + full_wait)).sum()), full_wait, own)
        weight = 1.0 if not self._workers.per_step else 0.3 if self._workers.uses_batch else 0.0
        samples, steps = float(x @ (self._workers.batch * rates)), float(x @ rates)
        batch = samples / steps
        away = np.abs(self._workers.batch - batch) * (
            fast - self._workers.rates(box)[0]
        )  # see _batch_rows
        too_fast = min(float(x @ (self._workers.batch * fast)), samples + float(x @ away)) / samples
        effects = {
            "wait": weight * _log(too_fast),
            "full_wait": _log(at_link / at_full),
            "link": _log(min(tangent.value + tangent.slope * s, most) / at_link),
        }
        if not self._workers.per_step:  # V <= B1 y, or the sum of the rates
            too_large = box.batch[1] / batch
            effects["wait"] = _log(min(too_fast, too_large))
            effects["batch"] = _log(too_large) if too_large < too_fast else 0.0
        return effects

    def _law_effects(self, box: Box, x: Floats) -> dict[str, float]:
        value = {name: self.value(box, name, x) for name in ("batch", "samples", "squares")}
        coefficient = self._workers.coefficient(box)
        base = self._workers.updates(box.n, box.batch[1], coefficient)
        batch = min(max(value["batch"], box.batch[0]), box.batch[1])
        there = self._workers.updates(box.n, batch, coefficient)
        effects = {"batch": math.log(there / (base + self._counted(box, x, there - base)))}
        if self._workers.spotdnn is None:
            return effects
        fastest = min(max(self.value(box, "fastest", x), box.fastest[0]), box.fastest[1])
        corner = {"fastest": box.fastest[1], "samples": box.samples[0], "squares": box.squares[0]}
        point = {"fastest": fastest}
        for name in ("samples", "squares"):
            low, high = getattr(box, name)
            point[name] = min(max(value[name], low), high)
        at_point = self._updates_at(box, point)
        alone = {name: corner | {name: point[name]} for name in corner}
        added = {name: _log(self._updates_at(box, place) / base) for name, place in alone.items()}
        if max(added.values()) < _EXPLAINS * _log(at_point / base):  # they act together
            alone = {name: point | {name: corner[name]} for name in corner}
            added = {n: _log(at_point / self._updates_at(box, p)) for n, p in alone.items()}
        effects |= added
        return effects

    def _updates_at(self, box: Box, place: Mapping[str, float]) -> float:
        """Return j where the fastest worker, V and Q have given values."""
        assert self._workers.spotdnn is not None
        least = least_coefficient(box.n, place["fastest"], place["samples"], place["squares"])
        coefficient = max(least, self._workers.spotdnn.coefficient_range[0])
        return self._workers.updates(box.n, box.batch[1], coefficient)

    def _counted(self, box: Box, x: Floats, more: float) -> float:
        """Return how many of the updates that a smaller batch takes the rows know of already."""
        if self._workers.spotdnn is None:
            return 0.0
        _, fast = self._workers.rates(box)
        steps = min(float(x @ fast), self._workers.most_steps(box.n))
        rent = (
            (float(self._workers.context.price @ x) + self._workers.context.servers_usd_per_hour)
            / 3600
            / steps
        )
        known_in_cost, known_in_time = (
            self._workers.least_rent(box.n) / rent,
            steps / self._workers.most_steps(box.n),
        )
        if self._workers.context.objective is Objective.TIME:
            return more * min(known_in_time, 1.0)
        if math.isinf(self._workers.context.deadline_s):
            return more * min(known_in_cost, 1.0)
        return more * min(known_in_cost, known_in_time, 1.0)

    def value(self, box: Box, name: str, x: Floats) -> float:
        """Return what a point has where a box has a range."""
        if name in ("wait", "full_wait"):
            link = min(max(self._workers.link_of(x), box.link[0]), box.link[1])
            waits = self._workers.queue(box.n).waits(x, self._workers.lone_s(box.n), link)
            return waits[0] if name == "wait" else waits[1]
        if name == "hazard":
            return float(self._workers.context.hazard @ x)
        slow, fast = self._workers.rates(box)
        rates = (slow + fast) / 2
        speeds = self._workers.batch * rates
        if name == "fastest":
            return float(speeds[x > 1e-6].max())
        samples = float(x @ speeds)
        if name == "samples":
            return samples
        return samples / float(x @ rates) if name == "batch" else float(x @ speeds**2)


def _log(ratio: float) -> float:
    return math.log(max(ratio, 1.0))
