"""Set what was planned against what was measured.

Time counts from the first progress reported. Until a job has ended, what it will have taken is
expected from its share of the goal: duration = elapsed / fraction. Costs are the rent of the
planned fleet for that time. What cannot be told yet is absent.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from spotwright.domain.job_run import JobRun
from spotwright.domain.live_term import LiveTerm
from spotwright.domain.planned_run import PlannedRun
from spotwright.usecases.job_memory import remembered
from spotwright.usecases.job_ports import AgentReader, ReportStore
from spotwright.usecases.live_terms import live_terms
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.watch_terms import MOST_AGENTS, WINDOW_S, recent_steps

_STEP_WINDOW_S = 600
_STEP_RESOLUTION_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLine:
    """One figure; None where nothing was planned, or nothing measured yet."""

    figure: str  # with its unit
    planned: float | None
    measured: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """A job and how it keeps to its plan."""

    job: JobRun
    lines: tuple[ReportLine, ...]
    terms: tuple[LiveTerm, ...] = ()


def report_job(
    job_id: str, store: ReportStore, planned: PlannedRuns, *, now: datetime
) -> JobReport:
    """Report on a job, or raise NotFoundError."""
    job = store.job(job_id)
    step_s = _measured_step_s(job, store, now)
    return JobReport(
        job=job,
        lines=report_lines(job, planned.of(job.first_plan_id), step_s, now=now),
        terms=_terms(job, planned.of(job.plan_id), store, now),
    )


def _terms(
    job: JobRun, planned: PlannedRun, store: ReportStore, now: datetime
) -> tuple[LiveTerm, ...]:
    """Return the terms of the job's latest minutes."""
    end = job.end_time or now
    since = end - timedelta(seconds=WINDOW_S)
    agents = store.agents(job_id=job.job_id, seen_since=since, limit=MOST_AGENTS)
    known = remembered(job.job_id, store).bottlenecks
    return live_terms(planned, recent_steps(agents, store, end=end), known=known)


def report_lines(
    job: JobRun, planned: PlannedRun, step_s: float | None, *, now: datetime
) -> tuple[ReportLine, ...]:
    """Return each figure as planned and as measured."""
    elapsed_s = _elapsed_s(job, now)
    duration_s = _duration_s(job, elapsed_s)
    return tuple(
        ReportLine(figure=figure, planned=plan, measured=measured)
        for figure, plan, measured in (
            ("progress_fraction", _planned_fraction(planned, elapsed_s), job.progress_fraction),
            ("elapsed_s", None, elapsed_s),
            ("duration_s", planned.duration_s, duration_s),
            ("cost_so_far_usd", None, _rent_usd(planned, elapsed_s)),
            ("cost_usd", planned.cost_usd, _rent_usd(planned, duration_s)),
            ("samples_per_s", planned.samples_per_s, _rate(job.progress.samples, elapsed_s)),
            ("step_s", planned.step_s, step_s),
        )
    )


def _elapsed_s(job: JobRun, now: datetime) -> float | None:
    if job.start_time is None:
        return None
    return max(0.0, ((job.end_time or now) - job.start_time).total_seconds())


def _duration_s(job: JobRun, elapsed_s: float | None) -> float | None:
    if elapsed_s is None or job.state.has_ended:
        return elapsed_s
    return elapsed_s / job.progress_fraction if elapsed_s and job.progress_fraction else None


def _planned_fraction(planned: PlannedRun, elapsed_s: float | None) -> float | None:
    if elapsed_s is None or not planned.duration_s:
        return None
    return min(1.0, elapsed_s / planned.duration_s)


def _rent_usd(planned: PlannedRun, duration_s: float | None) -> float | None:
    if duration_s is None or planned.rent_usd_per_hour is None:
        return None
    return planned.rent_usd_per_hour * duration_s / 3600


def _rate(count: float | None, elapsed_s: float | None) -> float | None:
    return count / elapsed_s if count is not None and elapsed_s else None


def _measured_step_s(job: JobRun, store: AgentReader, now: datetime) -> float | None:
    """Return the mean step of the job's agents in its latest minutes."""
    end = job.end_time or now
    end_unix_s, since = int(end.timestamp()) + 1, end - timedelta(seconds=_STEP_WINDOW_S)
    step_count, total_s = 0, 0.0
    for agent in store.agents(job_id=job.job_id, seen_since=since, limit=MOST_AGENTS):
        parts = store.rollups(
            agent.facts.agent_id,
            resolution_s=_STEP_RESOLUTION_S,
            start_unix_s=end_unix_s - _STEP_WINDOW_S,
            end_unix_s=end_unix_s,
            limit=_STEP_WINDOW_S // _STEP_RESOLUTION_S + 1,
        )
        steps = [part.statistics["step_s"] for part in parts if "step_s" in part.statistics]
        step_count += sum(step.value_count for step in steps)
        total_s += sum(step.total for step in steps)
    return total_s / step_count if step_count else None
