"""A plan being carried out, and what happens to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One job as it runs."""

    job_id: str
    name: str  # in the job file
    plan_id: str
    state: JobState
    create_time: datetime
    update_time: datetime
    start_time: datetime | None = None  # of the first progress reported
    end_time: datetime | None = None
    progress: Progress = field(default_factory=Progress)
    progress_fraction: float | None = None  # of the goal; None where it cannot be told
    controller: str = ""  # the replica that controls it, or did until a moment ago


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
