"""What every store must do with jobs and their events."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from spotwright.domain.errors import NotFoundError
from spotwright.domain.job_run import (
    Forecast,
    JobCourse,
    JobRun,
    JobState,
    NewEvent,
    Progress,
    Steer,
)
from spotwright.domain.prediction import Interval
from spotwright.usecases.store_ports import Lease, PageStart, Store
from tests.contracts.store_values import TIME, happened, in_threads, new_job, new_plan, unused


class JobStoreContract:
    """Tests that a subclass inherits."""

    def test_a_job_comes_back_as_it_was_kept(self, store: Store) -> None:
        job = replace(
            new_job(state=JobState.RUNNING),
            start_time=TIME,
            end_time=TIME + timedelta(microseconds=1),
            progress=Progress(samples=1e12, steps=3.5, loss=0.1),
            progress_fraction=1 / 3,
            controller="replica-1",
        )

        assert store.add_job(job, []) == job
        assert store.job(job.job_id) == job
        assert store.events(job.job_id, limit=10) == []

    def test_the_course_of_a_job_comes_back_as_it_was_kept(self, store: Store) -> None:
        course = JobCourse(
            steer=Steer.APPLY,
            first_plan_id="plan-0",
            begun_fraction=1 / 3,
            begun=Progress(samples=12.5, steps=0.0),
            spent_usd=0.1,
            spent_until=TIME + timedelta(microseconds=7),
            forecast=Forecast(duration_s=Interval(1.0, 2.5, 3.0), cost_usd=None),
            notes='{"move": "wait", "wörd": null}',
        )
        job = store.add_job(replace(new_job(), course=course), [])
        priced = replace(
            course, forecast=Forecast(duration_s=Interval(0, 0, 9), cost_usd=Interval(1, 2, 3))
        )

        assert store.job(job.job_id).course == course
        assert job.first_plan_id == "plan-0"
        store.change_job(job.job_id, lambda job: (replace(job, course=priced), []))
        assert store.job(job.job_id).course == priced

    def test_a_job_nobody_started_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="no job 'job-0'"):
            store.job("job-0")
        with pytest.raises(NotFoundError, match="no job 'job-0'"):
            store.change_job("job-0", lambda job: (job, []))

    def test_events_are_numbered_from_one_and_come_oldest_first(self, store: Store) -> None:
        job = store.add_job(new_job(), [happened("first", gpu="A10G"), happened("second")])
        store.change_job(job.job_id, lambda job: (job, [happened("third")]))

        events = store.events(job.job_id, limit=10)

        assert [(e.sequence, e.kind) for e in events] == [(1, "first"), (2, "second"), (3, "third")]
        assert (events[0].facts, events[0].time) == ({"gpu": "A10G"}, TIME)
        assert store.events(job.job_id, after_sequence=1, limit=1) == [events[1]]

    def test_the_same_request_starts_one_job(self, store: Store) -> None:
        request_id, first = unused("request"), new_job()
        store.add_job(first, [happened()], request_id=request_id)

        assert store.add_job(new_job(), [happened()], request_id=request_id) == first
        assert len(store.events(first.job_id, limit=10)) == 1

    def test_a_request_id_of_a_plan_a_job_and_a_change_do_not_clash(self, store: Store) -> None:
        request_id, plan, job = unused("request"), new_plan(), new_job()

        assert store.add_plan(plan, request_id=request_id) == plan
        assert store.add_job(job, [], request_id=request_id) == job
        store.change_job(job.job_id, _stopped, request_id=request_id)
        assert store.job(job.job_id).state is JobState.STOPPED

    def test_a_change_is_carried_out_once_for_a_request(self, store: Store) -> None:
        job, request_id = store.add_job(new_job(), []), unused("request")

        for _ in range(3):
            changed = store.change_job(job.job_id, _stopped, request_id=request_id)

        assert changed == store.job(job.job_id) == replace(job, state=JobState.STOPPED)
        assert len(store.events(job.job_id, limit=10)) == 1

    def test_what_a_change_raises_is_raised_and_nothing_is_kept(self, store: Store) -> None:
        job, request_id = store.add_job(new_job(), []), unused("request")

        def fail(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.change_job(job.job_id, fail, request_id=request_id)

        assert store.job(job.job_id) == job
        store.change_job(job.job_id, _stopped, request_id=request_id)
        assert store.job(job.job_id).state is JobState.STOPPED

    def test_changes_at_once_lose_nothing_and_leave_no_gap_in_the_log(
        self, store: Store, other: Store
    ) -> None:
        job = store.add_job(replace(new_job(), progress=Progress(steps=0.0)), [])

        def count(worker: int) -> None:
            for _ in range(10):
                (store, other)[worker % 2].change_job(job.job_id, _one_step_more)

        in_threads(6, count)

        assert store.job(job.job_id).progress.steps == 60.0
        events = store.events(job.job_id, limit=1000)
        assert [event.sequence for event in events] == list(range(1, 61))

    def test_a_change_under_a_lease_is_made_by_its_owner_alone(
        self, store: Store, other: Store
    ) -> None:
        job, lease = store.add_job(new_job(), []), unused("lease")
        other.acquire_lease(lease, "b", ttl_s=60)

        before = store.change_job(job.job_id, _stopped, under=Lease(lease, "a"))
        after = store.change_job(job.job_id, _stopped, under=Lease(lease, "b"))

        assert (before.state, after.state) == (JobState.PENDING, JobState.STOPPED)
        assert len(store.events(job.job_id, limit=9)) == 1

    def test_a_change_under_a_lease_that_ran_out_is_not_made(self, store: Store) -> None:
        job, lease = store.add_job(new_job(), []), unused("lease")
        store.acquire_lease(lease, "a", ttl_s=-1.0)

        assert store.change_job(job.job_id, _stopped, under=Lease(lease, "a")) == job

    def test_pages_of_jobs_hold_each_once_newest_first_with_ties_by_name(
        self, store: Store
    ) -> None:
        made = [new_job(minutes=minutes) for minutes in (1, 2, 2, 2, 3)]
        for job in made:
            store.add_job(job, [])
        names = {job.job_id for job in made}

        listed: list[JobRun] = []
        after = None
        while page := store.jobs(after=after, limit=2):
            listed += page
            after = PageStart(page[-1].create_time, page[-1].job_id)

        mine = [job for job in listed if job.job_id in names]
        assert mine == sorted(made, key=lambda job: (-job.create_time.timestamp(), job.job_id))
        assert len(listed) == len({job.job_id for job in listed})

    def test_jobs_are_listed_by_state(self, store: Store) -> None:
        made = {state: store.add_job(new_job(state=state), []).job_id for state in JobState}
        asked = {JobState.RUNNING, JobState.PENDING}

        found = store.jobs(states=asked, limit=1000)

        assert {job.state for job in found} == asked
        assert {made[state] for state in asked} <= {job.job_id for job in found}


def _stopped(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
    return replace(job, state=JobState.STOPPED), [happened("job-stopped")]


def _one_step_more(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
    steps = (job.progress.steps or 0.0) + 1
    return replace(job, progress=Progress(steps=steps)), [happened("step")]
