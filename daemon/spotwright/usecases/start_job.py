"""Start to follow a job that runs a plan."""

import re
from datetime import datetime
from secrets import token_hex

from spotwright.domain.job_run import JobCourse, JobRun, JobState, NewEvent, Steer
from spotwright.usecases.store_ports import JobStore, PlanStore

_LONGEST_STEM = 40  # of a job's name within its id


def start_job(
    plan_id: str,
    plans: PlanStore,
    jobs: JobStore,
    *,
    request_id: str,
    who: str,
    now: datetime,
    steer: Steer = Steer.OFF,
) -> JobRun:
    """Keep a new job; the same request again returns the job that it made.

    Raises:
        NotFoundError: no such plan.
    """
    plan = plans.plan(plan_id)
    job = JobRun(
        job_id=_new_id(plan.job_name),
        name=plan.job_name,
        plan_id=plan_id,
        state=JobState.PENDING,
        create_time=now,
        update_time=now,
        course=JobCourse(steer=steer),
    )
    created = NewEvent(
        time=now,
        kind="job-created",
        text=f"{who} started the job on plan {plan_id}",
        facts={"plan_id": plan_id, "who": who}
        | ({"steer": steer} if steer is not Steer.OFF else {}),
    )
    return jobs.add_job(job, [created], request_id=request_id)


def _new_id(name: str) -> str:
    """Return an id that tells people which job it is, and that nobody else has."""
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST_STEM].rstrip("-")
    return f"{stem or 'job'}-{token_hex(5)}"
