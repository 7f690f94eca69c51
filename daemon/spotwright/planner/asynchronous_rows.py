"""The linear program of a box of asynchronous fleets.

Columns are the counts of the pools and, where workers queue, the steps/s y and the samples/s V.
Rows are the limits, the hazard, what the loss law holds (weighted batch, V, Q, the fastest worker)
and the queue (y between the rates' sums, the wait at full servers, the shortest link).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotwright.planner.asynchronous_workers import EPS, AsynchronousWorkers, Box
from spotwright.planner.interruption_bound import run_bound
from spotwright.planner.pace import pace
from spotwright.planner.relaxation import BoxRows, Ratios

Floats = NDArray[np.float64]

_LAW_ROWS, _QUEUE_ROWS = 9, 5


class _Rows(NamedTuple):
    """low <= matrix . x <= high."""

    matrix: Floats
    low: Floats
    high: Floats


class AsynchronousRows:
    """Builds the rows of boxes.

    Attributes:
        unit: samples/s in which V is counted: programs want figures near 1.
        last_batch: weighted batch at the last point, about which rows are tight.
    """

    def __init__(self, workers: AsynchronousWorkers) -> None:
        """Prepare for boxes of these workers."""
        context = workers.context
        self._workers = workers
        self._templates: dict[bool, _Rows] = {}
        self.unit = float(workers.batch.mean())
        self.last_batch = self.unit
        self._stops = run_bound(
            context.server_events, save_s=context.save_s, restart_s=context.restart_s
        )

    def rows(self, box: Box, time_cap: float) -> BoxRows | None:
        """Return the rows of a box; None: the law does not hold in it, or time is too short."""
        coefficient = self._workers.coefficient(box)
        if self._workers.spotdnn and coefficient > self._workers.spotdnn.coefficient_range[1] * (
            1 + EPS
        ):
            return None
        slow, fast = self._workers.rates(box)
        queues = self._workers.queues_at(box.n)
        rows = self._template(queues)
        rows.low[0] = rows.high[0] = box.n
        self._hazard_row(box, rows)
        if self._workers.uses_batch:
            self._law_rows(box, slow, fast, rows)
        lower, upper = box.lower, box.upper
        if queues:
            self._queue_rows(box, slow, fast, rows)
            steps, unit = self._workers.most_steps(box.n) * (1 + EPS), self.unit
            lower = np.concatenate((lower, (0.0, box.samples[0] / unit * (1 - EPS))))
            upper = np.concatenate((upper, (steps, box.samples[1] / unit * (1 + EPS))))
        return BoxRows(
            rows=rows.matrix,
            low=rows.low,
            high=rows.high,
            lower=lower,
            upper=upper,
            node_range=(box.n, box.n),
            ratios=self._ratios(box, slow, fast, time_cap),
        )

    def _ratios(self, box: Box, slow: Floats, fast: Floats, time_cap: float) -> Ratios:
        context, work = self._workers.context, pace(self._workers, box)
        missing = 1 + context.restart_s / 3600 * box.hazard[0] / box.n
        least_pace = 1 / time_cap if math.isfinite(time_cap) else 0.0
        seconds = self._stops.least_s(missing, below=least_pace)
        cost = context.price * (seconds / 3600) + slow * context.traffic
        cost = cost + least_pace * np.where(context.running > 0, 0.0, context.switching)
        below = (work.per_step + work.per_sample * self._workers.batch) * fast
        if self._workers.queues_at(box.n):
            cost = np.concatenate((cost, (0.0, 0.0)))
            below = np.concatenate((0.0 * fast, (work.per_step, work.per_sample * self.unit)))
        return Ratios(
            cost=cost,
            cost0=context.servers_usd_per_hour * (seconds / 3600),
            seconds=seconds,
            denominator=below,
            denominator0=work.constant,
        )

    def _template(self, queues: bool) -> "_Rows":
        """Return rows of which the limits are filled in already."""
        if queues not in self._templates:
            limits = self._workers.context.limits
            count = len(limits.low) + 1 + _LAW_ROWS + (_QUEUE_ROWS if queues else 0) + 1
            matrix = np.zeros((count, self._workers.pools + (2 if queues else 0)))
            low, high = np.full(count, -np.inf), np.full(count, np.inf)
            matrix[: len(limits.low), : self._workers.pools] = limits.matrix
            low[: len(limits.low)], high[: len(limits.low)] = limits.low, limits.high
            self._templates[queues] = _Rows(matrix, low, high)
        blank = self._templates[queues]
        return _Rows(blank.matrix.copy(), blank.low.copy(), blank.high.copy())

    def _hazard_row(self, box: Box, rows: "_Rows") -> None:
        at = len(self._workers.context.limits.low)
        rows.matrix[at, : self._workers.pools] = self._workers.context.hazard
        rows.low[at], rows.high[at] = box.hazard[0] - EPS, box.hazard[1] + EPS

    def _law_rows(self, box: Box, slow: Floats, fast: Floats, rows: "_Rows") -> None:
        """Hold the weighted batch V / y, and for spotdnn V, Q and the fastest worker."""
        at, pools = len(self._workers.context.limits.low) + 1, self._workers.pools
        v_slow, v_fast = self._workers.batch * slow, self._workers.batch * fast
        if self._workers.queues_at(box.n):  # y and V are columns of their own
            steps, samples, unit = pools, pools + 1, self.unit
            rows.matrix[at, samples], rows.matrix[at, steps] = 1.0, -box.batch[0] / unit
            rows.matrix[at + 1, samples], rows.matrix[at + 1, steps] = 1.0, -box.batch[1] / unit
            rows.matrix[at + 2, :pools], rows.matrix[at + 2, samples] = v_fast / unit, -1.0
            rows.matrix[at + 3, :pools], rows.matrix[at + 3, samples] = v_slow / unit, -1.0
            rows.low[at + 2], rows.high[at + 3] = -EPS, EPS
            self._batch_rows(slow, fast, rows, at + 7)
        else:
            rows.matrix[at] = v_fast - box.batch[0] * fast
            rows.matrix[at + 1] = v_slow - box.batch[1] * slow
            rows.matrix[at + 2], rows.low[at + 2] = v_fast, box.samples[0] * (1 - EPS)
            rows.matrix[at + 3], rows.high[at + 3] = v_slow, box.samples[1] * (1 + EPS)
        rows.low[at], rows.high[at + 1] = -EPS, EPS
        if self._workers.spotdnn is None:
            return
        rows.matrix[at + 4, :pools], rows.low[at + 4] = v_fast**2, box.squares[0] * (1 - EPS)
        rows.matrix[at + 5, :pools], rows.high[at + 5] = v_slow**2, box.squares[1] * (1 + EPS)
        present = (box.upper > 0) & (v_fast >= box.fastest[0] * (1 - EPS))
        rows.matrix[at + 6, :pools], rows.low[at + 6] = present, 1.0

    def _batch_rows(self, slow: Floats, fast: Floats, rows: "_Rows", at: int) -> None:
        """Hold V - beta y = sum x (b - beta) a for a batch beta like that of the last point.

        The wait moves y and V together: where all batches are alike, this ties V to y exactly.
        """
        beta, pools, unit = self.last_batch, self._workers.pools, self.unit
        more = np.maximum(self._workers.batch - beta, 0.0) / unit
        less = np.maximum(beta - self._workers.batch, 0.0) / unit
        rows.matrix[at, :pools] = less * slow - more * fast
        rows.matrix[at + 1, :pools] = less * fast - more * slow
        rows.matrix[at : at + 2, pools:] = (-beta / unit, 1.0)
        rows.high[at], rows.low[at + 1] = EPS, -EPS

    def _queue_rows(self, box: Box, slow: Floats, fast: Floats, rows: "_Rows") -> None:
        """Hold y between the rates' sums, the full server's wait and the shortest link."""
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
