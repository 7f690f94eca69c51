"""JobService: plans being carried out."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime

import grpc

from spotwright.adapters.grpc.access.callers import current_principal
from spotwright.adapters.grpc.jobs.job_watch import JobWatches
from spotwright.adapters.grpc.messages.job import (
    event_to_proto,
    job_to_proto,
    progress_from_proto,
    report_to_proto,
    state_from_proto,
    steer_from_proto,
)
from spotwright.adapters.grpc.names import checked
from spotwright.adapters.grpc.pages import page_size_of, start_of, start_token
from spotwright.domain.access import AccessRole, Principal
from spotwright.domain.errors import BadInputError, NotAllowedError
from spotwright.domain.job_run import Event, JobRun, JobState, Steer
from spotwright.usecases.job_ports import JobServiceStore
from spotwright.usecases.job_report import report_job
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.report_progress import ProgressLog
from spotwright.usecases.start_job import start_job
from spotwright.usecases.stop_job import stop_job
from spotwright.v1 import job_pb2, job_pb2_grpc

_JOBS_PAGE, _EVENTS_PAGE = 50, 100
_LONGEST_REASON = 2000


class JobService(job_pb2_grpc.JobServiceServicer):
    """Answers on the event loop; the store is asked in threads."""

    def __init__(
        self,
        store: JobServiceStore,
        planned: PlannedRuns,
        watches: JobWatches,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        has_fleets: bool = False,
        created: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Serve jobs.

        Args:
            store: where they are.
            planned: what their plans promise.
            watches: who watches them.
            clock: the time now.
            has_fleets: fleets can be written and applied here.
            created: told of jobs that are new.
        """
        self._store, self._planned, self._watches, self._clock = store, planned, watches, clock
        self._has_fleets, self._created = has_fleets, created
        self._progress = ProgressLog(store, planned)

    async def CreateJob(  # noqa: N802
        self, request: job_pb2.CreateJobRequest, _context: grpc.aio.ServicerContext
    ) -> job_pb2.CreateJobResponse:
        """Start to follow a job that runs a plan."""
        job = await asyncio.to_thread(
            start_job,
            checked("plan_id", request.plan_id),
            self._store,
            self._store,
            request_id=checked("request_id", request.request_id),
            who=current_principal.get().name,
            now=self._clock(),
            steer=self._steer(request.steer_mode),
        )
        self._created(job.job_id)
        return job_pb2.CreateJobResponse(job=job_to_proto(job))

    async def GetJob(  # noqa: N802
        self, request: job_pb2.GetJobRequest, _context: grpc.aio.ServicerContext
    ) -> job_pb2.GetJobResponse:
        """Return one job."""
        job = await asyncio.to_thread(self._store.job, checked("job_id", request.job_id))
        return job_pb2.GetJobResponse(job=job_to_proto(job))

    async def ListJobs(  # noqa: N802
        self, request: job_pb2.ListJobsRequest, _context: grpc.aio.ServicerContext
    ) -> job_pb2.ListJobsResponse:
        """Return a page of jobs, newest first."""
        limit = page_size_of(request.page_size, usual=_JOBS_PAGE)
        jobs = await asyncio.to_thread(
            self._store.jobs,
            states=[_state(number) for number in request.states],
            after=start_of(request.page_token),
            limit=limit + 1,
        )
        page, more = jobs[:limit], len(jobs) > limit
        token = start_token(page[-1].create_time, page[-1].job_id) if more else ""
        return job_pb2.ListJobsResponse(
            jobs=[job_to_proto(job) for job in page], next_page_token=token
        )

    async def ListJobEvents(  # noqa: N802
        self, request: job_pb2.ListJobEventsRequest, _context: grpc.aio.ServicerContext
    ) -> job_pb2.ListJobEventsResponse:
        """Return what happened to a job, oldest first."""
        job_id = checked("job_id", request.job_id)
        limit = page_size_of(request.page_size, usual=_EVENTS_PAGE)
        events = await asyncio.to_thread(
            self._events, job_id, max(0, request.after_sequence), limit
        )
        return job_pb2.ListJobEventsResponse(events=[event_to_proto(event) for event in events])

    async def WatchJob(  # noqa: N802
        self, request: job_pb2.WatchJobRequest, context: grpc.aio.ServicerContext
    ) -> None:
        """Stream a job and its events until it has ended.

        Written by hand and not yielded, so that a call that is cancelled ends here and at once.
        """
        job_id = checked("job_id", request.job_id)
        watch = self._watches.watch(job_id, after_sequence=request.after_sequence)
        async with aclosing(watch) as updates:
            async for update in updates:
                await context.write(_update(update))

    async def ReportProgress(  # noqa: N802
        self, request: job_pb2.ReportProgressRequest, _context: grpc.aio.ServicerContext
    ) -> job_pb2.ReportProgressResponse:
        """Take how far training has come."""
        job = await asyncio.to_thread(self._report, request, current_principal.get())
        self._watches.changed(job.job_id)
        return job_pb2.ReportProgressResponse(job=job_to_proto(job))

    async def StopJob(  # noqa: N802
        self, request: job_pb2.StopJobRequest, _context: grpc.aio.ServicerContext
    ) -> job_pb2.StopJobResponse:
        """End a job before its goal."""
        job = await asyncio.to_thread(
            stop_job,
            checked("job_id", request.job_id),
            self._store,
            reason=checked("reason", request.reason, longest=_LONGEST_REASON),
            request_id=checked("request_id", request.request_id),
            who=current_principal.get().name,
            now=self._clock(),
        )
        self._watches.changed(job.job_id)
        return job_pb2.StopJobResponse(job=job_to_proto(job))

    async def GetJobReport(  # noqa: N802
        self, request: job_pb2.GetJobReportRequest, _context: grpc.aio.ServicerContext
    ) -> job_pb2.GetJobReportResponse:
        """Set what was planned against what was measured."""
        job_id = checked("job_id", request.job_id)
        report = await asyncio.to_thread(
            report_job, job_id, self._store, self._planned, now=self._clock()
        )
        return report_to_proto(report)

    def _steer(self, number: int) -> Steer:
        steer = steer_from_proto(number)
        if steer is None:
            raise BadInputError(f"steer_mode: {number} is none")
        if steer in (Steer.WRITE, Steer.APPLY) and not self._has_fleets:
            raise BadInputError(
                f"this daemon has no folder for fleets, so it cannot {steer} them: start it with "
                "`spotwright serve --fleets DIR`, or start the job with --steer announce"
            )
        return steer

    def _events(self, job_id: str, after_sequence: int, limit: int) -> list[Event]:
        self._store.job(job_id)  # a job that is not there is an error, and not an empty log
        return list(self._store.events(job_id, after_sequence=after_sequence, limit=limit))

    def _report(self, request: job_pb2.ReportProgressRequest, caller: Principal) -> JobRun:
        job_id = checked("job_id", request.job_id)
        request_id = checked("request_id", request.request_id)
        if caller.role is AccessRole.AGENT:
            self._check_works_for(caller.name, job_id)
        progress = progress_from_proto(request.progress)
        return self._progress.report(job_id, progress, request_id=request_id, now=self._clock())

    def _check_works_for(self, agent_id: str, job_id: str) -> None:
        own = self._store.agent(agent_id).facts.job_id
        if own != job_id:
            raise NotAllowedError(
                f"agent {agent_id} works for {own or 'no job'} and reports for that alone; it "
                f"asked to report for {job_id}"
            )


def _state(number: int) -> JobState:
    state = state_from_proto(number)
    if state is None:
        raise BadInputError(f"states: {number} is no state of a job")
    return state


def _update(update: JobRun | Event) -> job_pb2.WatchJobResponse:
    if isinstance(update, Event):
        return job_pb2.WatchJobResponse(event=event_to_proto(update))
    return job_pb2.WatchJobResponse(job=job_to_proto(update))
