"""Two fits of non-negative coefficients x to rows known + A x = y, by relative error.

    squares      minimise  sum_i ((known_i + (A x)_i - y_i) / y_i)^2
    deviations   minimise  sum_i |(known_i + (A x)_i - y_i) / y_i|

The second is the mean absolute percentage error itself, deaf to a few odd rows. As a linear program
with W = A / y and r = (y - known) / y: minimise sum s subject to -s <= W x - r <= s. Columns are
scaled to norm 1, so the result does not depend on units.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SAME_DIRECTION = 1e-6  # smallest singular value of normed columns that still tells them apart


def fit_squares(design: Floats, target: Floats, known: Floats) -> Floats:
    """Return the coefficients of least squared relative error."""
    # Imported where used: 0.15 s that a command which only evaluates a law should not pay.
    from scipy.optimize import nnls  # noqa: PLC0415

    weighted, norms = _weighted(design, target)
    solution: Floats = nnls(weighted, (target - known) / target)[0]
    return solution / norms


def fit_deviations(design: Floats, target: Floats, known: Floats) -> Floats:
    """Return the coefficients of least absolute relative error."""
    from scipy.optimize import linprog  # noqa: PLC0415

    weighted, norms = _weighted(design, target)
    rest = (target - known) / target
    rows, columns = weighted.shape
    slack = np.eye(rows)
    result = linprog(
        np.r_[np.zeros(columns), np.ones(rows)],
        A_ub=np.block([[weighted, -slack], [-weighted, -slack]]),
        b_ub=np.r_[rest, -rest],
    )
    assert result.success, result.message  # x = 0 is feasible and the cost is bounded below
    solution: Floats = np.maximum(result.x[:columns], 0.0)
    return solution / norms


def separable(design: Floats, target: Floats) -> bool:
    """Tell whether the rows determine every coefficient."""
    rows, columns = design.shape
    if rows < columns:
        return False
    weighted, _ = _weighted(design, target)
    return bool(np.linalg.svd(weighted, compute_uv=False)[-1] > _SAME_DIRECTION)


def _weighted(design: Floats, target: Floats) -> tuple[Floats, Floats]:
    weighted = design / target[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    return weighted / norms, norms
