"""Values to keep, with names that nobody had before."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import uuid4

from spotwright.domain.job_run import JobRun, JobState, NewEvent, PlanRecord
from spotwright.domain.telemetry import (
    RESOLUTIONS_S,
    AgentFacts,
    AgentNotice,
    BatchKey,
    NetworkProbe,
    ReceivedBatch,
    RollupPart,
    Statistic,
    merge_parts,
)

T = TypeVar("T")
TIME = datetime(2026, 11, 17, 12, 30, 15, 123_456, tzinfo=UTC)
START_UNIX_S = 1_800_000_000  # a whole minute


def unused(kind: str) -> str:
    return f"{kind}-{uuid4().hex[:12]}"


def new_plan(*, job_name: str = "resnet50", minutes: float = 0.0) -> PlanRecord:
    return PlanRecord(
        plan_id=unused("plan"),
        job_name=job_name,
        create_time=TIME + timedelta(minutes=minutes),
        status="optimal",
        cost_usd=12.25,
        duration_s=3600.5,
        document=b'{"cost_usd": 12.25}\x00\xff',
        job_text="name: resnet50\n",
        job_path="jobs/résnet50.yaml",
        model="resnet50",
    )


def new_job(*, minutes: float = 0.0, state: JobState = JobState.PENDING) -> JobRun:
    time = TIME + timedelta(minutes=minutes)
    return JobRun(
        job_id=unused("job"),
        name="resnet50",
        plan_id="plan-1",
        state=state,
        create_time=time,
        update_time=time,
    )


def happened(kind: str = "job-created", **facts: str) -> NewEvent:
    return NewEvent(time=TIME, kind=kind, text=f"{kind} happened", facts=facts)


def new_agent(*, boot_id: str = "boot-1", job_id: str = "", agent_id: str = "") -> AgentFacts:
    return AgentFacts(
        agent_id=agent_id or unused("agent"),
        boot_id=boot_id,
        agent_version="0.1.0",
        hostname="ip-10-0-0-1",
        instance_type="g5.xlarge",
        zone="use1-az1",
        market="spot",
        job_id=job_id,
        gpu_names=("A10G",),
    )


def new_batch(
    facts: AgentFacts,
    sequence: int,
    *,
    at_s: float = 0.0,
    values: Iterable[tuple[float, str, float]] = (),
    notices: tuple[AgentNotice, ...] = (),
    probes: tuple[NetworkProbe, ...] = (),
) -> ReceivedBatch:
    """Make a batch received `at_s` after START; values are (seconds after START, figure, value)."""
    receive_ms = round((START_UNIX_S + at_s) * 1000)
    samples = list(values) or [(at_s, "cpu_fraction", 0.5)]
    return ReceivedBatch(
        key=BatchKey(facts.agent_id, facts.boot_id, sequence),
        job_id=facts.job_id,
        receive_unix_ms=receive_ms,
        first_unix_ms=round((START_UNIX_S + min(s[0] for s in samples)) * 1000),
        last_unix_ms=round((START_UNIX_S + max(s[0] for s in samples)) * 1000),
        clock_skew_s=-0.25,
        document=f"batch {sequence}".encode(),
        parts=tuple(merge_parts(_part(sample) for sample in samples)),
        latest_sample=f"sample {sequence}".encode(),
        notices=notices,
        probes=probes,
    )


def _part(sample: tuple[float, str, float]) -> RollupPart:
    after_s, figure, value = sample
    finest_s = RESOLUTIONS_S[0]
    start = int(START_UNIX_S + after_s) // finest_s * finest_s
    return RollupPart(
        start_unix_s=start, host_sample_count=1, statistics={figure: Statistic.of(value)}
    )


def in_threads(count: int, work: Callable[[int], T]) -> list[T]:
    """Run work(0), work(1), ... at the same time."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, range(count)))
