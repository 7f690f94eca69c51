"""The answer: a fleet, the proof that nothing cheaper works, and why."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from spotwright.domain.prediction import Prediction


class PlanStatus(StrEnum):
    """How sure the planner is."""

    OPTIMAL = "optimal"  # proved within the gap that was asked for
    FEASIBLE = "feasible"  # meets the goal; the search stopped before the proof was complete


class Objective(StrEnum):
    """What is made as small as possible."""

    COST = "cost"
    TIME = "time"
    PARETO = "pareto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A fleet that differs in kind, and what choosing it would give up."""

    label: str
    prediction: Prediction
    gives_up: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The fleet to rent and the proof."""

    status: PlanStatus
    objective: Objective
    prediction: Prediction
    cost_usd: float
    lower_bound_usd: float
    deadline_probability: float
    why: tuple[str, ...]  # binding constraints
    alternatives: tuple[Alternative, ...]
    solve_s: float
    catalog_time: datetime

    def __post_init__(self) -> None:
        if not self.lower_bound_usd <= self.cost_usd * (1 + 1e-9):
            raise ValueError(f"bound {self.lower_bound_usd} above cost {self.cost_usd}")

    @property
    def gap_fraction(self) -> float:
        """How much cheaper the true optimum could still be."""
        return max(0.0, 1 - self.lower_bound_usd / self.cost_usd)
