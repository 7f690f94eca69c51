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


def paces(
    meter: PaceMeter, *, every_s: int, until_s: int, pace: float = 1.0, hangs_at_s: int = 10**9
) -> dict[int, float | None]:
    """Return what is told at each look of training that tells its progress from time to time."""
    per_s = 27.8 / 100_000
    found = {}
    for seconds in range(0, until_s, 5):
        told_s = min(seconds, hangs_at_s) // every_s * every_s
        job = replace(RUNNING, progress_fraction=0.1 + pace * per_s * told_s)
        found[seconds] = meter.measured(job, PLANNED, now=after(seconds), is_whole=True)
    return found


@pytest.mark.parametrize("pace", [0.5, 1.0, 2.0])
def test_the_pace_is_the_measured_speed_over_the_planned_one(pace: float) -> None:
    found = paces(PaceMeter(), every_s=5, until_s=400, pace=pace)

    assert all((told is None) == (seconds < 125) for seconds, told in found.items())
    assert found[395] == pytest.approx(pace)


@pytest.mark.parametrize("every_s", [60, 150, 240, 290, 900])
def test_progress_that_is_told_seldom_gives_no_other_pace(every_s: int) -> None:
    found = {*paces(PaceMeter(), every_s=every_s, until_s=4 * every_s).values()} - {None}

    assert found
    assert all(told == pytest.approx(1.0) for told in found)


def test_a_pace_is_that_of_the_last_five_minutes() -> None:
    meter, per_s, done = PaceMeter(), 27.8 / 100_000, 0.1
    for seconds in range(0, 1200, 5):
        done += 5 * per_s * (1.0 if seconds < 800 else 0.5)
        job = replace(RUNNING, progress_fraction=done)
        found = meter.measured(job, PLANNED, now=after(seconds), is_whole=True)

    assert found == pytest.approx(0.5)


@pytest.mark.parametrize(("every_s", "hang_s"), [(5, 300), (60, 300), (240, 960)])
def test_training_that_hangs_is_told_as_no_pace_at_all(every_s: int, hang_s: int) -> None:
    found = paces(PaceMeter(), every_s=every_s, until_s=4000, hangs_at_s=1200)

    assert found[1200 + hang_s] == pytest.approx(1.0)
    assert all(told == 0.0 for seconds, told in found.items() if seconds > 1200 + hang_s)


def test_a_fleet_that_never_gets_to_train_is_told_after_an_hour() -> None:
    found = paces(PaceMeter(), every_s=5, until_s=4000, hangs_at_s=0)

    assert (found[3600], found[3605]) == (None, 0.0)


def test_work_that_is_done_again_after_a_loss_is_no_speed() -> None:
    meter, per_s = PaceMeter(), 27.8 / 100_000
    for seconds in range(0, 800, 5):
        lost_s = 300 if seconds > 500 else 0
        job = replace(RUNNING, progress_fraction=0.3 + per_s * (seconds - lost_s))
        found = meter.measured(job, PLANNED, now=after(seconds), is_whole=True)

    assert found == pytest.approx(1.0)


def test_of_training_that_hangs_no_end_is_expected() -> None:
    assert forecast_job(RUNNING, PLANNED, now=after(0), pace_factor=0.0) is None


def test_no_pace_is_told_of_a_fleet_with_nodes_missing() -> None:
    meter = PaceMeter()
    for seconds in range(0, 400, 5):
        whole = seconds < 200
        found = meter.measured(RUNNING, PLANNED, now=after(seconds), is_whole=whole)

    assert found is None
