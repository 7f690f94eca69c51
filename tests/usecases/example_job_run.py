"""A job on a plan of 100,000 samples in 1,000 steps, an hour long, for $3.60 an hour."""

from datetime import UTC, datetime, timedelta

from spotwright.domain.job import Target, TargetKind
from spotwright.domain.job_run import JobRun, JobState, PlanRecord
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.telemetry import AgentFacts, AgentRecord

START = datetime(2026, 11, 18, 9, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def planned_run(
    kind: TargetKind = TargetKind.SAMPLES,
    value: float = 100_000.0,
    *,
    deadline_s: float | None = 7200.0,
) -> PlannedRun:
    return PlannedRun(
        target=Target(kind=kind, value=value),
        steps_to_goal=1_000.0,
        samples_to_goal=100_000.0,
        duration_s=3600.0,
        cost_usd=3.60,
        rent_usd_per_hour=3.60,
        samples_per_s=27.8,
        step_s=3.6,
        deadline_s=deadline_s,
    )


def plan_record(plan_id: str = "plan-1", *, document: bytes = b"") -> PlanRecord:
    return PlanRecord(
        plan_id=plan_id,
        job_name="Résnet 50 / long",
        create_time=START,
        status="optimal",
        cost_usd=3.60,
        duration_s=3600.0,
        document=document,
        job_text="name: resnet",
        job_path="job.yaml",
        model="",
    )


def job_run(job_id: str = "resnet-1", *, state: JobState = JobState.PENDING) -> JobRun:
    return JobRun(
        job_id=job_id,
        name="resnet",
        plan_id="plan-1",
        state=state,
        create_time=START,
        update_time=START,
        start_time=None if state is JobState.PENDING else START,
    )


def agent_record(
    agent_id: str, *, job_id: str = "resnet-1", last_seen: datetime | None = START
) -> AgentRecord:
    return AgentRecord(
        facts=AgentFacts(agent_id=agent_id, boot_id="boot", job_id=job_id),
        session_id="session",
        replica="a",
        last_seen=last_seen,
        clock_skew_s=0.0,
        last_sequence=1,
        dropped_sample_count=0,
        latest_sample=None,
        latest_step=None,
        notice=None,
        faults=None,
    )
