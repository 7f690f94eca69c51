"""JobService as its callers see it, over a real connection."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import grpc
import pytest

from spotwright.client import job_calls as calls
from spotwright.client.calls import Call
from spotwright.domain.access import AccessRole, Principal
from spotwright.domain.errors import BadInputError, NotAllowedError, SpotwrightError
from spotwright.domain.job_run import JobRun, JobState, NewEvent, Progress, Steer
from spotwright.v1 import job_pb2
from tests.adapters.grpc.jobs.job_daemon import JobDaemon, job_daemon
from tests.adapters.grpc.planning.example_plan import kept_plan, plan_message
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_job_run import START, after, agent_record, job_run

ADA = Principal(name="ada", role=AccessRole.PLANNER)


def with_daemon(test: Callable[[JobDaemon, MemoryJobStore], Awaitable[None]]) -> None:
    async def run() -> None:
        store = MemoryJobStore()
        store.add_plan(kept_plan())
        async with job_daemon(store) as daemon:
            daemon.guard.caller = ADA
            await test(daemon, store)

    asyncio.run(run())


def test_a_job_goes_from_its_plan_to_its_goal() -> None:
    async def test(daemon: JobDaemon, _store: MemoryJobStore) -> None:
        run = daemon.client.run
        created = await run(calls.create_job("plan-1"))
        assert (created.state, created.plan_id) == (JobState.PENDING, "plan-1")

        halfway = await run(calls.report_progress(created.job_id, Progress(samples=50_000.0)))
        assert (halfway.state, halfway.progress_fraction) == (JobState.RUNNING, 0.5)

        done = await run(calls.report_progress(created.job_id, Progress(samples=1e5, loss=0.1)))
        assert done.state is JobState.SUCCEEDED
        assert await run(calls.get_job(created.job_id)) == done
        events = await run(calls.list_job_events(created.job_id))
        assert [e.kind for e in events] == ["job-created", "job-started", "goal-reached"]
        assert events[0].facts["who"] == "ada"
        report = await run(calls.get_job_report(created.job_id))
        planned = {line.figure: line.planned for line in report.lines}
        assert (planned["duration_s"], planned["cost_usd"]) == (3600.0, 3.60)

    with_daemon(test)


def test_a_daemon_without_a_folder_for_fleets_announces_and_writes_nothing() -> None:
    async def test(daemon: JobDaemon, _store: MemoryJobStore) -> None:
        run = daemon.client.run
        created = await run(calls.create_job("plan-1", steer=Steer.ANNOUNCE))
        assert created.course.steer is Steer.ANNOUNCE
        (event,) = await run(calls.list_job_events(created.job_id))
        assert event.facts["steer"] == "announce"

        for steer in (Steer.WRITE, Steer.APPLY):
            with pytest.raises(BadInputError, match=f"cannot {steer} them.*--fleets DIR"):
                await run(calls.create_job("plan-1", steer=steer))

    with_daemon(test)


def test_requests_sent_again_change_nothing() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        run = daemon.client.run
        created = [await run(calls.create_job("plan-1", request_id="c")) for _ in range(2)]
        job_id = created[0].job_id
        progress = Progress(steps=1.0)
        told = [
            await run(calls.report_progress(job_id, progress, request_id="p")) for _ in range(2)
        ]
        stopped = [
            await run(calls.stop_job(job_id, reason="enough", request_id="s")) for _ in range(2)
        ]

        assert created[0] == created[1]
        assert told[0] == told[1]
        assert stopped[0] == stopped[1]
        assert [event.kind for event in store.events(job_id, limit=9)] == [
            "job-created",
            "job-started",
            "job-stopped",
        ]

    with_daemon(test)


def test_jobs_are_listed_newest_first_page_by_page_and_by_state() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        for i in range(7):
            state = JobState.RUNNING if i % 2 else JobState.PENDING
            job = replace(job_run(f"job-{i}", state=state), create_time=after(i // 2))
            store.add_job(job, [])

        assert await _listed(daemon, page_size=3) == [
            ["job-6", "job-4", "job-5"],
            ["job-2", "job-3", "job-0"],
            ["job-1"],
        ]
        assert await _listed(daemon, page_size=7) == [[f"job-{i}" for i in (6, 4, 5, 2, 3, 0, 1)]]
        running = await daemon.client.run(calls.list_jobs(states=[JobState.RUNNING]))
        assert [job.job_id for job in running.jobs] == ["job-5", "job-3", "job-1"]

    with_daemon(test)


async def _listed(daemon: JobDaemon, *, page_size: int) -> list[list[str]]:
    pages, token = [], ""
    while True:
        page = await daemon.client.run(calls.list_jobs(page_size=page_size, page_token=token))
        pages.append([job.job_id for job in page.jobs])
        token = page.next_page_token
        if not token:
            return pages


def test_events_go_on_after_the_one_that_was_named() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        events = [NewEvent(time=START, kind=f"kind-{i}", text="") for i in range(5)]
        store.add_job(job_run("job"), events)

        found = await daemon.client.run(calls.list_job_events("job", after_sequence=2, page_size=2))

        assert [(event.sequence, event.kind) for event in found] == [(3, "kind-2"), (4, "kind-3")]

    with_daemon(test)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (calls.create_job("plan-9"), "NOT_FOUND"),
        (calls.create_job("plan\x00"), "BAD_INPUT"),
        (calls.create_job("plan-1", request_id="r" * 201), "BAD_INPUT"),
        (calls.get_job(""), "NOT_FOUND"),
        (calls.list_job_events("other"), "NOT_FOUND"),
        (calls.get_job_report("other"), "NOT_FOUND"),
        (calls.stop_job("other"), "NOT_FOUND"),
        (calls.stop_job("ended"), "JOB_ENDED"),
        (calls.report_progress("ended", Progress(steps=1.0)), "JOB_ENDED"),
        (calls.report_progress("ended", Progress()), "BAD_INPUT"),
        (calls.list_jobs(page_size=-1), "BAD_INPUT"),
        (calls.list_jobs(page_token="nonsense"), "BAD_INPUT"),
        (calls.list_jobs(page_token="MDAwMS0wMS0wMSBqb2I="), "BAD_INPUT"),
    ],
)
def test_what_cannot_be_answered_says_why(call: Call[object], reason: str) -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        store.add_job(replace(job_run("ended"), state=JobState.STOPPED), [])
        with pytest.raises(BadInputError) as told:
            await daemon.client.run(call)
        assert told.value.reason == reason

    with_daemon(test)


def test_a_state_that_nobody_knows_is_refused() -> None:
    async def test(daemon: JobDaemon, _store: MemoryJobStore) -> None:
        call = replace(
            calls.list_jobs(), request=job_pb2.ListJobsRequest.FromString(b"\x1a\x01\x63")
        )
        with pytest.raises(SpotwrightError, match="99 is no state"):
            await daemon.client.run(call)

    with_daemon(test)


def test_an_agent_reports_for_the_job_that_it_works_for_and_for_no_other() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        store.add_job(job_run("mine"), [])
        store.add_job(job_run("other"), [])
        store.agent_records["gpu-1"] = agent_record("gpu-1", job_id="mine")
        daemon.guard.caller = Principal(name="gpu-1", role=AccessRole.AGENT)

        told = await daemon.client.run(calls.report_progress("mine", Progress(steps=1.0)))
        assert told.state is JobState.RUNNING
        with pytest.raises(NotAllowedError, match="gpu-1 works for mine"):
            await daemon.client.run(calls.report_progress("other", Progress(steps=1.0)))
        assert store.job("other").state is JobState.PENDING

    with_daemon(test)


def test_a_goal_of_loss_is_reached_by_loss() -> None:
    async def run() -> JobRun:
        store = MemoryJobStore()
        store.add_plan(kept_plan(plan_message(loss=0.5)))
        store.add_job(job_run("job"), [])
        async with job_daemon(store) as daemon:
            tell = daemon.client.run
            far = await tell(calls.report_progress("job", Progress(steps=990.0, loss=0.51)))
            assert (far.state, far.progress_fraction) == (JobState.RUNNING, 0.99)
            return await tell(calls.report_progress("job", Progress(steps=995.0, loss=0.5)))

    assert asyncio.run(run()).state is JobState.SUCCEEDED


def test_a_fault_of_ours_is_internal_and_tells_no_secrets() -> None:
    async def run() -> None:
        store = MemoryJobStore()
        store.add_plan(replace(kept_plan(), document=b"\xff not a plan"))
        store.add_job(job_run("job"), [])
        async with job_daemon(store) as daemon:
            with pytest.raises(SpotwrightError, match="its log says why"):
                await daemon.client.run(calls.get_job_report("job"))
        # Counted after the answer has gone out: for sure once the daemon has ended.
        assert daemon.statuses[-1] == ("GetJobReport", grpc.StatusCode.INTERNAL.name)

    asyncio.run(run())
