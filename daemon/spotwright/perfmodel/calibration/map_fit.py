"""Robust maximum a-posteriori fit of positive parameters.

Parameters live in logarithms (shares between 0 and 1 in logits) under normal priors centred on
hardware facts. Residuals are those of the logarithm of the step time under a pseudo-Huber loss.
What the rows do not show stays where the prior put it, so rows of one node leave the network alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Floats = NDArray[np.float64]

_OUTLIER_LOG = 0.05  # log residual from which a row loses weight
_MOST_EVALUATIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What is believed of a parameter before any row is seen."""

    name: str
    centre: float
    log_sd: float
    share: bool = False  # lives between 0 and 1

    def free(self, value: float) -> float:
        """Return the unbounded form of a value."""
        return float(np.log(value / (1 - value)) if self.share else np.log(value))

    def value(self, free: float) -> float:
        """Return the value of an unbounded form."""
        return float(1 / (1 + np.exp(-free)) if self.share else np.exp(free))


@dataclass(frozen=True, slots=True)
class MapFit:
    """Fitted values and how much narrower than the prior each became."""

    values: Mapping[str, float]
    learned: Mapping[str, float]  # 1 - posterior variance / prior variance


def fit_map(
    parameters: Sequence[Parameter],
    log_steps: Callable[[Mapping[str, float]], Floats],
    target: Floats,
    *,
    other_starts: Sequence[Mapping[str, float]] = (),
) -> MapFit:
    """Fit parameters so that `log_steps(values)` meets `target`, the logarithms of measured steps.

    Args:
        parameters: their priors.
        log_steps: predicts the logarithm of every row's step.
        target: what was measured.
        other_starts: further starting points, as factors on the centres of some parameters.
    """
    centre = np.array([p.free(p.centre) for p in parameters])
    width = np.array([p.log_sd for p in parameters])

    def values(free: Floats) -> dict[str, float]:
        return {p.name: p.value(z) for p, z in zip(parameters, free, strict=True)}

    def residuals(free: Floats) -> Floats:
        scaled = (log_steps(values(free)) - target) / _OUTLIER_LOG
        soft = np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled * scaled) - 1))
        return np.concatenate([soft, (free - centre) / width])

    starts = [centre]
    for factors in other_starts:
        shift = [np.log(factors.get(p.name, 1.0)) for p in parameters]
        starts.append(centre + np.array(shift))
    fits = [least_squares(residuals, start, max_nfev=_MOST_EVALUATIONS) for start in starts]
    best = min(fits, key=lambda fit: fit.cost)
    posterior = np.linalg.inv(best.jac.T @ best.jac)
    learned = 1 - np.diag(posterior) / width**2
    names = [p.name for p in parameters]
    return MapFit(values(best.x), dict(zip(names, learned.tolist(), strict=True)))
