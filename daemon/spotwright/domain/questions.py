"""What a planner is asked, and what it answers: the same in-process and over the wire."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from spotwright.domain.errors import BadInputError, NoFeasibleFleetError
from spotwright.domain.job import Goal, JobSpec, Target, TargetKind
from spotwright.domain.plan import Objective, Plan, PlanStatus
from spotwright.domain.prediction import Interval, Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDocument:
    """A job file as its owner wrote it."""

    text: str
    name: str = "job.yaml"  # what complaints call the file
    model: str | None = None  # which workload, where the file holds several


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalOverride:
    """What stands in place of the job file's goal; None leaves the file's own."""

    deadline_s: float | None = None
    budget_usd: float | None = None
    confidence_fraction: float | None = None
    target_loss: float | None = None

    def __post_init__(self) -> None:
        for name in ("deadline_s", "budget_usd", "target_loss"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise BadInputError(f"{name} must be a positive number, got {value}")
        surely = self.confidence_fraction
        if surely is not None and not 0 < surely < 1:
            raise BadInputError(f"confidence_fraction must be between 0 and 1, got {surely}")

    def of(self, job: JobSpec) -> JobSpec:
        """Return the job with these goals."""
        goal = job.goal
        return replace(
            job,
            goal=Goal(
                target=self._target(job),
                deadline_s=self.deadline_s or goal.deadline_s,
                budget_usd=self.budget_usd or goal.budget_usd,
                confidence_fraction=self.confidence_fraction or goal.confidence_fraction,
            ),
        )

    def _target(self, job: JobSpec) -> Target:
        if self.target_loss is None:
            return job.goal.target
        if job.workload.convergence is None:
            raise BadInputError(
                f"--target-loss: {job.name} has no law that says when a loss is reached; add "
                "workload.convergence to its file, or fit one with calibrate --losses"
            )
        return Target(kind=TargetKind.LOSS, value=self.target_loss)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuestion:
    """How to plan a job."""

    goal: GoalOverride = field(default_factory=GoalOverride)
    objective: Objective = Objective.COST
    gap_fraction: float = 1e-3  # stop when proved this close to the best
    time_limit_s: float = 30.0  # stop with the best so far
    existing_fleet: str | None = None  # that runs now, as an expression; kept unless a change pays
    switching_s: float = 300.0  # that a new node is paid for before it trains
    with_frontier: bool = False  # cost against time, whatever the objective
    with_rivals: bool = False  # what other planners would rent
    without_reasons: bool = False  # the fleet and its proof alone, sooner

    def __post_init__(self) -> None:
        if not 0 < self.gap_fraction < 1:
            raise BadInputError(f"gap_fraction must be between 0 and 1, got {self.gap_fraction}")
        if not (math.isfinite(self.time_limit_s) and self.time_limit_s > 0):
            raise BadInputError(f"time_limit_s must be a positive number, got {self.time_limit_s}")
        if not (math.isfinite(self.switching_s) and self.switching_s >= 0):
            raise BadInputError(f"switching_s must not be negative, got {self.switching_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedFleet:
    """What a fleet does, and how old its prices are."""

    prediction: Prediction
    catalog_time: datetime  # of the oldest price among those of this fleet


@dataclass(frozen=True, slots=True)
class RowPrediction:
    """What was predicted for one row of a table."""

    step_s: Interval
    cluster_steps_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedTable:
    """What was predicted for a table of configurations."""

    rows: Sequence[RowPrediction]  # in the order of the table
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFleet:
    """What one fleet does, and what of its job it breaks."""

    prediction: Prediction
    broken: tuple[str, ...]  # a sentence each, the model's own error counted
    will_do: bool  # the goal is met as surely as the job asks, and every limit kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Fleets side by side, and how old their prices are."""

    fleets: Sequence[ComparedFleet]  # in the order asked
    catalog_time: datetime  # of the oldest price among those of these fleets


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another way to choose a fleet, and what its choice would do with this job."""

    name: str
    cost_usd: float  # infinite: it never reaches the goal
    duration_s: float
    meets_goal: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFleet:
    """A plan, and what of the question belongs to it."""

    plan: Plan
    job_name: str
    target: Target  # with what stood in place of the file's own
    deadline_s: float | None
    rivals: tuple[Rival, ...] = ()
    ended_early: bool = False  # the search was told to end
    plan_id: str = ""  # empty: it is not kept
    create_time: datetime | None = None  # None: it is not kept


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFleet:
    """Why there is no plan."""

    error: NoFeasibleFleetError
    job_name: str
    objective: Objective
    catalog_time: datetime  # of the oldest prices of the catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """A plan in one line."""

    plan_id: str
    create_time: datetime
    job_name: str
    status: PlanStatus
    cost_usd: float
    duration_s: float


def cheapest(fleets: Sequence[ComparedFleet]) -> int | None:
    """Return which fleet costs least of those that will do; None where none does."""
    costs = [
        (fleet.prediction.cost_usd.mid, i)
        for i, fleet in enumerate(fleets)
        if fleet.will_do and fleet.prediction.cost_usd is not None
    ]
    return min(costs)[1] if costs else None
