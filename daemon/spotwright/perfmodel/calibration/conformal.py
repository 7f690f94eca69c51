"""Intervals from residuals of rows that the fit had not seen.

The noise of the logarithm of a step is hypot(base, network * share), share that of communication.
Residuals divided by it are exchangeable enough for one pair of conformal quantiles, each tail apart
because delays are skewed.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from spotwright.domain.workload import StepInterval

Floats = NDArray[np.float64]

LEAST_RESIDUALS = 12  # below that, a 90 % quantile is a guess
COVERAGE = Fraction(9, 10)  # exact: ranks are rounded from it


def conformal_interval(residuals: Floats, shares: Floats) -> StepInterval:
    """Return the interval that held 90 % of the residuals, log(measured / predicted)."""
    base, network = _noise(residuals, shares)
    scores = residuals / np.hypot(base, network * shares)
    low, high = _ranks(len(scores))
    ordered = np.sort(scores)
    return StepInterval(
        low_quantile=min(float(ordered[low - 1]), 0.0),
        high_quantile=max(float(ordered[high - 1]), 0.0),
        base_scale=base,
        network_scale=network,
    )


def _ranks(count: int) -> tuple[int, int]:
    """Return which of `count` sorted scores, from 1 on, are the ends of the interval."""
    tail = (1 - COVERAGE) / 2
    low, high = math.floor((count + 1) * tail), math.ceil((count + 1) * (1 - tail))
    return max(low, 1), min(high, count)


def covers(interval: StepInterval, residuals: Floats, shares: Floats) -> NDArray[np.bool_]:
    """Tell which residuals lie inside an interval."""
    scale = np.hypot(interval.base_scale, interval.network_scale * shares)
    inside = (residuals >= interval.low_quantile * scale) & (
        residuals <= interval.high_quantile * scale
    )
    return np.asarray(inside)


def _noise(residuals: Floats, shares: Floats) -> tuple[float, float]:
    """Fit the two terms by Laplace maximum likelihood, robust to heavy tails."""

    def cost(logs: Floats) -> Floats:
        scale = np.hypot(np.exp(logs[0]), np.exp(logs[1]) * shares)
        likelihood: Floats = 2 * (np.log(scale) + np.abs(residuals) / scale) + 20
        return np.sqrt(np.maximum(likelihood, 0.0))

    base, network = np.exp(least_squares(cost, np.log([0.05, 0.15])).x)
    return float(base), float(network)
