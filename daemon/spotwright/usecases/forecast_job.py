"""Expect when a running job will have reached its goal, and what it will have cost.

    rest_s  = share of the current plan that is left * its duration / pace
    cost    = spent so far + rent of the current plan * rest_s

The interval of the plan's duration is that of the rest.
"""

from collections import deque
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from spotwright.domain.job_run import Forecast, JobCourse, JobRun
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.prediction import Interval

_WINDOW_S = 300.0  # of which the speed is measured
_LEAST_S = 120.0  # less tells nothing
_LONGEST_GAP_S = 60.0  # between two looks that tell of steady training
_LONGEST_START_S = 3600.0  # that a whole fleet may take until its progress is told twice
_HANGS_AFTER = 4.0  # times the longest time between two changes


def forecast_job(
    job: JobRun, planned: PlannedRun, *, now: datetime, pace_factor: float | None
) -> Forecast | None:
    """Return what is expected of a job; None where it cannot be told."""
    done, begun = job.progress_fraction, job.course.begun_fraction
    if job.start_time is None or done is None or planned.duration_s <= 0 or pace_factor == 0:
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
    """Measures how fast a job goes while its fleet is whole.

    Training may tell its progress seldom, so the speed is that between two changes of what is done,
    never from a change to some moment after it. What does not change for several times as long as
    it did stands still.
    """

    def __init__(self) -> None:
        self._changes: deque[tuple[datetime, float]] = deque()
        self._looked: tuple[datetime, float] | None = None  # while the fleet is whole
        self._whole_since: datetime | None = None
        self._fleet: tuple[str, frozenset[str]] = ("", frozenset())

    def measured(
        self,
        job: JobRun,
        planned: PlannedRun,
        *,
        now: datetime,
        is_whole: bool,
        shrunk: frozenset[str] = frozenset(),
    ) -> float | None:
        """Return the measured speed over the planned one; None where it cannot be told.

        Args:
            job: as it stands.
            planned: its current plan.
            now: the controller's clock.
            is_whole: every node that is wanted is there.
            shrunk: nodes that have become less, and how: with others, it is another fleet.
        """
        done, fleet = job.progress_fraction, (job.plan_id, shrunk)
        if fleet != self._fleet or not is_whole or done is None or self._was_away(now):
            self._fleet, self._looked = fleet, None
            self._changes.clear()
        if done is None or not is_whole:
            return None
        if self._looked is None:
            self._whole_since = now
        elif self._looked[1] != done:
            self._note(now, done)
        self._looked = now, done
        planned_per_s = _planned_per_s(job, planned)
        if self._stands_still(now):
            return 0.0
        per_s = self._per_s()
        return per_s / planned_per_s if per_s is not None and planned_per_s else None

    def _was_away(self, now: datetime) -> bool:
        return self._looked is not None and (now - self._looked[0]).total_seconds() > _LONGEST_GAP_S

    def _note(self, now: datetime, done: float) -> None:
        """Keep a change, and of those before it what the window needs."""
        changes = self._changes
        if changes and done < changes[-1][1]:  # restored from a checkpoint: counted from there
            changes.clear()
        changes.append((now, done))
        while len(changes) > 2 and (now - changes[1][0]).total_seconds() >= _WINDOW_S:
            changes.popleft()

    def _per_s(self) -> float | None:
        if len(self._changes) < 2:
            return None
        (since, before), (until, after) = self._changes[0], self._changes[-1]
        passed_s = (until - since).total_seconds()
        return (after - before) / passed_s if passed_s >= _LEAST_S else None

    def _stands_still(self, now: datetime) -> bool:
        times = [time for time, _ in self._changes]
        since = times[-1] if times else self._whole_since or now
        gaps_s = [(b - a).total_seconds() for a, b in pairwise(times)]
        most_s = max(_HANGS_AFTER * max(gaps_s), _WINDOW_S) if gaps_s else _LONGEST_START_S
        return (now - since).total_seconds() > most_s


def _planned_per_s(job: JobRun, planned: PlannedRun) -> float:
    """Return the share of the whole goal in a second, nothing being interrupted."""
    if planned.samples_to_goal <= 0:
        return 0.0
    return (1 - job.course.begun_fraction) * planned.samples_per_s / planned.samples_to_goal
