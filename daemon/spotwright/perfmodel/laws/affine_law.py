"""Step time of one device against its batch, t = fixed + per sample * batch, fitted in logarithms.

Rows are medians in the order in which they were measured. The interval of the line at a batch adds,
in squares, the doubt of the coefficients, with neighbouring rows taken to be dependent, and what
batches as a whole lie off the line: a step time need not be affine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import CannotFitError
from spotwright.domain.prediction import Interval
from spotwright.perfmodel.laws.positive_figures import check_positive
from spotwright.perfmodel.laws.robust_fit import (
    RobustFit,
    fit_robust,
    linear_covariance,
    relative_sd,
)
from spotwright.perfmodel.uncertainty import Z90

Floats = NDArray[np.float64]

_LAW = "affine step time"
_NOTHING = 1e-6  # of the time of a sample: fixed seconds that the fit drew towards zero
_LEAST_SHARE = 1e-3  # of the time of the largest batch that grows with it


@dataclass(frozen=True, slots=True)
class AffineLaw:
    """Seconds by batch."""

    fit: RobustFit  # of fixed seconds and seconds per sample
    covariance: Floats  # of both, also where fixed seconds rest on their bound, which is zero
    misfit_fraction: float  # root mean square of batches against the line

    @property
    def fixed_s(self) -> Interval:
        """Seconds of a step whatever its batch."""
        value, sd = float(self.fit.values[0]), self._sd(0)
        value = value if value > _NOTHING * self.fit.values[1] else 0.0
        return Interval(max(value - Z90 * sd, 0.0), value, value + Z90 * sd)

    @property
    def per_sample_s(self) -> Interval:
        """Seconds of each further sample."""
        value, sd = float(self.fit.values[1]), self._sd(1)
        return Interval(max(value - Z90 * sd, 0.0), value, value + Z90 * sd)

    def step_s(self, batch: float) -> Interval:
        """Return the seconds of a step, and the 90 % interval of their median."""

        def at_batch(values: Floats) -> Floats:
            return np.array([values[0] + values[1] * batch])

        middle = float(at_batch(self.fit.values)[0])
        spread = math.exp(Z90 * math.hypot(relative_sd(at_batch, self.fit), self.misfit_fraction))
        return Interval(middle / spread, middle, middle * spread)

    def _sd(self, index: int) -> float:
        return math.sqrt(float(self.covariance[index, index]))


def fit_affine(rows: Sequence[tuple[float, float]]) -> AffineLaw:
    """Fit batches and seconds.

    Raises:
        CannotFitError: there are fewer than two batches, or a figure is not positive.
    """
    for batch, seconds in rows:
        check_positive(_LAW, batch=batch, seconds=seconds)
    sizes = sorted({batch for batch, _ in rows})
    if len(sizes) < 2:
        raise CannotFitError(
            _LAW, f"there are {len(sizes)} batch sizes", way_out="measure at least two"
        )
    batch, seconds = np.array(rows, dtype=np.float64).T
    least = _LEAST_SHARE * float(np.median(seconds / batch))
    fit = fit_robust(
        lambda x: np.log((x[0] + x[1] * batch) / seconds),  # twice and half weigh the same
        np.zeros_like(seconds),
        starts=_starts(batch, seconds),
        bounds=(np.array([0.0, least]), np.array([np.inf, np.inf])),
    )
    line = fit.values[0] + fit.values[1] * batch
    slopes = np.stack([1 / line, batch / line], axis=1)
    covariance = linear_covariance(slopes, np.log(line / seconds))
    return AffineLaw(fit, covariance, _misfit(fit, batch, seconds))


def _starts(batch: Floats, seconds: Floats) -> list[Floats]:
    middle_s, per_sample_s = float(np.median(seconds)), float(np.median(seconds / batch))
    return [np.array([0.0, per_sample_s]), np.array([middle_s / 2, per_sample_s / 2])]


def _misfit(fit: RobustFit, batch: Floats, seconds: Floats) -> float:
    """Return how far the medians of batches lie off the line."""
    sizes = np.unique(batch)
    medians = np.array([np.median(seconds[batch == size]) for size in sizes])
    logs = np.log(medians / (fit.values[0] + fit.values[1] * sizes))
    return math.sqrt(float(logs @ logs) / max(len(sizes) - 2, 1))
