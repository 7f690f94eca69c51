"""The linear program of a box of asynchronous fleets.

Columns are the counts of the pools; where workers queue, the steps/s y and the samples/s V; where
spotDNN's law decides, the samples/s f of the fastest worker. Rows are the limits, the hazard, what
the law holds (weighted batch, V, Q, the fastest worker and its share) and the queue (y and V
between the rates' sums, the wait at full servers, the shortest link). The fastest worker l has
x_l >= 1, so

    f <= theta + sum_i x_i max(0, v_i - theta)    for every theta

and the best theta, at which the counts of faster workers sum to 1, is chosen at the last point.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotwright.planner.asynchronous_workers import EPS, AsynchronousWorkers, Box
from spotwright.planner.interruption_bound import run_bound
from spotwright.planner.limit_rows import pool_use
from spotwright.planner.pace import pace
from spotwright.planner.relaxation import BoxRows, Ratios
from spotwright.planner.switching import switching_bound

Floats = NDArray[np.float64]

_LAW_ROWS, _QUEUE_ROWS = 10, 9


class _Rows(NamedTuple):
    """low <= matrix . x <= high."""

    matrix: Floats
    low: Floats
    high: Floats


class Sums(NamedTuple):
    """What a box's columns make of y, V and f, as rows; V and f are counted in units."""

    steps: Floats
    samples: Floats
    fastest: Floats


class AsynchronousRows:
    """Builds the rows of boxes.

    Attributes:
        unit: samples/s in which V and f are counted: programs want figures near 1.
        last_batch: weighted batch at the last point, about which rows are tight.
        last_fastest: theta, samples/s.
    """

    def __init__(self, workers: AsynchronousWorkers) -> None:
        """Prepare for boxes of these workers."""
        context = workers.context
        self._workers = workers
        self._templates: dict[bool, _Rows] = {}
        self.unit = float(workers.batch.mean())
        self.last_batch = self.unit
        self.last_fastest = 0.0
        self._stops = run_bound(
            context.server_events, save_s=context.save_s, restart_s=context.restart_s
        )

    def rows(self, box: Box, time_cap: float) -> BoxRows | None:
        """Return the rows of a box; None: the law does not hold in it."""
        law = self._workers.spotdnn
        if law and self._workers.coefficient(box) > law.coefficient_range[1] * (1 + EPS):
            return None
        slow, fast = self._workers.rates(box)
        queues = self._workers.queues_at(box.n)
        rows, sums = self._template(queues), self.sums(box)
        rows.low[0] = rows.high[0] = box.n
        limits = self._workers.context.limits
        if limits.max_pools is not None:
            rows.matrix[len(limits.low) - 1, : self._workers.pools] = pool_use(box.upper)
        self._hazard_row(box, rows)
        if self._workers.uses_batch:
            self._law_rows(box, slow, fast, rows)
        if queues:
            self._queue_rows(box, slow, fast, rows)
        lower, upper = self._auxiliary_bounds(box)
        ratios = self._ratios(box, sums, slow, time_cap)
        rows.matrix[-3], rows.low[-3] = ratios.denominator, box.pace[0] * (1 - EPS)
        return BoxRows(
            rows=rows.matrix,
            low=rows.low,
            high=rows.high,
            lower=np.concatenate((box.lower, lower)),
            upper=np.concatenate((box.upper, upper)),
            node_range=(box.n, box.n),
            ratios=ratios,
        )

    def sums(self, box: Box) -> Sums:
        """Return y, V and f as rows over the columns of a box."""
        _, fast = self._workers.rates(box)
        pools, queues = self._workers.pools, self._workers.queues_at(box.n)
        columns = np.zeros((3, pools + self._auxiliary_count(queues)))
        if queues:
            columns[0, pools], columns[1, pools + 1] = 1.0, 1.0
        else:
            columns[0, :pools], columns[1, :pools] = fast, self._workers.batch * fast / self.unit
        if self._workers.spotdnn is not None:
            columns[2, -1] = 1.0
        return Sums(*columns)

    def leader_row(self, box: Box, theta: float) -> tuple[Floats, float]:
        """Return a row, and what it is at most, that keeps f to the workers there are."""
        _, fast = self._workers.rates(box)
        row = self.sums(box).fastest
        row[: self._workers.pools] = -np.maximum(self._workers.batch * fast - theta, 0) / self.unit
        return row, theta / self.unit * (1 + EPS) + EPS

    def _auxiliary_bounds(self, box: Box) -> tuple[list[float], list[float]]:
        lower, upper = [], []
        if self._workers.queues_at(box.n):
            lower += [0.0, box.samples[0] / self.unit * (1 - EPS)]
            most_steps = self._workers.most_steps(box.n)
            upper += [most_steps * (1 + EPS), box.samples[1] / self.unit * (1 + EPS)]
        if self._workers.spotdnn is not None:
            lower.append(box.fastest[0] / self.unit * (1 - EPS))
            upper.append(box.fastest[1] / self.unit * (1 + EPS))
        return lower, upper

    def _ratios(self, box: Box, sums: Sums, slow: Floats, time_cap: float) -> Ratios:
        context, work = self._workers.context, pace(self._workers, box)
        missing = 1 + context.restart_s / 3600 * box.hazard[0] / box.n
        least_pace = max(box.pace[0], 1 / time_cap if math.isfinite(time_cap) else 0.0)
        seconds = self._stops.least_s(missing, below=least_pace)
        cost = np.zeros_like(sums.steps)
        cost[: self._workers.pools] = context.price * (seconds / 3600) + slow * context.traffic
        return Ratios(
            cost=cost,
            cost0=context.servers_usd_per_hour * (seconds / 3600),
            seconds=seconds,
            denominator=work.per_step * sums.steps
            + self.unit * (work.per_sample * sums.samples + work.per_fastest * sums.fastest),
            range=(least_pace, box.pace[1]),
            switching=switching_bound(context, box.lower),
        )

    def _template(self, queues: bool) -> "_Rows":
        """Return rows of which the limits are filled in already."""
        if queues not in self._templates:
            limits, workers = self._workers.context.limits, self._workers
            count = len(limits.low) + 1 + _LAW_ROWS + (_QUEUE_ROWS if queues else 0) + 3
            matrix = np.zeros((count, workers.pools + self._auxiliary_count(queues)))
            low, high = np.full(count, -np.inf), np.full(count, np.inf)
            matrix[: len(limits.low), : workers.pools] = limits.matrix
            low[: len(limits.low)], high[: len(limits.low)] = limits.low, limits.high
            self._templates[queues] = _Rows(matrix, low, high)
        blank = self._templates[queues]
        return _Rows(blank.matrix.copy(), blank.low.copy(), blank.high.copy())

    def _auxiliary_count(self, queues: bool) -> int:
        return (2 if queues else 0) + (0 if self._workers.spotdnn is None else 1)

    def _hazard_row(self, box: Box, rows: "_Rows") -> None:
        at = len(self._workers.context.limits.low)
        rows.matrix[at, : self._workers.pools] = self._workers.context.hazard
        rows.low[at], rows.high[at] = box.hazard[0] - EPS, box.hazard[1] + EPS

    def _law_rows(self, box: Box, slow: Floats, fast: Floats, rows: "_Rows") -> None:
        """Hold the weighted batch V / y, and for spotdnn V, Q, the fastest worker and its share."""
        at, pools, unit = len(self._workers.context.limits.low) + 1, self._workers.pools, self.unit
        sums = self.sums(box)
        rows.matrix[at] = sums.samples - box.batch[0] / unit * sums.steps
        rows.matrix[at + 1] = sums.samples - box.batch[1] / unit * sums.steps
        rows.low[at], rows.high[at + 1] = -EPS, EPS
        rows.matrix[at + 2] = sums.samples
        rows.low[at + 2], rows.high[at + 2] = (
            box.samples[0] / unit * (1 - EPS),
            box.samples[1] / unit * (1 + EPS),
        )
        if self._workers.spotdnn is None:
            return
        v_slow, v_fast = self._workers.batch * slow, self._workers.batch * fast
        squares = (box.squares[0] / unit**2, box.squares[1] / unit**2)
        rows.matrix[at + 3, :pools], rows.low[at + 3] = (v_fast / unit) ** 2, squares[0] * (1 - EPS)
        rows.matrix[at + 4, :pools], rows.high[at + 4] = (
            (v_slow / unit) ** 2,
            squares[1] * (1 + EPS),
        )
        present = (box.upper > 0) & (v_fast >= box.fastest[0] * (1 - EPS))
        rows.matrix[at + 5, :pools], rows.low[at + 5] = present, 1.0
        rows.matrix[at + 6] = sums.fastest - box.share[0] * sums.samples
        rows.matrix[at + 7] = sums.fastest - box.share[1] * sums.samples
        rows.low[at + 6], rows.high[at + 7] = -EPS, EPS
        for i, theta in enumerate((box.fastest[0], self.last_fastest)):
            rows.matrix[at + 8 + i], rows.high[at + 8 + i] = self.leader_row(box, theta)

    def _queue_rows(self, box: Box, slow: Floats, fast: Floats, rows: "_Rows") -> None:
        """Hold y and V between the rates' sums, the full server's wait and the shortest link."""
        at, pools = len(self._workers.context.limits.low) + 1 + _LAW_ROWS, self._workers.pools
        lone_s, (z0, z1) = self._workers.lone_s(box.n), box.full_wait
        capacity = self._workers.queue(box.n).capacity[box.link[0] : box.link[1] + 1]
        best, worst = float(capacity.max()), float(capacity.min())
        rows.matrix[at, :pools], rows.matrix[at, pools], rows.high[at] = -fast, 1.0, EPS
        rows.matrix[at + 1, :pools], rows.matrix[at + 1, pools] = -slow, 1.0
        rows.low[at + 1] = -EPS
        rows.matrix[at + 2, :pools], rows.high[at + 2] = 1 / (lone_s + z1), best * (1 + EPS)
        if z0 > 0:
            rows.matrix[at + 3, :pools], rows.low[at + 3] = 1 / (lone_s + z0), worst * (1 - EPS)
        near = self._workers.visit_s <= self._workers.links[box.link[1]] * (1 + EPS)
        rows.matrix[at + 4, :pools], rows.low[at + 4] = near, 1.0
        if self._workers.uses_batch:
            self._samples_rows(slow, fast, rows, at + 5)

    def _samples_rows(self, slow: Floats, fast: Floats, rows: "_Rows", at: int) -> None:
        """Hold V between the rates' sums, and V - beta y = sum x (b - beta) a.

        The wait moves y and V together: where all batches are like beta, that of the last point,
        this ties V to y exactly.
        """
        beta, pools, unit = self.last_batch, self._workers.pools, self.unit
        batch = self._workers.batch / unit
        rows.matrix[at, :pools], rows.matrix[at, pools + 1] = batch * fast, -1.0
        rows.matrix[at + 1, :pools], rows.matrix[at + 1, pools + 1] = batch * slow, -1.0
        rows.low[at], rows.high[at + 1] = -EPS, EPS
        more = np.maximum(batch - beta / unit, 0.0)
        less = np.maximum(beta / unit - batch, 0.0)
        rows.matrix[at + 2, :pools] = less * slow - more * fast
        rows.matrix[at + 3, :pools] = less * fast - more * slow
        rows.matrix[at + 2 : at + 4, pools : pools + 2] = (-beta / unit, 1.0)
        rows.high[at + 2], rows.low[at + 3] = EPS, -EPS
