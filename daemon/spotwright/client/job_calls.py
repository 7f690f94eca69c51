"""Calls about jobs."""

from collections.abc import Collection
from typing import NamedTuple
from uuid import uuid4

from spotwright.adapters.grpc.messages.job import (
    event_from_proto,
    job_from_proto,
    progress_to_proto,
    report_from_proto,
    state_to_proto,
    steer_to_proto,
)
from spotwright.client.calls import Call, StreamCall
from spotwright.domain.job_run import Event, JobRun, JobState, Progress, Steer
from spotwright.usecases.job_report import JobReport
from spotwright.v1 import job_pb2

_SERVICE = "/spotwright.v1.JobService"


class JobPage(NamedTuple):
    """Some jobs of a list, and where the rest goes on; empty at its end."""

    jobs: list[JobRun]
    next_page_token: str


def create_job(
    plan_id: str, *, request_id: str | None = None, steer: Steer = Steer.OFF
) -> Call[JobRun]:
    """Start to follow a job that runs a plan."""
    return Call(
        method=f"{_SERVICE}/CreateJob",
        request=job_pb2.CreateJobRequest(
            request_id=request_id or _new_id(), plan_id=plan_id, steer_mode=steer_to_proto(steer)
        ),
        response=job_pb2.CreateJobResponse,
        read=_job,
    )


def get_job(job_id: str) -> Call[JobRun]:
    """Ask for one job."""
    return Call(
        method=f"{_SERVICE}/GetJob",
        request=job_pb2.GetJobRequest(job_id=job_id),
        response=job_pb2.GetJobResponse,
        read=_job,
    )


def list_jobs(
    *, states: Collection[JobState] = (), page_size: int = 0, page_token: str = ""
) -> Call[JobPage]:
    """Ask for jobs, newest first."""
    numbers = [state_to_proto(state) for state in states]
    return Call(
        method=f"{_SERVICE}/ListJobs",
        request=job_pb2.ListJobsRequest(states=numbers, page_size=page_size, page_token=page_token),
        response=job_pb2.ListJobsResponse,
        read=_page,
    )


def list_job_events(
    job_id: str, *, after_sequence: int = 0, page_size: int = 0
) -> Call[list[Event]]:
    """Ask for what happened to a job, oldest first."""
    return Call(
        method=f"{_SERVICE}/ListJobEvents",
        request=job_pb2.ListJobEventsRequest(
            job_id=job_id, after_sequence=after_sequence, page_size=page_size
        ),
        response=job_pb2.ListJobEventsResponse,
        read=lambda response: [event_from_proto(event) for event in response.events],
    )


def watch_job(job_id: str, *, after_sequence: int = 0) -> StreamCall[JobRun | Event]:
    """Ask for a job, then its events and changes until it has ended."""
    return StreamCall(
        method=f"{_SERVICE}/WatchJob",
        request=job_pb2.WatchJobRequest(job_id=job_id, after_sequence=after_sequence),
        response=job_pb2.WatchJobResponse,
        read=_update,
    )


def report_progress(
    job_id: str, progress: Progress, *, request_id: str | None = None
) -> Call[JobRun]:
    """Tell how far training has come."""
    return Call(
        method=f"{_SERVICE}/ReportProgress",
        request=job_pb2.ReportProgressRequest(
            request_id=request_id or _new_id(),
            job_id=job_id,
            progress=progress_to_proto(progress),
        ),
        response=job_pb2.ReportProgressResponse,
        read=_job,
    )


def stop_job(job_id: str, *, reason: str = "", request_id: str | None = None) -> Call[JobRun]:
    """End a job before its goal."""
    return Call(
        method=f"{_SERVICE}/StopJob",
        request=job_pb2.StopJobRequest(
            request_id=request_id or _new_id(), job_id=job_id, reason=reason
        ),
        response=job_pb2.StopJobResponse,
        read=_job,
    )


def get_job_report(job_id: str) -> Call[JobReport]:
    """Ask for what was planned against what was measured."""
    return Call(
        method=f"{_SERVICE}/GetJobReport",
        request=job_pb2.GetJobReportRequest(job_id=job_id),
        response=job_pb2.GetJobReportResponse,
        read=report_from_proto,
    )


def _new_id() -> str:
    return uuid4().hex


def _job(
    response: job_pb2.CreateJobResponse
    | job_pb2.GetJobResponse
    | job_pb2.ReportProgressResponse
    | job_pb2.StopJobResponse,
) -> JobRun:
    return job_from_proto(response.job)


def _page(response: job_pb2.ListJobsResponse) -> JobPage:
    return JobPage([job_from_proto(job) for job in response.jobs], response.next_page_token)


def _update(response: job_pb2.WatchJobResponse) -> JobRun | Event:
    if response.WhichOneof("update") == "event":
        return event_from_proto(response.event)
    return job_from_proto(response.job)
