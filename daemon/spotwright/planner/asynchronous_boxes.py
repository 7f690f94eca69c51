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
from spotwright.planner.asynchronous_effects import AsynchronousEffects, leader
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
from spotwright.planner.linear_program import Empty, LinearProgram, Optimum
from spotwright.planner.point_enumeration import reach
from spotwright.planner.relaxation import Question, split_counts, unsolved
from spotwright.planner.switching import split_running

Floats = NDArray[np.float64]

# Of the objective: below, boxes are cut by counts. While no fleet is known, slivers prove nothing.
_FLATTERY, _COARSE = 3e-4, 2e-2
_CUT_ROUNDS = 3
_BROKEN = 1e-5  # relative: what a tangent must be broken by
_LED_TOO_FAST = 2e-3  # the same of the leader, whose share cuts narrow anyway
_REMEMBERED = 4  # multipliers that are tried on the next box
_NEAR = (0, -1, 1, -2, 2)  # numbers of workers whose multipliers are tried too


Remembered = dict[int, Optimum | Empty]  # by number of workers


class AsynchronousSpace:
    """Fleets of asynchronous workers."""

    def __init__(self, context: Context, remembered: Remembered | None = None) -> None:
        """Prepare for boxes.

        Args:
            context: where the fleets stand.
            remembered: what was proved by number of workers, shared by contexts of the same pools.
        """
        self.context, self._workers = context, AsynchronousWorkers(context)
        self._rows, self._effects = (
            AsynchronousRows(self._workers),
            AsynchronousEffects(self._workers),
        )
        self._remembered = {} if remembered is None else remembered
        self._proofs: list[Optimum | Empty] = []  # of the last boxes
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
            share=(1 / n, 1.0),
            samples=(n * slowest, n * fastest),
            batch=batch,
            squares=(0.0, n * fastest**2),
            wait=(0.0, longest),
            full_wait=(0.0, longest),
            link=(0, max(0, len(self._workers.links) - 1)),
            hazard=(n * float(hazard.min()), n * float(hazard.max())),
            pace=(0.0, math.inf),
        )

    def _quick_bound(self, n: int, batch: float) -> float:
        """Bound j P / y: P / y is at least the servers' rent / largest y + least price / rate."""
        largest, usd_per_step = self._workers.best_rates(n)
        below = n * largest
        if self._workers.per_step and self._workers.queueing:
            below = min(below, self._workers.model.servers[self._workers.links[0]].rates[n - 1])
        coefficient = self._workers.spread_coefficient(n)
        work, context = self._workers.updates(n, batch, coefficient), self.context
        if context.objective is Objective.TIME:
            return work / below
        return work * (context.servers_usd_per_hour / below + usd_per_step) / 3600

    def relax(self, box: Box, target: float, *, most_counts: int) -> Relaxed | None:
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
            program = program.with_row(*self._tangent_row(tight, self._last_s))
        narrowed = self._narrowed(program, box.n, asked=math.isfinite(question.target))
        if narrowed is None:
            return None
        try:
            program, found = self._solve(narrowed, tight)
        except SolverGaveUpError:
            return unsolved(box.lower, box.upper, program)
        self._remember(found, base=len(narrowed.low), n=box.n)
        if isinstance(found, Empty):
            return None
        return question.answer(program, found, pools=self._workers.pools, most_counts=most_counts)

    def _narrowed(self, program: LinearProgram, n: int, *, asked: bool) -> LinearProgram | None:
        """Try the multipliers of boxes that were solved before; None: they prove it empty.

        Otherwise the best of them may still say that some pools cannot be part of a better fleet.
        """
        near = (self._remembered.get(n + i) for i in _NEAR)
        best, reduced_best = -math.inf, np.zeros(0)
        for proof in (*self._proofs, *near):
            if proof is None or len(proof.multipliers) != len(program.low):
                continue
            if isinstance(proof, Empty):
                if program.is_empty_by(proof.multipliers):
                    return None
            elif asked:
                value, reduced = program.bound(proof.multipliers)
                if value > 0:
                    return None
                if value > best:
                    best, reduced_best = value, reduced
        if math.isinf(best):
            return program
        near_pools = reach(reduced_best, -best, lower=program.lower, upper=program.upper)
        pools = self._workers.pools
        lower, upper = program.lower.copy(), program.upper.copy()
        lower[:pools], upper[:pools] = near_pools.lower[:pools], near_pools.upper[:pools]
        return replace(program, lower=lower, upper=upper)

    def _remember(self, found: Optimum | Empty, *, base: int, n: int) -> None:
        """Keep the multipliers of the rows that every box has."""
        kept = replace(found, multipliers=found.multipliers[:base])
        self._proofs = [kept, *self._proofs[: _REMEMBERED - 1]]
        self._remembered[n] = kept

    def _solve(self, program: LinearProgram, box: Box) -> tuple[LinearProgram, Optimum | Empty]:
        """Solve, adding cuts until the point lies below them: the queue's speed, the leader's."""
        for left in reversed(range(_CUT_ROUNDS)):
            found = program.relaxed(self._hot_rows(len(program.low)))
            if isinstance(found, Empty):
                break
            cuts = list(self._cuts(box, found.point)) if left else []
            if not cuts:
                break
            for row, most in cuts:
                program = program.with_row(row, most)
        return program, found

    def _cuts(self, box: Box, point: Floats) -> Iterator[tuple[Floats, float]]:
        """Yield rows that a point breaks, and remember where they were made for the next box."""
        workers, pools = self._workers, self._workers.pools
        x = point[:pools]
        if workers.queues_at(box.n):
            y = float(point[pools])
            s = float((x / (workers.lone_s(box.n) + box.full_wait[0])).sum())
            self._last_s = s / box.n
            if workers.uses_batch and y > 0:
                self._rows.last_batch = float(point[pools + 1]) * self._rows.unit / y
            tangent = workers.tangent(box, s)
            if y > tangent.at(s, x) * (1 + _BROKEN):
                yield self._tangent_row(box, self._last_s)
        if workers.spotdnn is not None:
            mean, least = leader(workers.batch * workers.rates(box)[1], x)
            self._rows.last_fastest = least
            if point[-1] * self._rows.unit > mean * (1 + _LED_TOO_FAST):
                yield self._rows.leader_row(box, least)

    def _hot_rows(self, count: int) -> NDArray[np.bool_]:
        """Return which rows the solver starts with: limits only where they bound before."""
        if count not in self._hot:
            self._hot[count] = np.ones(count, dtype=np.bool_)
            self._hot[count][1 : len(self.context.limits.low)] = False
        return self._hot[count]

    def _tangent_row(self, box: Box, s_per_worker: float) -> tuple[Floats, float]:
        """Bound the steps/s by the tangent at a mean rate of the workers."""
        tangent = self._workers.tangent(box, s_per_worker * box.n)
        row = self._rows.sums(box).steps
        lone_s = self._workers.lone_s(box.n) + box.full_wait[0]
        row[: self._workers.pools] = tangent.slower / box.n - tangent.slope / lone_s
        return row, tangent.value + EPS * abs(tangent.value) + EPS

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
        wait = (
            max(box.wait[0], quickest - most),
            min(box.wait[1], slowest - least, self._longest_wait(box)),
        )
        full_wait = (
            max(box.full_wait[0], float(full.min()) - most),
            min(box.full_wait[1], max(0.0, float(full.max()) - least)),
        )
        ease = EPS * most
        if wait[0] > wait[1] + ease or full_wait[0] > full_wait[1] + ease:
            return None
        return (wait[0], max(wait)), (full_wait[0], max(full_wait))

    def _longest_wait(self, box: Box) -> float:
        """Return the wait beyond which n workers are too slow for the deadline."""
        workers, deadline_s, kept = self._workers, self.context.deadline_s, box.upper > 0
        if math.isinf(deadline_s):
            return math.inf
        batch, lone_s = workers.batch[kept], workers.lone_s(box.n)[kept]
        work = workers.updates(box.n, box.batch[1], workers.coefficient(box)) / deadline_s
        if not workers.per_step:
            return float((box.n * batch / work - lone_s).max()) + EPS
        longest = box.n / work - float(lone_s.min())
        if workers.spotdnn is not None:
            longest = min(longest, float((box.n * batch / box.samples[0] - lone_s).max()))
        return longest + EPS

    def _tightened_shares(
        self, box: Box, kept: NDArray[np.bool_], slow: Floats, fast: Floats
    ) -> Box | None:
        n = box.n
        (f0, f1), (v0, v1), (q0, q1) = box.fastest, box.samples, box.squares
        s0, s1 = box.share
        least = float((self._workers.batch * slow)[kept].min())
        f1 = min(f1, float((self._workers.batch * fast)[kept].max()))
        for _ in range(2):
            v1 = min(v1, n * f1)
            f1 = min(f1, v1 - (n - 1) * least + EPS * v1)
            v0 = max(v0, f0 + (n - 1) * least, f0 / s1)
            v1 = min(v1, f1 / s0)
            f0, f1 = max(f0, v0 / n, s0 * v0), min(f1, s1 * v1)
            s0, s1 = max(s0, f0 / v1), min(s1, f1 / v0)
            if f0 > f1 * (1 + EPS) or v0 > v1 * (1 + EPS) or s0 > s1 * (1 + EPS):
                return None
            v0 = max(v0, self._least_samples(box, (v0, v1), f1, (q0, q1)))
            q0 = max(q0, v0**2 / n)
            if n > 1 and f0 * n >= v0:
                q0 = max(q0, f0**2 + (v0 - f0) ** 2 / (n - 1))
            q1 = min(q1, f1 * v1)
        if v0 > v1 * (1 + EPS) or q0 > q1 * (1 + EPS):
            return None
        return box.between(
            fastest=(f0, max(f0, f1)),
            share=(s0, max(s0, s1)),
            samples=(v0, max(v0, v1)),
            squares=(q0, max(q0, q1)),
        )

    def _least_samples(self, box: Box, samples: Range, f1: float, squares: Range) -> float:
        """Return the samples/s that the deadline asks for."""
        deadline_s = self.context.deadline_s
        if math.isinf(deadline_s):
            return 0.0
        coefficient = least_coefficient(box.n, f1, samples[0], squares[0])
        # B j is concave in B: least at one end
        return min(b * self._workers.updates(box.n, b, coefficient) for b in box.batch) / deadline_s

    def split(
        self, box: Box, relaxed: Relaxed, improves: Callable[[Floats], bool]
    ) -> Sequence[Box]:
        """Cut where the relaxation flatters its point most, else by counts."""
        tight = self._tightened(replace(box, lower=relaxed.lower, upper=relaxed.upper))
        if tight is None:
            return []
        x = np.maximum(relaxed.point[: self._workers.pools], 0.0)
        if relaxed.program is not None:
            parts = self._cut(tight, x, _FLATTERY if relaxed.asked else _COARSE)
            if parts:
                return parts
        halves, _ = split_counts(tight.lower, tight.upper, relaxed, improves)
        return [replace(tight, lower=lower, upper=upper) for lower, upper in halves]

    def _cut(self, box: Box, x: Floats, least: float) -> Sequence[Box]:
        """Cut the range that flatters a point most, if it does by more than a least."""
        place = self._effects.place(box, x)
        effects = self._effects.effects(box, place)
        name = max(effects, key=lambda key: effects[key], default=None)
        if name is None or effects[name] <= least:
            return []
        if name == "running":
            parts = split_running(self.context, box.lower, box.upper, x)
            return [replace(box, lower=lower, upper=upper) for lower, upper in parts]
        if name == "link":
            at = min(place.link, box.link[1] - 1)
            return [
                replace(box, link=(box.link[0], at)),
                replace(box, link=(at + 1, box.link[1])),
            ]
        return self._halves(box, name, getattr(place, name))

    def _halves(self, box: Box, name: str, value: float) -> Sequence[Box]:
        low, high = getattr(box, name)
        if math.isinf(high):
            return [box.between(**{name: (low, value)}), box.between(**{name: (value, high)})]
        at = 0.5 * (min(max(value, low), high) + 0.5 * (low + high))
        at = min(max(at, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        return [box.between(**{name: (low, at)}), box.between(**{name: (at, high)})]
