"""spotDNN's loss curve, in terms a solver can handle.

    L = (c2 b + c3) sqrt((R + c4) n) / (j + c1) + c5,   c2 <= 0 < c3,  c1, c4, c5 >= 0

With f = -c2 b_max / c3 and u = c4 / (1 + c4), both between 0 and 1, and a = c3 sqrt(1 + c4), which
depend on each other much less,

    L = a (1 - f b / b_max) sqrt((R (1 - u) + u) n) / (j + c1) + c5.

Parameters are x = (a, c1, u, c5, f), losses and steps in the log's own units. A log of one batch
size has no f and c2 is 0.
"""

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.workload import SpotdnnLoss
from spotwright.perfmodel.laws.loss_rows import LossLog

Floats = NDArray[np.float64]


class SpotdnnCurve:
    """The curve at the rows of one log."""

    def __init__(self, log: LossLog) -> None:
        """Prepare the columns of the curve."""
        self._log = log
        self._step = log.step / log.step_unit
        self._batch = log.batch / log.batch.max()
        self.several_batches = bool(np.ptp(self._batch) > 0)
        self._size = 5 if self.several_batches else 4

    def loss(self, x: Floats) -> Floats:
        """Return the loss of each row."""
        return np.asarray(self._amplitude(x) / (self._step + x[1]) + x[3])

    def updates(self, x: Floats, goal_loss: float) -> Floats:
        """Return the updates to a loss, at least one, in the setting of each row."""
        above = goal_loss / self._log.loss_unit - x[3]
        found = self._amplitude(x) / above - x[1]
        return np.asarray(np.maximum(found, 1 / self._log.step_unit))

    def starts(self) -> list[Floats]:
        """Return points that between them lead to the best fit."""
        lowest = float(self._log.loss.min()) / self._log.loss_unit
        shrinks = (0.1, 0.6) if self.several_batches else (0.0,)
        return [
            np.array([offset, offset, mix, floor * lowest, shrink])[: self._size]
            for offset, mix, floor, shrink in product(
                (0.02, 0.2, 2.0), (0.1, 0.7), (0.1, 0.9), shrinks
            )
        ]

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the least and largest parameters."""
        highest = float(self._log.loss.max()) / self._log.loss_unit
        low = np.array([0.0, 1e-9, 1e-9, 0.0, 0.0])
        high = np.array([np.inf, np.inf, 0.9999, highest, 0.9999])
        return low[: self._size], high[: self._size]

    def law(self, x: Floats, *, relative_sd: float) -> SpotdnnLoss:
        """Return the law in the paper's coefficients and the user's units."""
        log = self._log
        mix, shrink = float(x[2]), float(x[4]) if self.several_batches else 0.0
        c3 = float(x[0]) * log.loss_unit * log.step_unit * math.sqrt(1 - mix)
        return SpotdnnLoss(
            c1=float(x[1]) * log.step_unit,
            c2=0.0 - shrink * c3 / float(log.batch.max()),  # never -0.0
            c3=c3,
            c4=mix / (1 - mix),
            c5=float(x[3]) * log.loss_unit,
            batch_range=(float(log.batch.min()), float(log.batch.max())),
            coefficient_range=(float(log.coefficient.min()), float(log.coefficient.max())),
            relative_sd=relative_sd,
        )

    def _amplitude(self, x: Floats) -> Floats:
        shrink = x[4] if self.several_batches else 0.0
        crowd = np.sqrt((self._log.coefficient * (1 - x[2]) + x[2]) * self._log.workers)
        return np.asarray(x[0] * (1 - shrink * self._batch) * crowd)
