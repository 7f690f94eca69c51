"""Fit a workload to its rows, and say how good the fit is on rows it has not seen.

Rows are left out by whole placements, so that a fit is never asked about a fleet it knows. The
residuals of those rows give the cross-validated error, the conformal interval and, with quantiles
taken from the other folds, the coverage that the interval really has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.workload import Workload
from spotwright.perfmodel.calibration.conformal import (
    LEAST_RESIDUALS,
    conformal_interval,
    covers,
)
from spotwright.perfmodel.calibration.runs import Floats, MeasuredRows, Run, log_steps

_FOLDS = 5
_LEAST_PLACEMENTS = 3
_OUTLIER_SCALES = 5.0  # median absolute deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A fitted workload and how far to trust it; errors are mean absolute fractions."""

    workload: Workload
    row_count: int
    fit_error_fraction: float
    unseen_error_fraction: float | None  # None: too few placements to leave any out
    coverage_fraction: float | None  # of the 90 % interval, on rows left out
    outlier_lines: tuple[int, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Unseen:
    """Residuals of rows that were left out of the fit that predicted them."""

    residuals: Floats
    shares: Floats
    folds: NDArray[np.intp]


def calibrate(rows: MeasuredRows) -> Calibration:
    """Fit a workload to rows."""
    fitted = rows.fit()
    workload = replace(fitted.workload, interval=None)  # an older one is not of these rows
    residuals = log_steps(rows.runs) - np.log(rows.steps(workload).seconds)
    unseen = _leave_placements_out(rows)
    notes = list(rows.notes)
    if fitted.hardly_shown:
        shown = ", ".join(fitted.hardly_shown)
        notes.append(f"the rows hardly show these, which stay near what was assumed: {shown}")
    if unseen is not None and len(unseen.residuals) >= LEAST_RESIDUALS:
        interval = conformal_interval(unseen.residuals, unseen.shares)
        workload = replace(workload, interval=interval)
    else:
        notes.append("too few rows for an interval from residuals: a usual one is given")
    return Calibration(
        workload=workload,
        row_count=len(rows.runs),
        fit_error_fraction=_mean_error(residuals),
        unseen_error_fraction=_mean_error(unseen.residuals) if unseen else None,
        coverage_fraction=_coverage(unseen) if unseen else None,
        outlier_lines=_outliers(rows.runs, residuals),
        notes=tuple(notes),
    )


def _leave_placements_out(rows: MeasuredRows) -> _Unseen | None:
    placements = sorted({run.placement for run in rows.runs})
    if len(placements) < _LEAST_PLACEMENTS:
        return None
    place = {name: i for i, name in enumerate(placements)}
    folds = np.array([place[run.placement] % _FOLDS for run in rows.runs])
    residuals, shares = np.full(len(folds), np.nan), np.zeros(len(folds))
    for fold in np.unique(folds):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        known = rows.take(inside)
        left_out = _known_devices(known.runs, rows, outside)
        if not len(inside) or not len(left_out):
            continue
        steps = rows.take(left_out).steps(known.fit().workload)
        residuals[left_out] = log_steps(rows.runs)[left_out] - np.log(steps.seconds)
        shares[left_out] = steps.communication_fraction
    predicted = np.isfinite(residuals)
    if not predicted.any():
        return None
    return _Unseen(residuals[predicted], shares[predicted], folds[predicted])


def _known_devices(
    known: Sequence[Run], rows: MeasuredRows, index: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Drop left-out rows on devices that no remaining row was measured on."""
    seen = {group.device for run in known for group in run.fleet.workers}
    keep = [i for i in index if all(group.device in seen for group in rows.runs[i].fleet.workers)]
    return np.array(keep, dtype=np.intp)


def _coverage(unseen: _Unseen) -> float | None:
    """Return how many left-out rows the interval of the other folds covers."""
    inside = []
    for fold in np.unique(unseen.folds):
        mine, others = unseen.folds == fold, unseen.folds != fold
        if others.sum() < LEAST_RESIDUALS:
            return None
        interval = conformal_interval(unseen.residuals[others], unseen.shares[others])
        inside.append(covers(interval, unseen.residuals[mine], unseen.shares[mine]))
    return float(np.concatenate(inside).mean())


def _mean_error(residuals: Floats) -> float:
    """Return the mean of |predicted / measured - 1|."""
    return float(np.abs(np.expm1(-residuals)).mean())


def _outliers(runs: Sequence[Run], residuals: Floats) -> tuple[int, ...]:
    spread = float(np.median(np.abs(residuals - np.median(residuals))))
    limit = max(_OUTLIER_SCALES * 1.4826 * spread, math.log(1.25))
    return tuple(run.line for run, r in zip(runs, residuals, strict=True) if abs(r) > limit)
