"""Robust least squares of a curve with bounded parameters, and how sure the parameters are.

Residuals pass through soft_l1, 2 (sqrt(1 + z^2) - 1), with the scale taken from their own median,
so that spikes weigh little. Fits start from every given point with a wide scale and the best goes
on with the narrow one. The covariance is that of linearised least squares,

    noise^2 * (J' J)^-1 * (1 + rho) / (1 - rho),

rho the correlation of neighbouring residuals, as rows of one log are not independent. A parameter
that rests on a bound counts as known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares

Floats = NDArray[np.float64]

_MAD_TO_SD = 1.4826
_FIRST_SCALE, _LEAST_SCALE = 0.05, 1e-4  # of the observations, whose spread is 1
_SAME_DIRECTION = 1e-5  # singular value of normed Jacobian columns that still tells them apart


@dataclass(frozen=True, slots=True)
class RobustFit:
    """Fitted parameters."""

    values: Floats
    covariance: Floats
    identified: bool  # no two parameters do the same to the curve


def fit_robust(
    curve: Callable[[Floats], Floats],
    observed: Floats,
    *,
    starts: Sequence[Floats],
    bounds: tuple[Floats, Floats],
) -> RobustFit:
    """Fit `curve(parameters)` to observations scaled to a spread of about 1."""

    def solve(start: Floats, scale: float) -> OptimizeResult:
        return least_squares(
            lambda x: curve(x) - observed,
            np.clip(start, *bounds),
            jac="3-point",
            bounds=bounds,
            loss="soft_l1",
            f_scale=scale,
            x_scale="jac",
            xtol=1e-12,
            ftol=1e-12,
            gtol=1e-12,
        )

    best = min((solve(x, _FIRST_SCALE) for x in starts), key=lambda r: float(r.cost))
    for _ in range(2):  # the scale follows the residuals
        best = solve(best.x, max(_noise(curve(best.x) - observed), _LEAST_SCALE))
    return _with_covariance(best, curve(best.x) - observed)


def relative_sd(figure: Callable[[Floats], Floats], fit: RobustFit) -> float:
    """Return the largest relative uncertainty of positive figures computed from parameters."""
    value = figure(fit.values)
    slopes = []
    for i, x in enumerate(fit.values):
        step = np.zeros_like(fit.values)
        step[i] = 1e-6 * max(abs(x), 1e-3)
        slopes.append((figure(fit.values + step) - figure(fit.values - step)) / (2 * step[i]))
    gradient = np.array(slopes)
    variance = np.einsum("ik,ij,jk->k", gradient, fit.covariance, gradient)
    return float(np.max(np.sqrt(np.maximum(variance, 0.0)) / value))


def linear_covariance(jacobian: Floats, residuals: Floats) -> Floats:
    """Return the covariance of parameters, by the slopes of the curve and what it left over."""
    rows, columns = jacobian.shape
    noise = _noise(residuals) * np.sqrt(rows / (rows - columns))
    inverse = np.linalg.pinv(jacobian.T @ jacobian, hermitian=True)
    return np.asarray(noise**2 * _repetition(residuals) * inverse)


def _with_covariance(result: OptimizeResult, residuals: Floats) -> RobustFit:
    free = np.asarray(result.active_mask) == 0
    jacobian = result.jac[:, free]
    norms = np.linalg.norm(jacobian, axis=0)
    seen = bool((norms > 0).all())
    singular = np.linalg.svd(jacobian / np.where(norms > 0, norms, 1.0), compute_uv=False)
    identified = seen and bool(singular.min(initial=1.0) > _SAME_DIRECTION)
    covariance = np.zeros((len(free), len(free)))
    if identified:
        covariance[np.ix_(free, free)] = linear_covariance(jacobian, residuals)
    return RobustFit(np.asarray(result.x), covariance, identified)


def _noise(residuals: Floats) -> float:
    return _MAD_TO_SD * float(np.median(np.abs(residuals)))


def _repetition(residuals: Floats) -> float:
    """Return by how much the variance of a mean exceeds that of independent rows."""
    power = float(residuals @ residuals)
    rho = float(residuals[1:] @ residuals[:-1]) / power if power > 0 else 0.0
    rho = min(max(rho, 0.0), 0.99)
    return (1 + rho) / (1 - rho)
