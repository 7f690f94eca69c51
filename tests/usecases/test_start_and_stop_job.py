import pytest

from spotwright.domain.errors import JobEndedError, NotFoundError
from spotwright.domain.job_run import JobRun, JobState
from spotwright.usecases.start_job import start_job
from spotwright.usecases.stop_job import stop_job
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_job_run import START, after, plan_record


@pytest.fixture
def store() -> MemoryJobStore:
    store = MemoryJobStore()
    store.add_plan(plan_record())
    return store


def start(store: MemoryJobStore, *, request_id: str = "", plan_id: str = "plan-1") -> JobRun:
    return start_job(plan_id, store, store, request_id=request_id, who="ada", now=START)


def test_a_new_job_waits_for_progress_and_its_log_says_who_started_it(
    store: MemoryJobStore,
) -> None:
    job = start(store)

    (event,) = store.events(job.job_id, limit=9)
    assert (job.state, job.start_time, job.create_time) == (JobState.PENDING, None, START)
    assert (event.kind, event.facts) == ("job-created", {"plan_id": "plan-1", "who": "ada"})


def test_ids_tell_the_name_of_the_job_and_differ(store: MemoryJobStore) -> None:
    ids = {start(store).job_id for _ in range(50)}

    assert len(ids) == 50
    assert all(job_id.startswith("r-snet-50-long-") for job_id in ids)


def test_the_same_request_makes_one_job(store: MemoryJobStore) -> None:
    assert start(store, request_id="r") == start(store, request_id="r")
    assert len(store.jobs(limit=9)) == 1


def test_a_job_needs_a_plan(store: MemoryJobStore) -> None:
    with pytest.raises(NotFoundError, match="no plan 'plan-2'"):
        start(store, plan_id="plan-2")


def test_a_stopped_job_says_who_stopped_it_and_why(store: MemoryJobStore) -> None:
    job_id = start(store).job_id

    job = stop_job(job_id, store, reason="too dear", request_id="", who="eve", now=after(60))

    event = store.events(job_id, limit=9)[-1]
    assert (job.state, job.end_time) == (JobState.STOPPED, after(60))
    assert (event.kind, event.text) == ("job-stopped", "eve stopped the job: too dear")
    assert event.facts == {"who": "eve", "reason": "too dear"}


def test_a_job_ends_once_and_the_same_request_again_is_no_error(store: MemoryJobStore) -> None:
    job_id = start(store).job_id
    first = stop_job(job_id, store, reason="", request_id="s", who="eve", now=after(1))

    assert stop_job(job_id, store, reason="", request_id="s", who="eve", now=after(2)) == first
    with pytest.raises(JobEndedError, match="has ended"):
        stop_job(job_id, store, reason="", request_id="t", who="eve", now=after(3))
