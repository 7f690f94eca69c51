from dataclasses import replace

import pytest

from spotwright.domain.job_run import JobCourse, JobState
from spotwright.domain.prediction import Interval
from spotwright.usecases.forecast_job import PaceMeter, forecast_job, spent
from tests.usecases.example_job_run import after, job_run, planned_run

RUNNING = replace(job_run(state=JobState.RUNNING), progress_fraction=0.25)
PLANNED = replace(planned_run(), duration_interval_s=Interval(3000.0, 3600.0, 4800.0))


def test_the_rest_of_a_job_takes_its_share_of_the_plan_at_the_pace_that_was_measured() -> None:
    job = replace(RUNNING, course=JobCourse(spent_usd=1.0))

    found = forecast_job(job, PLANNED, now=after(1000), pace_factor=0.5)

    assert found is not None
    assert found.duration_s == Interval(1000 + 4500, 1000 + 5400, 1000 + 7200)
    assert found.cost_usd is not None
    assert found.cost_usd.mid == pytest.approx(1.0 + 3.60 * 5400 / 3600)


def test_a_plan_that_took_over_is_the_rest_of_the_job() -> None:
    course = JobCourse(begun_fraction=0.25, spent_usd=0.0)

    found = forecast_job(replace(RUNNING, course=course), PLANNED, now=after(0), pace_factor=None)

    assert found is not None
    assert found.duration_s.mid == 3600.0


def test_nothing_is_expected_of_a_job_whose_progress_is_not_known() -> None:
    job = replace(RUNNING, progress_fraction=None)

    assert forecast_job(job, PLANNED, now=after(0), pace_factor=None) is None


def test_rent_is_counted_from_the_first_look_on() -> None:
    course = JobCourse()
    for seconds in (100, 1900, 3700):
        course = spent(course, 3.60, now=after(seconds))

    assert course.spent_usd == pytest.approx(3.60)
    assert spent(course, None, now=after(4000)).spent_usd is None


@pytest.mark.parametrize("pace", [0.5, 1.0, 2.0])
def test_the_pace_is_the_measured_speed_over_the_planned_one(pace: float) -> None:
    meter, per_s = PaceMeter(), 27.8 / 100_000
    found = None
    for seconds in range(0, 400, 5):
        job = replace(RUNNING, progress_fraction=0.1 + pace * per_s * seconds)
        found = meter.measured(job, PLANNED, now=after(seconds), is_whole=True)
        assert (found is None) == (seconds < 120)

    assert found == pytest.approx(pace)


def test_no_pace_is_told_of_a_fleet_with_nodes_missing() -> None:
    meter = PaceMeter()
    for seconds in range(0, 400, 5):
        whole = seconds < 200
        found = meter.measured(RUNNING, PLANNED, now=after(seconds), is_whole=whole)

    assert found is None
