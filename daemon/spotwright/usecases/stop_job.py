"""End a job before its goal."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.domain.errors import JobEndedError
from spotwright.domain.job_run import JobRun, JobState, NewEvent
from spotwright.usecases.store_ports import JobStore


def stop_job(
    job_id: str, jobs: JobStore, *, reason: str, request_id: str, who: str, now: datetime
) -> JobRun:
    """Stop a job; the same request again changes nothing.

    Raises:
        NotFoundError: no such job.
        JobEndedError: it has ended already.
    """

    def stopped(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
        if job.state.has_ended:
            raise JobEndedError(job_id, state=job.state)
        why = f": {reason}" if reason else ""
        event = NewEvent(
            time=now,
            kind="job-stopped",
            text=f"{who} stopped the job{why}",
            facts={"who": who, "reason": reason},
        )
        ended = replace(job, state=JobState.STOPPED, end_time=now, update_time=now, controller="")
        return ended, [event]

    return jobs.change_job(job_id, stopped, request_id=request_id)
