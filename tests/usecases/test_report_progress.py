from dataclasses import replace

import pytest

from spotwright.domain.errors import BadInputError, JobEndedError, NotFoundError
from spotwright.domain.job import TargetKind
from spotwright.domain.job_run import JobRun, JobState, Progress
from spotwright.domain.planned_run import PlannedRun
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.report_progress import ProgressLog
from spotwright.usecases.stop_job import stop_job
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_job_run import after, job_run, plan_record, planned_run

JOB = "resnet-1"


class Reports:
    """A job and the log of its progress."""

    def __init__(self, kind: TargetKind = TargetKind.SAMPLES, value: float = 100_000.0) -> None:
        self.store = MemoryJobStore()
        self.store.add_plan(plan_record())
        self.store.add_job(job_run(JOB), [])
        planned = PlannedRuns(self.store, lambda _: planned_run(kind, value))
        self.log = ProgressLog(self.store, planned)
        self.time_s = 0.0

    def report(self, *, request_id: str = "", **progress: float) -> JobRun:
        return self.take(Progress(**progress), request_id=request_id)

    def take(self, progress: Progress, *, request_id: str = "") -> JobRun:
        self.time_s += 10
        return self.log.report(JOB, progress, request_id=request_id, now=after(self.time_s))

    def kinds(self) -> list[str]:
        return [event.kind for event in self.store.events(JOB, limit=100)]


def test_the_first_report_starts_the_job() -> None:
    reports = Reports()

    job = reports.report(samples=0.0)

    assert (job.state, job.start_time, job.progress_fraction) == (JobState.RUNNING, after(10), 0.0)
    assert reports.kinds() == ["job-started"]


def test_the_goal_ends_the_job_and_is_logged_with_its_figures() -> None:
    reports = Reports()
    reports.report(samples=50_000.0)

    job = reports.report(samples=100_000.0, loss=0.25)

    assert (job.state, job.end_time, job.progress_fraction) == (JobState.SUCCEEDED, after(20), 1.0)
    assert job.start_time == after(10)
    assert reports.kinds() == ["job-started", "goal-reached"]
    assert reports.store.events(JOB, limit=9)[-1].facts == {"samples": "100000", "loss": "0.25"}


def test_a_job_may_reach_its_goal_with_its_first_report() -> None:
    reports = Reports(TargetKind.LOSS, 0.5)

    assert reports.report(loss=0.4).state is JobState.SUCCEEDED
    assert reports.kinds() == ["job-started", "goal-reached"]


def test_counts_never_run_backwards_and_a_late_loss_is_not_the_latest() -> None:
    reports = Reports()
    reports.report(samples=50_000.0, steps=500.0, loss=0.7)

    job = reports.report(samples=49_900.0, steps=499.0, loss=0.9)

    assert job.progress == Progress(samples=50_000.0, steps=500.0, loss=0.7)
    assert job.progress_fraction == 0.5
    assert reports.kinds() == ["job-started"]


def test_training_that_fell_back_is_logged_once_until_it_has_caught_up() -> None:
    reports = Reports()
    for samples in (50_000.0, 30_000.0, 35_000.0, 60_000.0, 40_000.0):
        reports.report(samples=samples)

    assert reports.kinds() == ["job-started", "progress-fell-back", "progress-fell-back"]
    assert reports.store.job(JOB).progress.samples == 60_000.0


def test_what_one_report_leaves_out_stays_as_it_was() -> None:
    reports = Reports()
    reports.report(samples=10.0)
    reports.report(loss=2.0)

    assert reports.report(steps=3.0).progress == Progress(samples=10.0, steps=3.0, loss=2.0)


def test_the_same_report_sent_again_counts_once() -> None:
    reports = Reports()
    first = reports.report(samples=10.0, request_id="r1")

    assert reports.report(samples=10.0, request_id="r1") == first
    assert reports.kinds() == ["job-started"]


@pytest.mark.parametrize(
    ("progress", "problem"),
    [
        (Progress(), "samples, steps or loss"),
        (Progress(samples=-1.0), "samples"),
        (Progress(steps=float("inf")), "steps"),
        (Progress(loss=float("nan")), "loss"),
    ],
)
def test_figures_that_no_training_has_are_refused(progress: Progress, problem: str) -> None:
    reports = Reports()

    with pytest.raises(BadInputError, match=problem):
        reports.take(progress)
    assert reports.store.job(JOB).state is JobState.PENDING


def test_a_job_that_has_ended_takes_no_progress() -> None:
    reports = Reports()
    stop_job(JOB, reports.store, reason="", request_id="", who="ada", now=after(5))

    with pytest.raises(JobEndedError, match="stopped"):
        reports.report(samples=10.0)


def test_progress_of_an_unknown_job_is_an_error() -> None:
    reports = Reports()

    with pytest.raises(NotFoundError, match="no job 'other'"):
        reports.log.report("other", Progress(steps=1.0), request_id="", now=after(1))


def test_a_plan_is_read_from_the_store_once() -> None:
    store, reads = MemoryJobStore(), list[bytes]()
    store.add_plan(replace(plan_record(), document=b"the plan"))

    def read(document: bytes) -> PlannedRun:
        reads.append(document)
        return planned_run()

    planned = PlannedRuns(store, read)

    assert planned.of("plan-1") is planned.of("plan-1")
    assert reads == [b"the plan"]
