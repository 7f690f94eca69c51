"""Boxes for asynchronous training.

At a fixed number of workers n, with a = 1 / (T + wait) the steps/s of one worker and v = b a its
samples/s, y = sum x a, V = sum x v, Q = sum x v^2, P the rent:

    time = j / y  (a loss, steps)   or   W / V  (samples);    cost = time * P + traffic

Workers interact through few numbers, and a box holds each between two values: v_f, samples/s of the
fastest worker; V; Q; B = V / y, the weighted batch; w, the wait; z, the wait at a server that never
idles; the shortest link; h = sum hazard x. Loss laws are bounded at the box's best corner:

    spotdnn      j >= (c2 B1 + c3) sqrt((R_low + c4) n) / (L - c5) - c1
    noise-scale  j >= s_min (1 + noise / B1)

    R >= (1 - w1) sqrt(n / (n-1)),  w1 = f1 / V0     by Cauchy on the other workers' shares
    R^2 >= 1 - 2 f1 / Vm + Q0 / Vm^2,  Vm = max(V0, Q0 / f1)     it falls in v_f, grows in Q and V
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import SolverGaveUpError
from spotwright.domain.plan import Objective
from spotwright.planner.asynchronous_effects import AsynchronousEffects
from spotwright.planner.asynchronous_rows import AsynchronousRows
from spotwright.planner.asynchronous_workers import (
    EPS,
    AsynchronousWorkers,
    Box,
    Range,
    least_coefficient,
)
from spotwright.planner.branch_and_bound import Relaxed
from spotwright.planner.context import Context
from spotwright.planner.linear_program import LinearProgram, Optimum
from spotwright.planner.relaxation import Question, split_counts, whole_fleet

Floats = NDArray[np.float64]

# Of the objective: below, boxes are cut by counts. While no fleet is known, slivers prove nothing.
_FLATTERY, _COARSE = 3e-4, 2e-2
_TANGENTS = 6
_REMEMBERED = 4  # multipliers that are tried on the next box


class AsynchronousSpace:
    """Fleets of asynchronous workers."""

    def __init__(self, context: Context, remembered: dict[int, Floats] | None = None) -> None:
        """Prepare for boxes.

        Args:
            context: where the fleets stand.
            remembered: multipliers by number of workers, shared by contexts of the same pools.
        """
        self.context, self._workers = context, AsynchronousWorkers(context)
        self._rows, self._effects = (
            AsynchronousRows(self._workers),
            AsynchronousEffects(self._workers),
        )
        self._remembered = {} if remembered is None else remembered
        self._multipliers: list[Floats] = []
        self._hot: dict[int, NDArray[np.bool_]] = {}  # by the number of rows
        self._last_s = float(1 / self._workers.lone_s(1).mean())  # S / n at the last tangent

    def roots(self, target: float) -> Iterator[tuple[float, Box]]:
        """Return a box for every number of workers that could be better than a target."""
        batch = (float(self._workers.batch.min()), float(self._workers.batch.max()))
        if self._workers.spotdnn is not None:
            low, high = self._workers.spotdnn.batch_range
            batch = (max(batch[0], low), min(batch[1], high))
            if batch[0] > batch[1]:
                return
        for n in range(self.context.least_workers, self.context.most_workers + 1):
            bound = self._quick_bound(n, batch[1])
            if bound < target:
                yield bound, self._root(n, batch)

    def _root(self, n: int, batch: Range) -> Box:
        limits, hazard, lone_s = self.context.limits, self.context.hazard, self._workers.lone_s(n)
        longest = 0.0
        if self._workers.queues_at(n):
            longest = n / float(self._workers.queue(n).capacity.min())
        fastest = float((self._workers.batch / np.maximum(lone_s, self._workers.feed_s)).max())
        slowest = float(
            (self._workers.batch / np.maximum(lone_s + longest, self._workers.feed_s)).min()
        )
        return Box(
            n=n,
            lower=limits.lower,
            upper=np.minimum(limits.upper, n),
            fastest=(slowest, fastest),
            samples=(n * slowest, n * fastest),
            batch=batch,
            squares=(0.0, n * fastest**2),
            wait=(0.0, longest),
            full_wait=(0.0, longest),
            link=(0, max(0, len(self._workers.links) - 1)),
            hazard=(n * float(hazard.min()), n * float(hazard.max())),
        )

    def _quick_bound(self, n: int, batch: float) -> float:
        """Bound j P / y: P / y is at least the servers' rent / largest y + least price / rate."""
        largest, usd_per_step = self._workers.best_rates(n)
        below = n * largest
        if self._workers.per_step and self._workers.queueing:
            below = min(below, self._workers.model.servers[self._workers.links[0]].rates[n - 1])
        work, context = self._workers.updates(n, batch, 0.0), self.context
        if context.objective is Objective.TIME:
            return work / below
        return work * (context.servers_usd_per_hour / below + usd_per_step) / 3600

    def relax(self, box: Box, target: float, *, most_fleets: int) -> Relaxed | None:
        """Bound a box."""
        tight = self._tightened(box)
        if tight is None:
            return None
        cost_cap, time_cap = self.context.caps(target)
        rows = self._rows.rows(tight, time_cap)
        if rows is None:
            return None
        question = Question(
            box=rows, objective=self.context.objective, cost_cap=cost_cap, time_cap=time_cap
        )
        program = question.program()
        if self._workers.queues_at(box.n):
            program = self._with_tangent(program, tight, self._last_s)
        if math.isfinite(question.target) and self._ruled_out(program, box.n):
            return None
        try:
            solved = self._solve(program, tight)
        except SolverGaveUpError:
            middle = (program.lower + np.minimum(program.upper, program.lower + 1)) / 2
            return Relaxed(0.0, 0.0, middle, None, None, asked=False)
        if solved is None:
            return None
        program, optimum = solved
        self._remember(optimum.multipliers[: len(rows.low) + 1], box.n)
        return question.answer(program, optimum, pools=self._workers.pools, most_fleets=most_fleets)

    def _ruled_out(self, program: LinearProgram, n: int) -> bool:
        """Try the multipliers of boxes that were solved before: often they do."""
        elsewhere = self._remembered.get(n)
        known = self._multipliers if elsewhere is None else [*self._multipliers, elsewhere]
        return any(
            program.bound(multipliers)[0] > 0
            for multipliers in known
            if len(multipliers) == len(program.low)
        )

    def _remember(self, multipliers: Floats, n: int) -> None:
        self._multipliers = [multipliers, *self._multipliers[: _REMEMBERED - 1]]
        self._remembered[n] = multipliers

    def _solve(self, program: LinearProgram, box: Box) -> tuple[LinearProgram, Optimum] | None:
        """Solve, adding tangents of the queue's speed until the point lies below them."""
        for left in reversed(range(_TANGENTS)):
            optimum = program.relaxed(self._hot_rows(len(program.low)))
            if optimum is None:
                break
            if left == 0 or not self._workers.queues_at(box.n):
                break
            x, y = optimum.point[: self._workers.pools], float(optimum.point[self._workers.pools])
            s = float((x / (self._workers.lone_s(box.n) + box.full_wait[0])).sum())
            self._last_s = s / box.n
            if self._workers.uses_batch and y > 0:
                self._rows.last_batch = (
                    float(optimum.point[self._workers.pools + 1]) * self._rows.unit / y
                )
            tangent = self._workers.tangent(box, s)
            if y <= (tangent.value + tangent.slope * s) * (1 + 1e-5):
                break
            program = self._with_tangent(program, box, self._last_s)
        return None if optimum is None else (program, optimum)

    def _hot_rows(self, count: int) -> NDArray[np.bool_]:
        """Return which rows the solver starts with: limits only where they bound before."""
        if count not in self._hot:
            self._hot[count] = np.ones(count, dtype=np.bool_)
            self._hot[count][1 : len(self.context.limits.low)] = False
        return self._hot[count]

    def _with_tangent(self, program: LinearProgram, box: Box, s_per_worker: float) -> LinearProgram:
        """Bound the steps/s by the tangent at a mean rate of the workers."""
        tangent = self._workers.tangent(box, s_per_worker * box.n)
        rates = -tangent.slope / (self._workers.lone_s(box.n) + box.full_wait[0])
        row = np.concatenate((rates, (1.0, 0.0)))
        return program.with_row(row, tangent.value + EPS * abs(tangent.value) + EPS)

    def _tightened(self, box: Box) -> Box | None:
        """Shrink a box to what its own ranges imply; None: it is empty."""
        slow, fast = self._workers.rates(box)
        kept = box.upper > 0
        if self._workers.links:
            kept &= self._workers.visit_s >= self._workers.links[box.link[0]] * (1 - EPS)
        if self._workers.spotdnn is not None:
            kept &= self._workers.batch * slow <= box.fastest[1] * (1 + EPS)
        kept &= self.context.hazard <= box.hazard[1] + EPS
        if not kept.any() or (box.lower[~kept] > 0).any():
            return None
        box = replace(box, upper=np.where(kept, box.upper, 0.0))
        if self._workers.queues_at(box.n):
            waits = self._tightened_waits(box, self._workers.lone_s(box.n)[kept])
            if waits is None:
                return None
            box = replace(box, wait=waits[0], full_wait=waits[1])
            slow, fast = self._workers.rates(box)
        if self._workers.uses_batch:
            batches = self._workers.batch[kept]
            low = max(box.batch[0], float(batches.min()))
            high = min(box.batch[1], float(batches.max()))
            if low > high * (1 + EPS):
                return None
            box = replace(box, batch=(low, max(low, high)))
        return self._tightened_shares(box, kept, slow, fast) if self._workers.spotdnn else box

    def _tightened_waits(self, box: Box, lone_s: Floats) -> tuple[Range, Range] | None:
        """Return what the wait and that at a full server can be, T between two values.

        The harmonic mean of T + W is n / speed, the speed between that of n slow and n fast ones.
        """
        n, least, most = box.n, float(lone_s.min()), float(lone_s.max())
        queue, links = self._workers.queue(n), slice(box.link[0], box.link[1] + 1)
        full = n / queue.capacity[links]
        slowest = n / float(queue.speeds(n / most, 0.0, links)[0].min())
        quickest = n / float(queue.speeds(n / least, 0.0, links)[0].max())
        wait = (max(box.wait[0], quickest - most), min(box.wait[1], slowest - least))
        full_wait = (
            max(box.full_wait[0], float(full.min()) - most),
            min(box.full_wait[1], max(0.0, float(full.max()) - least)),
        )
        ease = EPS * most
        if wait[0] > wait[1] + ease or full_wait[0] > full_wait[1] + ease:
            return None
        return (wait[0], max(wait)), (full_wait[0], max(full_wait))

    def _tightened_shares(
        self, box: Box, kept: NDArray[np.bool_], slow: Floats, fast: Floats
    ) -> Box | None:
        n = box.n
        (f0, f1), (v0, v1), (q0, q1) = box.fastest, box.samples, box.squares
        least = float((self._workers.batch * slow)[kept].min())
        f1 = min(f1, float((self._workers.batch * fast)[kept].max()))
        for _ in range(2):
            v1 = min(v1, n * f1)
            f1 = min(f1, v1 - (n - 1) * least + EPS * v1)
            v0 = max(v0, f0 + (n - 1) * least)
            f0 = max(f0, v0 / n)
            if f0 > f1 * (1 + EPS) or v0 > v1 * (1 + EPS):
                return None
            v0 = max(v0, self._least_samples(box, (v0, v1), f1, (q0, q1)))
            q0 = max(q0, v0**2 / n)
            if n > 1 and f0 * n >= v0:
                q0 = max(q0, f0**2 + (v0 - f0) ** 2 / (n - 1))
            q1 = min(q1, f1 * v1)
        if v0 > v1 * (1 + EPS) or q0 > q1 * (1 + EPS):
            return None
        return replace(
            box, fastest=(f0, max(f0, f1)), samples=(v0, max(v0, v1)), squares=(q0, max(q0, q1))
        )

    def _least_samples(self, box: Box, samples: Range, f1: float, squares: Range) -> float:
        """Return the samples/s that the deadline asks for."""
        deadline_s = self.context.deadline_s
        if math.isinf(deadline_s):
            return 0.0
        coefficient = least_coefficient(box.n, f1, samples[0], squares[0])
        return box.batch[0] * self._workers.updates(box.n, box.batch[1], coefficient) / deadline_s

    def split(
        self, box: Box, relaxed: Relaxed, improves: Callable[[Floats], bool]
    ) -> Sequence[Box]:
        """Cut where the relaxation flatters its point most, else by counts."""
        tight = self._tightened(box)
        if tight is None:
            return []
        x = np.maximum(relaxed.point[: self._workers.pools], 0.0)
        place = self._effects.place(tight, x)
        effects = self._effects.effects(tight, place)
        name = max(effects, key=lambda key: effects[key], default=None)
        if name is None or effects[name] < (_FLATTERY if relaxed.asked else _COARSE):
            return self._leaf(tight, relaxed, improves)
        if name == "link":
            at = min(place.link, tight.link[1] - 1)
            return [
                replace(tight, link=(tight.link[0], at)),
                replace(tight, link=(at + 1, tight.link[1])),
            ]
        return self._halves(tight, name, getattr(place, name))

    def _halves(self, box: Box, name: str, value: float) -> Sequence[Box]:
        low, high = getattr(box, name)
        at = 0.5 * (min(max(value, low), high) + 0.5 * (low + high))
        at = min(max(at, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        return [box.between(**{name: (low, at)}), box.between(**{name: (at, high)})]

    def _leaf(
        self, box: Box, relaxed: Relaxed, improves: Callable[[Floats], bool]
    ) -> Sequence[Box]:
        """Ask for the best whole fleet of a box, and cut by counts there if it is not better."""
        found = whole_fleet(relaxed, self._workers.pools)
        if found is None:
            return []
        fleet, solved = found
        if solved and 1 <= fleet.sum() <= self.context.most_workers and improves(fleet):
            return [box]
        halves = split_counts(box.lower, box.upper, fleet)
        if not halves:
            improves(box.lower)  # the only fleet there is
        return [replace(box, lower=lower, upper=upper) for lower, upper in halves]
