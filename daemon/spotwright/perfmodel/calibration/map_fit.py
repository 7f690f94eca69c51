"""Robust maximum a-posteriori fit of positive parameters.

Parameters live in logarithms (shares between 0 and 1 in logits) under normal priors centred on
hardware facts, and the search does not go below a parameter's floor. Residuals are those of the
logarithm of the step time under a pseudo-Huber loss. What the rows do not show stays where the
prior put it, so rows of one node leave the network alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares

Floats = NDArray[np.float64]

_OUTLIER_LOG = 0.05  # log residual from which a row loses weight
_MOST_EVALUATIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What is believed of a parameter before any row is seen."""

    name: str
    centre: float
    log_sd: float
    floor: float = 0.0  # the least it can be
    share: bool = False  # lives between 0 and 1

    def free(self, value: float) -> float:
        """Return the unbounded form of a value."""
        return float(np.log(value / (1 - value)) if self.share else np.log(value))

    @property
    def least_free(self) -> float:
        """The unbounded form of the floor."""
        return self.free(self.floor) if self.floor else -math.inf

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
    prior = _Prior(parameters)

    def residuals(free: Floats) -> Floats:
        scaled = (log_steps(prior.values(free)) - target) / _OUTLIER_LOG
        soft = np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled * scaled) - 1))
        return np.concatenate([soft, (free - prior.centre) / prior.width])

    starts = [prior.start(factors) for factors in ({}, *other_starts)]
    bounds, most = (prior.least, np.inf), _MOST_EVALUATIONS
    fits = [least_squares(residuals, start, bounds=bounds, max_nfev=most) for start in starts]
    return prior.fitted(min(fits, key=lambda fit: float(fit.cost)))


class _Prior:
    """All parameters in their unbounded form."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = parameters
        self.centre = np.array([p.free(p.centre) for p in parameters])
        self.least = np.array([p.least_free for p in parameters])
        self.width = np.array([p.log_sd for p in parameters])

    def values(self, free: Floats) -> dict[str, float]:
        return {p.name: p.value(z) for p, z in zip(self._parameters, free, strict=True)}

    def start(self, factors: Mapping[str, float]) -> Floats:
        shift = [np.log(factors.get(p.name, 1.0)) for p in self._parameters]
        return np.asarray(self.centre + np.array(shift))

    def fitted(self, found: OptimizeResult) -> MapFit:
        posterior = np.linalg.inv(found.jac.T @ found.jac)
        learned = 1 - np.diag(posterior) / self.width**2
        names = (p.name for p in self._parameters)
        return MapFit(self.values(found.x), dict(zip(names, learned.tolist(), strict=True)))


def hardly_shown(fit: MapFit) -> tuple[str, ...]:
    """Name, in words, the parameters that the rows left almost where the prior had put them."""
    return tuple(
        _in_words(name)
        for name, learned in fit.learned.items()
        if learned < (_COMPUTE_LEARNED if name.startswith("per_sample:") else _LEARNED)
    )


def _in_words(name: str) -> str:
    kind, _, of = name.partition(":")
    words = _WORDS.get(kind, kind.replace("_", " "))
    return f"{words} {of}" if of else words


_LEARNED, _COMPUTE_LEARNED = 0.5, 0.99  # compute has a wide prior: anything seen narrows it
_WORDS = {
    "per_sample": "compute on",
    "fixed": "fixed time on",
    "net": "network of",
    "intra": "links inside",
    "sharing": "sharing inside",
    "head": "start of the overlap",
    "power": "sharpness of the overlap",
    "gpu_spread": "spread of GPU speeds",
}
