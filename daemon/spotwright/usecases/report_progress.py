"""Take how far training has come.

What a job has reached stays reached: counts that are smaller than those known change nothing. They
come late from a slow process, or from training that was restored from a checkpoint; the latter is
told by a count more than 1 % smaller, and logged once until training has caught up.
"""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from threading import Lock

from spotwright.domain.errors import BadInputError, JobEndedError
from spotwright.domain.job_run import JobRun, JobState, NewEvent, Progress
from spotwright.domain.planned_run import PlannedRun
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.store_ports import JobStore

_FELL_BACK_FRACTION = 0.99  # of what is known already
_COUNTS = ("samples", "steps")


class ProgressLog:
    """Takes reports of progress; any thread may call it."""

    def __init__(self, jobs: JobStore, planned: PlannedRuns) -> None:
        self._jobs, self._planned = jobs, planned
        self._fallen_back: set[str] = set()
        self._lock = Lock()

    def report(self, job_id: str, progress: Progress, *, request_id: str, now: datetime) -> JobRun:
        """Keep the progress of a job, which ends when its goal is reached.

        Raises:
            BadInputError: no figure, or one that no training has.
            NotFoundError: no such job.
            JobEndedError: it has ended.
        """
        check_progress(progress)
        planned = self._planned.of(self._jobs.job(job_id).plan_id)

        def changed(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
            if job.state.has_ended:
                raise JobEndedError(job_id, state=job.state)
            own = replace(job, course=replace(job.course, is_told=True))
            found = advanced(own, progress, planned, now=now)
            fell_back = job.job_id not in self._fallen_back
            return found, progress_events(job, found, progress, now=now, tell_fall=fell_back)

        found = self._jobs.change_job(job_id, changed, request_id=request_id)
        self._remember(found, progress)
        return found

    def _remember(self, job: JobRun, told: Progress) -> None:
        with self._lock:
            if _fell_back(job.progress, told) and not job.state.has_ended:
                self._fallen_back.add(job.job_id)
            else:
                self._fallen_back.discard(job.job_id)


def progress_events(
    before: JobRun, after: JobRun, told: Progress, *, now: datetime, tell_fall: bool
) -> list[NewEvent]:
    """Return what is logged of progress; that training fell back only if `tell_fall`."""
    events = []
    if before.state is JobState.PENDING:
        events.append(_event("job-started", "training has started", told, now))
    if tell_fall and _fell_back(after.progress, told):
        text = "training fell back to an earlier state; what was reached before stays counted"
        event = _event("progress-fell-back", text, told, now)
        reached = {f"reached_{name}": figure for name, figure in _facts(after.progress).items()}
        events.append(replace(event, facts={**event.facts, **reached}))
    if after.state is JobState.SUCCEEDED:
        events.append(_event("goal-reached", "the goal is reached", after.progress, now))
    return events


def check_progress(progress: Progress) -> None:
    """Raise BadInputError for figures that no training has."""
    told = _told(progress)
    if not told:
        raise BadInputError("a report of progress tells samples, steps or loss; it has none")
    for name, value in told.items():
        if not math.isfinite(value) or (name in _COUNTS and value < 0):
            raise BadInputError(f"progress.{name} must be a number from 0 on, got {value}")


def advanced(job: JobRun, told: Progress, planned: PlannedRun, *, now: datetime) -> JobRun:
    """Return a job that has come as far as it was told."""
    progress = _furthest(job.progress, told)
    reached = planned.is_done(progress, job.course)
    return replace(
        job,
        state=JobState.SUCCEEDED if reached else JobState.RUNNING,
        progress=progress,
        progress_fraction=planned.done_fraction(progress, job.course),
        start_time=job.start_time or now,
        end_time=now if reached else None,
        update_time=now,
        controller="" if reached else job.controller,
    )


def _furthest(known: Progress, told: Progress) -> Progress:
    """Return the larger counts, and the loss that belongs to them."""
    is_late = any(
        new < old
        for name in _COUNTS
        if (new := getattr(told, name)) is not None and (old := getattr(known, name)) is not None
    )
    return Progress(
        samples=_larger(known.samples, told.samples),
        steps=_larger(known.steps, told.steps),
        loss=known.loss if told.loss is None or is_late else told.loss,
    )


def _larger(known: float | None, told: float | None) -> float | None:
    return max((v for v in (known, told) if v is not None), default=None)


def _fell_back(known: Progress, told: Progress) -> bool:
    return any(
        new < old * _FELL_BACK_FRACTION
        for name in _COUNTS
        if (new := getattr(told, name)) is not None and (old := getattr(known, name)) is not None
    )


def _told(progress: Progress) -> dict[str, float]:
    values = {field.name: getattr(progress, field.name) for field in fields(progress)}
    return {name: value for name, value in values.items() if value is not None}


def _event(kind: str, text: str, progress: Progress, now: datetime) -> NewEvent:
    words = ", ".join(f"{name} {value:,.6g}" for name, value in _told(progress).items())
    return NewEvent(time=now, kind=kind, text=f"{text} ({words})", facts=_facts(progress))


def _facts(progress: Progress) -> dict[str, str]:
    return {name: f"{value:.12g}" for name, value in _told(progress).items()}
