"""How the loss falls, fitted to loss logs.

    spotdnn  L = (c2 b + c3) sqrt((R + c4) n) / (j + c1) + c5,   c2 <= 0 < c3,  c1, c4, c5 >= 0
    cynthia  L = k0 / (j / n^p + k2) + k1,   k0 > 0,  k1, k2 >= 0,  0 <= p <= 1, synchronous p = 0

after j updates by n workers of weighted batch b and convergence coefficient R. The `relative_sd` of
a law is that of the updates to `goal_loss`, in the setting of the log that is least sure, joined by
the law's own error of 3 %, the best that spotDNN reports for runs it had not seen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from spotwright.domain.errors import CannotFitError, UnreachableTargetError
from spotwright.domain.workload import CynthiaLoss, SpotdnnLoss
from spotwright.perfmodel.laws.cynthia_curve import CynthiaCurve
from spotwright.perfmodel.laws.loss_rows import LossLog, LossRow, usable_rows
from spotwright.perfmodel.laws.robust_fit import RobustFit, fit_robust, relative_sd
from spotwright.perfmodel.laws.spotdnn_curve import SpotdnnCurve

Law = TypeVar("Law", SpotdnnLoss, CynthiaLoss)

_SPOTDNN, _CYNTHIA = "spotdnn", "cynthia"
_LEAST_ROWS = {_SPOTDNN: 8, _CYNTHIA: 4}
_MODEL_SD = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class LossFit(Generic[Law]):
    """A fitted law and what the rows could not show."""

    law: Law
    notes: tuple[str, ...]


def fit_spotdnn_loss(rows: Sequence[LossRow], *, goal_loss: float) -> LossFit[SpotdnnLoss]:
    """Fit c1 to c5 to the logs of asynchronous runs.

    One batch size leaves c2 at 0; the law then holds for that size only.

    Raises:
        CannotFitError: the rows are too few or impossible, do not fall, or do not separate the
            coefficients: that takes runs with different numbers of workers.
        UnreachableTargetError: the goal lies below the fitted floor.
    """
    log = LossLog(usable_rows(_SPOTDNN, rows, least=_LEAST_ROWS[_SPOTDNN]))
    _check_settings(log)
    curve = SpotdnnCurve(log)
    observed = log.loss / log.loss_unit
    fit = fit_robust(curve.loss, observed, starts=curve.starts(), bounds=curve.bounds())
    _check_fit(_SPOTDNN, fit)
    _check_goal(goal_loss, floor_loss=float(fit.values[3]) * log.loss_unit)
    sd = relative_sd(lambda x: curve.updates(x, goal_loss), fit)
    one = (
        () if curve.several_batches else ("one batch size: c2 is 0 and the law holds for it only",)
    )
    return LossFit(
        law=curve.law(fit.values, relative_sd=math.hypot(sd, _MODEL_SD)),
        notes=one,
    )


def fit_cynthia_loss(rows: Sequence[LossRow], *, goal_loss: float) -> LossFit[CynthiaLoss]:
    """Fit k0 to k2, and the power of n where asynchronous runs have different numbers of workers.

    Rows of step 0, where Cynthia's own law is infinite, are left out.

    Raises:
        CannotFitError: the rows are too few or impossible, or do not fall.
        UnreachableTargetError: the goal lies below the fitted floor.
    """
    started = [row for row in rows if row.step != 0]
    log = LossLog(usable_rows(_CYNTHIA, started, least=_LEAST_ROWS[_CYNTHIA]))
    curve = CynthiaCurve(log)
    observed = log.loss / log.loss_unit
    fit = fit_robust(curve.loss, observed, starts=curve.starts(), bounds=curve.bounds())
    _check_fit(_CYNTHIA, fit)
    _check_goal(goal_loss, floor_loss=float(fit.values[1]) * log.loss_unit)
    sd = relative_sd(lambda x: curve.updates(x, goal_loss), fit)
    law = curve.law(fit.values, relative_sd=math.hypot(sd, _MODEL_SD))
    return LossFit(law=law, notes=_crowd_notes(log, law, tells_workers=curve.tells_workers))


def _check_settings(log: LossLog) -> None:
    if not log.asynchronous.all():
        raise CannotFitError(
            _SPOTDNN,
            "some rows are of synchronous training, which it does not describe",
            way_out="leave them out or fit the cynthia law",
        )
    if len(np.unique(log.workers)) == 1:
        raise CannotFitError(
            _SPOTDNN,
            f"all rows have {log.workers[0]:g} workers, so the effect of their number is not "
            "identified",
            way_out="add a run with another number of workers or fit the cynthia law",
        )


def _check_fit(law: str, fit: RobustFit) -> None:
    if fit.values[0] <= 1e-9:
        raise CannotFitError(law, "the loss does not fall", way_out="give logs from their start")
    if not fit.identified:
        raise CannotFitError(
            law,
            "the runs do not separate its coefficients",
            way_out="add a run with another number of workers at the same batch",
        )


def _check_goal(goal_loss: float, *, floor_loss: float) -> None:
    if goal_loss <= floor_loss:
        raise UnreachableTargetError(target_loss=goal_loss, floor_loss=floor_loss)


def _crowd_notes(log: LossLog, law: CynthiaLoss, *, tells_workers: bool) -> tuple[str, ...]:
    if tells_workers:
        return (f"steps to a loss grow with the workers to the power {law.worker_exponent:.2f}",)
    if log.asynchronous.any():
        told = np.unique(log.workers)
        whose = f"all rows have {told[0]:g} workers" if len(told) == 1 else "there are few rows"
        return (f"{whose}: sqrt(n) is assumed, not identified",)
    return ()
