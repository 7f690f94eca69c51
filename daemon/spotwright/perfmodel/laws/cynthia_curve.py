"""Cynthia's loss curve, in terms a solver can handle.

    L = k0 / (s / n^p + k2) + k1,   k0 > 0,  k1, k2 >= 0,  0 <= p <= 1

n asynchronous workers learn as one does whose clock runs slower by n^p, from the first step on.

Parameters are x = (k0, k1, k2, p), losses and steps in the log's own units. p is 0 of synchronous
training; where a log cannot tell that of asynchronous training, it is the paper's 1/2.
"""

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.workload import USUAL_WORKER_EXPONENT, CynthiaLoss
from spotwright.perfmodel.laws.loss_rows import LossLog

Floats = NDArray[np.float64]

_TELLS_SHAPE = 8  # rows from which k2 and p are fitted


class CynthiaCurve:
    """The curve at the rows of one log."""

    def __init__(self, log: LossLog) -> None:
        """Prepare the columns of the curve."""
        self._log = log
        self._step = log.step / log.step_unit
        self._crowd = np.log(log.workers) * log.asynchronous
        self._has_shape = len(log.step) >= _TELLS_SHAPE
        told_by = log.workers[log.asynchronous]
        self.tells_workers = self._has_shape and len(np.unique(told_by)) > 1

    def loss(self, x: Floats) -> Floats:
        """Return the loss of each row."""
        return np.asarray(x[0] / (self._step / self._slowdown(x) + self._offset(x)) + x[1])

    def updates(self, x: Floats, goal_loss: float) -> Floats:
        """Return the updates to a loss, at least one, in the setting of each row."""
        above = goal_loss / self._log.loss_unit - x[1]
        found = (x[0] / above - self._offset(x)) * self._slowdown(x)
        return np.asarray(np.maximum(found, 1 / self._log.step_unit))

    def starts(self) -> list[Floats]:
        """Return points that between them lead to the best fit."""
        lowest = float(self._log.loss.min()) / self._log.loss_unit
        return [
            np.array([amplitude, share * lowest, offset, exponent])[: self._size]
            for amplitude in (0.1, 1.0)
            for share in (0.1, 0.9)
            for offset in (0.02, 1.0)
            for exponent in (0.1, 0.5)
        ]

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the least and largest parameters."""
        highest = float(self._log.loss.max()) / self._log.loss_unit
        high = np.array([np.inf, highest, np.inf, 1.0])
        return np.zeros(self._size), high[: self._size]

    def law(self, x: Floats, *, relative_sd: float) -> CynthiaLoss:
        """Return the law in the user's units."""
        log = self._log
        return CynthiaLoss(
            k0=float(x[0]) * log.loss_unit * log.step_unit,
            k1=float(x[1]) * log.loss_unit,
            k2=self._offset(x) * log.step_unit,
            worker_exponent=self._exponent(x),
            relative_sd=relative_sd,
        )

    @property
    def _size(self) -> int:
        return 4 if self.tells_workers else 3 if self._has_shape else 2

    def _offset(self, x: Floats) -> float:
        return float(x[2]) if self._has_shape else 0.0

    def _exponent(self, x: Floats) -> float:
        return float(x[3]) if self.tells_workers else USUAL_WORKER_EXPONENT

    def _slowdown(self, x: Floats) -> Floats:
        slowdown: Floats = np.exp(self._exponent(x) * self._crowd)
        return slowdown
