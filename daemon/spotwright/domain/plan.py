"""The answer: a fleet, the proof that nothing better works, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from spotwright.domain.fleet import Role
from spotwright.domain.offer import Pool
from spotwright.domain.prediction import Interval, Prediction


class PlanStatus(StrEnum):
    """How sure the planner is."""

    OPTIMAL = "optimal"  # proved within the gap that was asked for
    FEASIBLE = "feasible"  # meets the goal; the search stopped before the proof was complete
    INFEASIBLE = "infeasible"  # no fleet that the limits allow meets the goal


class Objective(StrEnum):
    """What is made as small as possible."""

    COST = "cost"
    TIME = "time"
    PARETO = "pareto"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningFleet:
    """What is rented already: servers stay, workers do unless a change pays for itself."""

    nodes: Mapping[Pool, int] = field(default_factory=dict)  # workers
    servers: Mapping[Pool, int] = field(default_factory=dict)  # kept: they hold the parameters
    switching_s: float = 300.0  # rent of each new worker before it trains

    def __post_init__(self) -> None:
        counts = [*self.nodes.values(), *self.servers.values()]
        if self.switching_s < 0 or any(count < 1 for count in counts):
            raise ValueError(f"counts must be positive, switching_s not negative, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolChange:
    """What becomes of one pool, from the fleet that runs to the one planned."""

    role: Role
    pool: Pool
    running_count: int
    planned_count: int

    @property
    def kept_count(self) -> int:
        """How many of those that run go on."""
        return min(self.running_count, self.planned_count)

    @property
    def added_count(self) -> int:
        """How many are rented anew."""
        return self.planned_count - self.kept_count

    @property
    def stopped_count(self) -> int:
        """How many are given back."""
        return self.running_count - self.kept_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A fleet that differs in kind, and what choosing it would give up."""

    label: str  # all on-demand, single type, ...
    prediction: Prediction
    cost_usd: float  # with what switching to it costs
    gives_up: str  # "$12.40 more (+31 %)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a relaxed limit would save."""

    limit: str  # the job file's name: goal.deadline, limits.max_count.g5.xlarge
    change: str  # "2 h more"
    saves_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """The cheapest fleet for one deadline."""

    deadline_s: float  # the longest deadline for which nothing cheaper was found
    prediction: Prediction
    cost_usd: float
    lower_bound_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestChange:
    """The least that one limit must give for some fleet to meet the goal."""

    limit: str  # the job file's name
    now: float
    needed: float
    proved: bool  # less would not do; False: the search for less was ended
    text: str  # "goal.deadline from 5 min to 47 min"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The fleet to rent and the proof."""

    status: PlanStatus
    objective: Objective
    prediction: Prediction
    cost_usd: float  # expected, lost work included
    lower_bound_usd: float  # no fleet that meets the goal costs less; objective time: none as fast
    lower_bound_s: float | None  # objective time: no fleet within the budget is faster
    deadline_probability: float | None  # simulated; None: the job has no deadline
    why: tuple[str, ...]  # binding constraints, the runner-up, the bottleneck
    savings: tuple[Saving, ...]
    alternatives: tuple[Alternative, ...]  # cheapest first
    frontier: tuple[FrontierPoint, ...]  # objective pareto: fastest first
    changes: tuple[PoolChange, ...]  # against the fleet that runs; empty where none does
    solve_s: float
    catalog_time: datetime

    def __post_init__(self) -> None:
        if not self.lower_bound_usd <= self.cost_usd * (1 + 1e-9):
            raise ValueError(f"bound {self.lower_bound_usd} above cost {self.cost_usd}")

    @property
    def cost_interval_usd(self) -> Interval:
        """The cost with its interval; what switching adds to the prediction's is certain."""
        told = self.prediction.cost_usd
        if told is None:
            return Interval(self.cost_usd, self.cost_usd, self.cost_usd)
        beside_usd = self.cost_usd - told.mid
        return Interval(told.low + beside_usd, self.cost_usd, told.high + beside_usd)

    @property
    def gap_fraction(self) -> float:
        """How much better the true optimum could still be."""
        if self.lower_bound_s is not None:
            return max(0.0, 1 - self.lower_bound_s / self.prediction.duration_s.mid)
        return max(0.0, 1 - self.lower_bound_usd / self.cost_usd)
