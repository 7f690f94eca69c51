"""Expect when a running job will have reached its goal, and what it will have cost.

    rest_s  = share of the current plan that is left * its duration / pace
    cost    = spent so far + rent of the current plan * rest_s

The interval of the plan's duration is that of the rest.
"""

from collections import deque
from dataclasses import replace
from datetime import datetime

from spotwright.domain.job_run import Forecast, JobCourse, JobRun
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.prediction import Interval

_WINDOW_S = 300.0  # of which the speed is measured
_LEAST_S = 120.0  # less tells nothing
_LONGEST_GAP_S = 60.0  # between two marks that tell of steady training


def forecast_job(
    job: JobRun, planned: PlannedRun, *, now: datetime, pace_factor: float | None
) -> Forecast | None:
    """Return what is expected of a job; None where it cannot be told."""
    done, begun = job.progress_fraction, job.course.begun_fraction
    if job.start_time is None or done is None or planned.duration_s <= 0:
        return None
    elapsed_s = max(0.0, (now - job.start_time).total_seconds())
    left = max(0.0, 1 - done) / max(1 - begun, 1e-9)
    whole = planned.duration_interval_s or Interval(*[planned.duration_s] * 3)
    rest = whole.scaled(left / (pace_factor or 1.0))
    cost = None
    if planned.rent_usd_per_hour is not None and job.course.spent_usd is not None:
        cost = rest.scaled(planned.rent_usd_per_hour / 3600).shifted(job.course.spent_usd)
    return Forecast(duration_s=rest.shifted(elapsed_s), cost_usd=cost)


def spent(course: JobCourse, usd_per_hour: float | None, *, now: datetime) -> JobCourse:
    """Return the course of a running job with the rent since it was last counted."""
    since = course.spent_until
    if since is None:
        return replace(course, spent_usd=course.spent_usd or 0.0, spent_until=now)
    if usd_per_hour is None:
        return replace(course, spent_usd=None, spent_until=now)
    hours = max(0.0, (now - since).total_seconds()) / 3600
    return replace(
        course, spent_usd=(course.spent_usd or 0.0) + hours * usd_per_hour, spent_until=now
    )


class PaceMeter:
    """Measures how fast a job goes while its fleet is whole."""

    def __init__(self) -> None:
        self._marks: deque[tuple[datetime, float]] = deque()
        self._plan_id = ""

    def measured(
        self, job: JobRun, planned: PlannedRun, *, now: datetime, is_whole: bool
    ) -> float | None:
        """Return the measured speed over the planned one; None where it cannot be told."""
        done = job.progress_fraction
        marks = self._marks
        if job.plan_id != self._plan_id or not is_whole or done is None:
            marks.clear()
            self._plan_id = job.plan_id
        if done is None or not is_whole:
            return None
        if marks and (now - marks[-1][0]).total_seconds() > _LONGEST_GAP_S:
            marks.clear()
        marks.append((now, done))
        while (now - marks[0][0]).total_seconds() > _WINDOW_S:
            marks.popleft()
        passed_s = (now - marks[0][0]).total_seconds()
        planned_per_s = _planned_per_s(job, planned)
        if passed_s < _LEAST_S or not planned_per_s:
            return None
        return (done - marks[0][1]) / passed_s / planned_per_s or None


def _planned_per_s(job: JobRun, planned: PlannedRun) -> float:
    """Return the share of the whole goal in a second, nothing being interrupted."""
    if planned.samples_to_goal <= 0:
        return 0.0
    return (1 - job.course.begun_fraction) * planned.samples_per_s / planned.samples_to_goal
