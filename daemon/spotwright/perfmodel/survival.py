"""Kaplan-Meier survival of spot nodes, from lifetimes of which some were cut short by us."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """Probability that a node still runs, a step function."""

    hours: Floats  # where it falls
    probability: Floats  # after each fall
    standard_error: Floats  # Greenwood's

    def at(self, hours: float) -> float:
        """Return the probability of running longer than `hours`."""
        fallen = int(np.searchsorted(self.hours, hours, side="right"))
        return 1.0 if fallen == 0 else float(self.probability[fallen - 1])

    def mean_hazard_per_hour(self, hours: float) -> float:
        """Return the constant hazard with the same survival at `hours`, at most one death each."""
        left = max(self.at(hours), 1e-3)
        return float(-np.log(left) / hours)

    def hazard_per_hour(self, start_h: float, end_h: float) -> float:
        """Return the mean hazard of a node of that age; infinite where none lived as long."""
        start, end = self.at(start_h), self.at(end_h)
        return math.log(start / end) / (end_h - start_h) if end > 0 else math.inf


def kaplan_meier(lifetimes_h: Sequence[float], revoked: Sequence[bool]) -> SurvivalCurve:
    """Estimate survival; a node that was not revoked only says it lived at least that long."""
    lives, ended = np.asarray(lifetimes_h, float), np.asarray(revoked, bool)
    hours = np.unique(lives[ended])
    at_risk = np.array([(lives >= hour).sum() for hour in hours], dtype=np.float64)
    deaths = np.array([(ended & (lives == hour)).sum() for hour in hours], dtype=np.float64)
    probability = np.asarray(np.cumprod(1 - deaths / at_risk), dtype=np.float64)
    left = np.maximum(at_risk - deaths, 1e-12)
    greenwood = np.asarray(np.cumsum(deaths / (at_risk * left)), dtype=np.float64)
    return SurvivalCurve(hours, probability, probability * np.sqrt(greenwood))
