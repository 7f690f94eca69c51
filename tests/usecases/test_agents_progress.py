from dataclasses import replace

from spotwright.domain.job_run import JobRun, JobState, Progress
from spotwright.domain.telemetry import StepSums
from spotwright.domain.workload import Strategy
from spotwright.usecases.agents_progress import agents_progress
from spotwright.usecases.report_progress import ProgressLog
from tests.usecases.example_job_run import after
from tests.usecases.test_control_jobs import Cluster

FAST = StepSums(step_count=30, last_step=40, samples=300.0, loss=0.5)
SLOW = StepSums(step_count=10, last_step=12, samples=100.0, loss=0.9)


def test_steps_of_asynchronous_workers_add_up() -> None:
    assert agents_progress([FAST, SLOW], Strategy.ASP_PS) == Progress(
        steps=40.0, samples=400.0, loss=0.5
    )


def test_the_largest_step_of_synchronous_workers_counts_for_all() -> None:
    assert agents_progress([SLOW, FAST], Strategy.ALLREDUCE) == Progress(steps=40.0, loss=0.5)


def test_samples_that_not_all_workers_tell_are_not_added_up() -> None:
    found = agents_progress([FAST, StepSums(step_count=1, last_step=1)], Strategy.ASP_PS)

    assert found == Progress(steps=31.0, loss=0.5)


def test_a_job_whose_agents_see_steps_starts_goes_on_and_reaches_its_goal() -> None:
    cluster = Cluster()
    store, replica = cluster.store, cluster.replica("a")
    store.change_job("job-0", lambda job: (_pending(job), ()))
    cluster.let_pass(5, replica)
    assert store.job("job-0").state is JobState.PENDING

    for steps in (100, 500, 1_000):
        store.step_sums["job-0"] = [StepSums(step_count=1, last_step=steps)]
        cluster.let_pass(20, replica)

    job = store.job("job-0")
    assert (job.state, job.progress.steps, job.progress_fraction) == (
        JobState.SUCCEEDED,
        1_000.0,
        1.0,
    )
    assert len(cluster.told("job-started")) == len(cluster.told("goal-reached")) == 1
    assert not replica.controlled_jobs


def test_what_training_reports_itself_is_not_overruled_by_its_agents() -> None:
    cluster = Cluster()
    store, replica = cluster.store, cluster.replica("a")
    log = ProgressLog(store, cluster.planned)
    log.report("job-0", Progress(steps=10.0), request_id="", now=after(0))
    store.step_sums["job-0"] = [StepSums(step_count=1, last_step=900)]

    cluster.let_pass(60, replica)

    assert store.job("job-0").progress == Progress(steps=10.0)


def _pending(job: JobRun) -> JobRun:
    return replace(job, state=JobState.PENDING, start_time=None)
