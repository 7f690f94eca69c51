"""What is asked about a running job that must decide, and the answer."""

from dataclasses import dataclass

from spotwright.domain.job import Target
from spotwright.domain.job_run import PlanRecord
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument, PlannedFleet
from spotwright.domain.steering import JobNow, Steering


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringQuestion:
    """How a job stands, and what it was promised."""

    job: JobDocument
    now: JobNow
    target: Target | None  # of the first plan; None: the file's
    deadline_s: float | None  # since training began
    planned_s: float  # how long the first plan took it to be
    forced: bool  # something happened that cannot be left as it is
    plan_id: str  # for the plan of another fleet, if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What a controller must know of a job file that it cannot read itself."""

    spot_pools: frozenset[Pool] = frozenset()  # that the job could use
    budget_usd: float | None = None
    checkpoint_s: float | None = None  # that saving its state takes
    stops_as_one: bool = False  # the loss of any worker stops all


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """What is decided, and the plan of what is left if the fleet is another one."""

    steering: Steering
    facts: JobFacts
    fleet_text: str  # as `--fleet` reads it
    planned: PlannedFleet | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringAnswer:
    """The same with the plan as it is kept."""

    steering: Steering
    facts: JobFacts
    fleet_text: str = ""
    plan: PlanRecord | None = None  # of what is left of the job
