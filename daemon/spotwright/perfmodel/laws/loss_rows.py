"""Rows of loss logs: what is wrong with them, and how long ones are thinned.

A run with many rows is cut into bins of equal width in log(1 + step), each of which becomes one row
of its mean step and median loss. The fall at the start then weighs as much as the long flat tail,
which would otherwise make the start look like outliers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from spotwright.domain.errors import CannotFitError

_LONG_ENOUGH = 8  # rows of one run from which its ends can be compared
_MOST_ROWS = 300  # of one run, before it is thinned


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow:
    """The loss a cluster had after a number of updates."""

    step: float  # updates of the model since the start, of all workers together
    loss: float
    worker_count: int
    weighted_batch: float  # samples per update
    convergence_coefficient: float = 0.0  # spotDNN's R; 0 for synchronous training
    asynchronous: bool = True

    @property
    def setting(self) -> tuple[bool, int, float, float]:
        """What one run keeps the same."""
        return (
            self.asynchronous,
            self.worker_count,
            self.weighted_batch,
            self.convergence_coefficient,
        )


class LossLog:
    """Rows as columns, and the size of their losses and steps to scale them with."""

    def __init__(self, rows: Sequence[LossRow]) -> None:
        """Take the columns of usable rows."""
        self.loss = np.array([row.loss for row in rows])
        self.step = np.array([row.step for row in rows])
        self.batch = np.array([row.weighted_batch for row in rows])
        self.workers = np.array([row.worker_count for row in rows], dtype=np.float64)
        self.coefficient = np.array([row.convergence_coefficient for row in rows])
        self.asynchronous = np.array([row.asynchronous for row in rows])
        self.loss_unit = float(np.ptp(self.loss)) or 1.0
        self.step_unit = float(np.median(self.step)) or 1.0


def usable_rows(law: str, rows: Sequence[LossRow], *, least: int) -> list[LossRow]:
    """Return the rows by run and step, long runs thinned.

    Raises:
        CannotFitError: there are too few, a figure is impossible, or a run's loss does not fall.
    """
    if len(rows) < least:
        raise CannotFitError(law, f"{len(rows)} rows are too few", way_out=f"give at least {least}")
    for row in rows:
        _check(law, row)
    ordered = sorted(rows, key=lambda row: (row.setting, row.step, row.loss))
    usable = []
    for _, group in groupby(ordered, key=lambda row: row.setting):
        run = list(group)
        _check_falls(law, run)
        usable += _thinned(run)
    return usable


def _check(law: str, row: LossRow) -> None:
    where = f"step {row.step:g} of the run with {row.worker_count} workers"
    if not math.isfinite(row.loss):
        raise CannotFitError(
            law, f"the loss is {row.loss} at {where}", way_out="leave out runs that diverged"
        )
    size = row.weighted_batch
    possible = 0 <= row.step < math.inf and row.worker_count >= 1 and 0 < size < math.inf
    if not possible or not 0 <= row.convergence_coefficient <= 1:
        raise CannotFitError(
            law,
            f"{where} has a batch of {size:g} and R = {row.convergence_coefficient:g}",
            way_out="steps are >= 0, workers >= 1, batches positive and R between 0 and 1",
        )


def _check_falls(law: str, run: list[LossRow]) -> None:
    if len(run) < _LONG_ENOUGH:
        return
    end = len(run) // 4
    first, last = (float(np.median([r.loss for r in part])) for part in (run[:end], run[-end:]))
    if last >= first:
        raise CannotFitError(
            law,
            f"the loss of the run with {run[0].worker_count} workers and a batch of "
            f"{run[0].weighted_batch:g} does not fall: {first:.4g} at first, {last:.4g} at last",
            way_out="leave that run out or log it from its start",
        )


def _thinned(run: list[LossRow]) -> list[LossRow]:
    if len(run) <= _MOST_ROWS:
        return run
    width = math.log1p(run[-1].step) / _MOST_ROWS
    bins = groupby(run, key=lambda row: int(math.log1p(row.step) / width) if width else 0)
    return [_middle(list(rows)) for _, rows in bins]


def _middle(rows: list[LossRow]) -> LossRow:
    return replace(
        rows[0],
        step=float(np.mean([row.step for row in rows])),
        loss=float(np.median([row.loss for row in rows])),
    )
