"""Boxes for synchronous training: a step waits for the worst of a few keys over the nodes present.

    T = step(n, G, worst),   worst_k = largest key_k of any pool in use    (slowest GPU, link, ...)
    time = updates * T,      updates = U  or  W / V,  V = samples per step = sum x samples
    cost = time * P + traffic

A box holds n, the GPUs G, V, each worst key and the events per hour between two values. T grows in
n, G and every key, so that T at the lower corner bounds it. A key's lower end asks for a pool that
bad, its upper end bars worse ones. With c seconds per sample and GPU, a global batch split by speed
takes at least batch / sum(x / c) seconds: there V is that sum, the capacity, and its upper end
bounds T too.

Events of a pool of x nodes come at hazard * (shock + (1 - shock) x) per hour: at most hazard * x,
at least hazard * ((1 - shock) + shock / upper) x.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import SolverGaveUpError
from spotwright.perfmodel.traffic import least_usd_per_crossing
from spotwright.planner.branch_and_bound import Relaxed
from spotwright.planner.context import Context
from spotwright.planner.limit_rows import pool_use
from spotwright.planner.linear_program import Empty, LinearProgram, Optimum
from spotwright.planner.relaxation import BoxRows, Question, Ratios, split_counts, unsolved
from spotwright.planner.ring_crossings import crossings, split_zone, visits
from spotwright.planner.switching import (
    missed_by_range,
    missed_running,
    split_running,
    switching_bound,
)
from spotwright.planner.synchronous_effects import Effects, other_effects, step_effects
from spotwright.planner.synchronous_workers import (
    EPS,
    Box,
    Range,
    SynchronousWorkers,
    into,
)

Floats = NDArray[np.float64]

# Of the objective: below, boxes are cut by counts. While no fleet is known, slivers prove nothing.
_FLATTERY, _COARSE = 3e-4, 2e-2


class SynchronousSpace:
    """Fleets of synchronous workers."""

    def __init__(self, context: Context) -> None:
        """Prepare for boxes."""
        self.context, self._workers = context, SynchronousWorkers(context)
        self._last_point = np.zeros(len(context.workers))
        self._proof: Optimum | Empty | None = None  # of the last box
        self._hot: NDArray[np.bool_] | None = None

    def roots(self, _target: float) -> Iterator[tuple[float, Box]]:
        """Return one box around everything."""
        context = self.context
        n0, n1 = context.least_workers, context.most_workers
        hazard = context.hazard
        everything = Box(
            lower=context.limits.lower,
            upper=np.minimum(context.limits.upper, n1),
            nodes=(n0, n1),
            gpus=(n0 * float(self._workers.gpus.min()), n1 * float(self._workers.gpus.max())),
            samples=(
                n0 * float(self._workers.samples.min()),
                n1 * float(self._workers.samples.max()),
            ),
            events=(0.0, n1 * float(hazard.max())),
            keys=tuple((float(key.min()), float(key.max())) for key in self._workers.all_keys),
            visited=(False,) * len(self._workers.zones),
        )
        yield 0.0, everything

    def relax(self, box: Box, target: float, *, most_counts: int) -> Relaxed | None:
        """Bound a box."""
        tight = self._tightened(box)
        if tight is None:
            return None
        cost_cap, time_cap = self.context.caps(target)
        question = Question(
            box=self._rows(tight, cost_cap, time_cap),
            objective=self.context.objective,
            cost_cap=cost_cap,
            time_cap=time_cap,
        )
        program = question.program()
        if self._ruled_out(program, asked=math.isfinite(question.target)):
            return None
        try:
            found = program.relaxed(self._hot_rows(len(program.low)))
        except SolverGaveUpError:
            return unsolved(box.lower, box.upper, program)
        self._proof = found
        if isinstance(found, Empty):
            return None
        self._last_point = found.point
        return question.answer(
            program, found, pools=len(self._workers.gpus), most_counts=most_counts
        )

    def _ruled_out(self, program: LinearProgram, *, asked: bool) -> bool:
        """Try the multipliers of the last box that was solved: often they do."""
        proof = self._proof
        if isinstance(proof, Empty):
            return program.is_empty_by(proof.multipliers)
        return asked and proof is not None and program.bound(proof.multipliers)[0] > 0

    def _hot_rows(self, count: int) -> NDArray[np.bool_]:
        """Return which rows the solver starts with: limits only where they bound before."""
        if self._hot is None:
            self._hot = np.ones(count, dtype=np.bool_)
            self._hot[1 : len(self.context.limits.low)] = False
        return self._hot

    def _tightened(self, box: Box) -> Box | None:
        """Shrink a box to what its own ranges imply; None: it is empty."""
        kept = box.upper > 0
        for key, (_, high) in zip(self._workers.all_keys, box.keys, strict=True):
            kept &= key <= high * (1 + EPS)
        kept &= self.context.hazard <= box.events[1] * (1 + EPS)
        kept &= self._workers.needs_gpus <= box.gpus[1] * (1 + EPS)
        if not kept.any() or (box.lower[~kept] > 0).any():
            return None
        (n0, n1) = box.nodes
        n0 = max(n0, math.ceil(float(box.lower.sum()) - EPS))
        n1 = min(n1, math.floor(float(box.upper[kept].sum()) + EPS))
        if n0 > n1:
            return None
        keys = self._tightened_keys(box, kept)
        if keys is None:
            return None
        gpus = _tightened_sum(box.gpus, self._workers.gpus[kept], n0, n1)
        samples = _tightened_sum(box.samples, self._workers.samples[kept], n0, n1)
        gpus = (max(gpus[0], keys[-1][0]), gpus[1])
        if gpus[0] > gpus[1] * (1 + EPS) or samples[0] > samples[1] * (1 + EPS):
            return None
        return replace(
            box,
            upper=np.where(kept, box.upper, 0.0),
            nodes=(n0, n1),
            gpus=(gpus[0], max(gpus)),
            samples=(samples[0], max(samples)),
            keys=keys,
        )

    def _tightened_keys(self, box: Box, kept: NDArray[np.bool_]) -> tuple[Range, ...] | None:
        """Move the ends of each key to values that some pool has."""
        keys = []
        for key, (low, _) in zip(self._workers.all_keys, box.keys, strict=True):
            values = key[kept]
            values = values[values >= low * (1 - EPS)]  # the worst is one of these
            if len(values) == 0:
                return None
            keys.append((float(values.min()), float(values.max())))
        return tuple(keys)

    def _rows(self, box: Box, cost_cap: float, time_cap: float) -> BoxRows:
        context, limits = self.context, self.context.limits
        step_s = self._workers.corner_step_s(box)
        hazard, shock = context.hazard, context.job.workload.spot.common_shock_fraction
        rarest = hazard * ((1 - shock) + shock / np.maximum(box.upper, 1.0))
        ratios = self._ratios(box, step_s)
        matrix = list(limits.matrix)
        if limits.max_pools is not None:
            matrix[-1] = pool_use(box.upper)
        rows = [*matrix, self._workers.gpus, self._workers.samples, rarest, hazard]
        low = [float(box.nodes[0]), *limits.low[1:], box.gpus[0], box.samples[0], -np.inf]
        low.append(box.events[0])
        high = [float(box.nodes[1]), *limits.high[1:], box.gpus[1], box.samples[1]]
        high += [box.events[1], np.inf]
        for key, (least, _) in zip(self._workers.all_keys, box.keys, strict=True):
            bad = (box.upper > 0) & (key >= least * (1 - EPS))
            rows.append(bad.astype(np.float64))
            low.append(1.0)
            high.append(np.inf)
        for zone, visited in zip(self._workers.zones, box.visited, strict=True):
            rows.append(zone)
            low.append(1.0 if visited else -np.inf)
            high.append(np.inf)
        for row, most in self._split_rows(cost_cap, time_cap):
            rows.append(row)
            low.append(-np.inf)
            high.append(most)
        rows += 2 * [np.zeros_like(self._workers.gpus)]  # spare: the other goal, switching
        return BoxRows(
            rows=np.array(rows),
            low=_eased(low, -EPS),
            high=_eased(high, EPS),
            lower=box.lower,
            upper=box.upper,
            node_range=box.nodes,
            ratios=ratios,
        )

    def _ratios(self, box: Box, step_s: float) -> Ratios:
        context = self.context
        stops = self._workers.stops(box.events[0])
        updates = self._workers.updates(box.samples[1])
        work_s = updates * step_s
        # below the fraction stands V, at least V0; without a fraction, 1
        least_below = box.samples[0] if self._workers.ratio else 1.0
        seconds = stops.least_s(work_s, below=least_below)
        traffic = updates * context.traffic
        cost0 = context.servers_usd_per_hour * (seconds / 3600)
        if self._workers.crosses_zones:
            visits = crossings(self._workers, box, self._last_point)
            each = updates * least_usd_per_crossing(context.job.workload, gpus=box.gpus[0])
            traffic = traffic + each * visits.per_node
            cost0 += each * visits.constant
        return Ratios(
            cost=context.price * (seconds / 3600) + traffic,
            cost0=cost0,
            seconds=seconds,
            denominator=self._workers.samples
            if self._workers.ratio
            else np.zeros_like(self._workers.samples),
            denominator0=0.0 if self._workers.ratio else 1.0,
            range=box.samples if self._workers.ratio else (1.0, 1.0),
            switching=switching_bound(context, box.lower),
        )

    def _split_rows(self, cost_cap: float, time_cap: float) -> Iterator[tuple[Floats, float]]:
        """Yield what a split batch asks of the capacity itself: U * batch / capacity seconds."""
        if self._workers.split_batch is None:
            return
        context, capacity = self.context, self._workers.sustained
        work = self._workers.updates(1.0) * self._workers.split_batch.sample_count
        finite = math.isfinite(cost_cap)
        rent = context.price * (work / 3600)
        yield (
            rent - (cost_cap if finite else 0.0) * capacity,
            -context.servers_usd_per_hour * (work / 3600) if finite else np.inf,
        )
        in_time = math.isfinite(time_cap)
        yield -capacity, (-work / time_cap) if in_time else np.inf

    def split(
        self, box: Box, relaxed: Relaxed, improves: Callable[[Floats], bool]
    ) -> Sequence[Box]:
        """Cut where the relaxation flatters its point most, else by counts."""
        tight = self._tightened(replace(box, lower=relaxed.lower, upper=relaxed.upper))
        if tight is None:
            return []
        x = np.maximum(relaxed.point, 0.0)
        effects = self._effects(tight, x) if relaxed.program is not None else {}
        name = max(effects, key=lambda key: effects[key], default=None)
        if name is None or effects[name] < (_FLATTERY if relaxed.asked else _COARSE):
            return self._leaf(tight, relaxed, improves)
        return self._cut(tight, name, x)

    def _cut(self, box: Box, name: str | int, x: Floats) -> Sequence[Box]:
        """Cut a range, a key or what else flatters a point."""
        if isinstance(name, int):
            return self._key_halves(box, name)
        if name == "visited":
            zones = split_zone(self._workers, box, x)
            return [replace(box, upper=upper, visited=visited) for upper, visited in zones]
        if name == "running":
            parts = split_running(self.context, box.lower, box.upper, x)
            return [replace(box, lower=lower, upper=upper) for lower, upper in parts]
        if name == "nodes":
            n0, n1 = box.nodes
            at = min(max(math.floor((float(x.sum()) + (n0 + n1) / 2) / 2), n0), n1 - 1)
            return [replace(box, nodes=(n0, at)), replace(box, nodes=(at + 1, n1))]
        if name == "events" and box.events[0] == 0:
            least = float(self.context.hazard[self.context.hazard > 0].min())
            return [
                replace(box, events=(0.0, 0.0)),
                replace(box, events=(least, box.events[1])),
            ]
        return _halves(box, name, self._value(name, x))

    def _value(self, name: str, x: Floats) -> float:
        by_name = {
            "gpus": self._workers.gpus,
            "samples": self._workers.samples,
            "events": self.context.hazard,
        }
        return float(x @ by_name[name])

    def _key_halves(self, box: Box, index: int) -> Sequence[Box]:
        key, (low, high) = self._workers.all_keys[index], box.keys[index]
        values = np.unique(key[(box.upper > 0) & (key >= low * (1 - EPS))])
        middle = (len(values) - 1) // 2
        below, above = (low, float(values[middle])), (float(values[middle + 1]), high)
        return [
            replace(box, keys=(*box.keys[:index], part, *box.keys[index + 1 :]))
            for part in (below, above)
        ]

    def _leaf(
        self, box: Box, relaxed: Relaxed, improves: Callable[[Floats], bool]
    ) -> Sequence[Box]:
        """Cut by counts."""
        parts, fleet = split_counts(box.lower, box.upper, relaxed, improves)
        boxes = [replace(box, lower=lower, upper=upper) for lower, upper in parts]
        if fleet is not None and fleet.sum() < box.nodes[1]:
            larger = (round(float(fleet.sum())) + 1, box.nodes[1])
            boxes.append(replace(box, lower=np.maximum(box.lower, fleet), nodes=larger))
        return boxes

    def _effects(self, box: Box, x: Floats) -> Effects:
        """Return by how much, in logarithms, each range flatters the point."""
        effects = step_effects(self._workers, box, x) | other_effects(self._workers, box, x)
        if self._workers.crosses_zones and self.context.costs_matter:
            effects["visited"] = self._crossings_effect(box, x)
        if self.context.switching.any() and self.context.costs_matter:
            self._add_switching_effects(box, x, effects)
        return effects

    def _crossings_effect(self, box: Box, x: Floats) -> float:
        """Return how much of the cost of visiting zones the box does not know of."""
        ratios = self._ratios(box, self._workers.corner_step_s(box))
        updates = self._workers.updates(box.samples[1])
        each = updates * least_usd_per_crossing(self.context.job.workload, gpus=box.gpus[0])
        missed = visits(self._workers, x) - crossings(self._workers, box, self._last_point).at(x)
        known = float(ratios.cost @ x) + ratios.cost0
        return math.log(1 + max(missed, 0.0) * each / known)

    def _add_switching_effects(self, box: Box, x: Floats, effects: Effects) -> None:
        """Add how much of the cost of switching the box does not know of."""
        context, ratios = self.context, self._ratios(box, self._workers.corner_step_s(box))
        below = float(ratios.denominator @ x) + ratios.denominator0
        rent = (float(ratios.cost @ x) + ratios.cost0) / below
        switching = ratios.switching.at(x)
        missed = max(0.0, float(missed_running(context, box.lower, x).max()))
        effects["running"] = math.log(1 + missed / (rent + switching))
        if box.samples[1] > box.samples[0] * (1 + EPS) and self._workers.ratio:
            by_range = missed_by_range(rent, switching, below, box.samples)
            effects["samples"] = max(effects.get("samples", 0.0), by_range)


def _eased(limits: Sequence[float], by: float) -> Floats:
    """Return limits with room for rounding, and for two more rows."""
    exact = np.array([*limits, 0.0, 0.0])
    return np.asarray(exact + by * np.maximum(1.0, np.abs(exact)))


def _tightened_sum(limits: Range, each: Floats, n0: int, n1: int) -> Range:
    return max(limits[0], n0 * float(each.min())), min(limits[1], n1 * float(each.max()))


def _halves(box: Box, name: str, value: float) -> Sequence[Box]:
    low, high = getattr(box, name)
    at = 0.5 * (into((low, high), value) + 0.5 * (low + high))
    at = min(max(at, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return [_with(box, name, (low, at)), _with(box, name, (at, high))]


def _with(box: Box, name: str, value: Range) -> Box:
    fields = {name: value}
    return replace(box, **fields)  # type: ignore[arg-type]
