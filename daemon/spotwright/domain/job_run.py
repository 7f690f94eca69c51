"""A plan being carried out, and what happens to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from spotwright.domain.prediction import Interval


class JobState(StrEnum):
    """Where a job stands."""

    PENDING = "pending"  # known; no progress was reported yet
    RUNNING = "running"
    SUCCEEDED = "succeeded"  # the goal is reached
    STOPPED = "stopped"  # on request

    @property
    def has_ended(self) -> bool:
        """Nothing more will happen to such a job."""
        return self in (JobState.SUCCEEDED, JobState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far training has come, counted from its start; None where it was not told."""

    samples: float | None = None
    steps: float | None = None
    loss: float | None = None


class Steer(StrEnum):
    """What the daemon may do about a job's fleet."""

    OFF = "off"  # it is followed only
    ANNOUNCE = "announce"  # decisions are logged, for others to carry out
    WRITE = "write"  # variables for Terraform are written, too
    APPLY = "apply"  # and applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When a job will have reached its goal, and what it will have cost."""

    duration_s: Interval  # since training began
    cost_usd: Interval | None  # None: some node has no price


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCourse:
    """Where the current plan took over, and what has come of the job so far."""

    steer: Steer = Steer.OFF
    first_plan_id: str = ""  # the promise; empty: the current plan is the first
    begun_fraction: float = 0.0  # of the goal, when the current plan began
    begun: Progress = field(default_factory=Progress)  # the counts then
    is_told: bool = False  # training reports its progress itself: that is the truth
    spent_usd: float | None = None  # None: not counted, or some node has no price
    spent_until: datetime | None = None
    forecast: Forecast | None = None
    notes: str = ""  # what its controller remembers; the next one goes on with it


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One job as it runs."""

    job_id: str
    name: str  # in the job file
    plan_id: str  # that it runs now
    state: JobState
    create_time: datetime
    update_time: datetime
    start_time: datetime | None = None  # of the first progress reported
    end_time: datetime | None = None
    progress: Progress = field(default_factory=Progress)
    progress_fraction: float | None = None  # of the goal; None where it cannot be told
    controller: str = ""  # the replica that controls it, or did until a moment ago
    course: JobCourse = field(default_factory=JobCourse)

    @property
    def first_plan_id(self) -> str:
        """The plan that its deadline and duration were promised by."""
        return self.course.first_plan_id or self.plan_id


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """Something that happened to a job, before it is in the log."""

    time: datetime
    kind: str  # job-created, interruption-notice, ...
    text: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(NewEvent):
    """An entry of a job's log."""

    sequence: int  # rises with each event of the job, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A plan as it is kept: what lists and jobs need, and the whole as a document."""

    plan_id: str
    job_name: str
    create_time: datetime
    status: str
    cost_usd: float
    duration_s: float
    document: bytes  # the answer as it was given
    job_text: str  # the job file it was made for
    job_path: str
    model: str
