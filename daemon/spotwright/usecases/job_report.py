"""Set what was planned against what was measured.

Time counts from the first progress reported. Until a job has ended, what it will have taken is
expected from its share of the goal: duration = elapsed / fraction. Costs are what its ledger says,
from the first sighting of a node, and expected to go on as they did since the start; where no agent
was ever seen, they are the rent of the planned fleet. What cannot be told is absent.

Work that was done and lost again cost its share of the time and money of all work since the start:
lost / (reached + lost).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from spotwright.domain.accounts import JobAccounts
from spotwright.domain.job_run import Event, JobRun
from spotwright.domain.live_term import LiveTerm
from spotwright.domain.planned_run import PlannedRun
from spotwright.usecases.account_job import Records, account_job, lost_fraction
from spotwright.usecases.follow_job import remember
from spotwright.usecases.job_memory import all_events
from spotwright.usecases.job_ports import AgentReader, ReportStore
from spotwright.usecases.live_terms import live_terms
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.rented_spans import spent_usd
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
class Measured:
    """What was found out about a job besides its progress."""

    step_s: float | None = None
    accounts: JobAccounts | None = None
    lost_fraction: float | None = 0.0  # of the goal; None: cannot be told


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """A job and how it keeps to its plan."""

    job: JobRun
    lines: tuple[ReportLine, ...]
    terms: tuple[LiveTerm, ...] = ()
    accounts: JobAccounts | None = None  # None: from a daemon that keeps none


def report_job(
    job_id: str, store: ReportStore, planned: PlannedRuns, *, now: datetime
) -> JobReport:
    """Report on a job, or raise NotFoundError."""
    job = store.job(job_id)
    promised, events = planned.of(job.first_plan_id), list(all_events(job_id, store))
    records = Records(store.ledger(job_id), events, store.progress_marks(job_id))
    accounts = account_job(job, promised, records, now=now)
    measured = Measured(
        step_s=_measured_step_s(job, store, now),
        accounts=accounts,
        lost_fraction=lost_fraction(promised, events),
    )
    return JobReport(
        job=job,
        lines=report_lines(job, promised, measured, now=now),
        terms=_terms(job, planned.of(job.plan_id), store, events, now),
        accounts=accounts,
    )


def _terms(
    job: JobRun, planned: PlannedRun, store: ReportStore, events: Sequence[Event], now: datetime
) -> tuple[LiveTerm, ...]:
    """Return the terms of the job's latest minutes."""
    end = job.end_time or now
    since = end - timedelta(seconds=WINDOW_S)
    agents = store.agents(job_id=job.job_id, seen_since=since, limit=MOST_AGENTS)
    known = remember(events).bottlenecks
    return live_terms(planned, recent_steps(agents, store, end=end), known=known)


def report_lines(
    job: JobRun, planned: PlannedRun, measured: Measured, *, now: datetime
) -> tuple[ReportLine, ...]:
    """Return each figure as planned and as measured."""
    elapsed_s = _elapsed_s(job, now)
    duration_s = _duration_s(job, elapsed_s)
    costs = _costs(job, planned, measured.accounts, elapsed_s=elapsed_s, duration_s=duration_s)
    lost_share = _lost_share(job, measured.lost_fraction)
    return tuple(
        ReportLine(figure=figure, planned=plan, measured=found)
        for figure, plan, found in (
            ("progress_fraction", _planned_fraction(planned, elapsed_s), job.progress_fraction),
            ("elapsed_s", None, elapsed_s),
            ("duration_s", planned.duration_s, duration_s),
            ("deadline_s", planned.deadline_s, None),
            ("cost_so_far_usd", None, costs.so_far_usd),
            ("cost_usd", planned.cost_usd, costs.whole_usd),
            ("lost_work_s", None, _product(lost_share, elapsed_s)),
            ("lost_work_cost_usd", None, _product(lost_share, costs.since_start_usd)),
            ("samples_per_s", planned.samples_per_s, _rate(job.progress.samples, elapsed_s)),
            ("step_s", planned.step_s, measured.step_s),
        )
    )


class _Costs(NamedTuple):
    """What was spent; None: cannot be told."""

    so_far_usd: float | None
    since_start_usd: float | None
    whole_usd: float | None  # when the job has ended


def _costs(
    job: JobRun,
    planned: PlannedRun,
    accounts: JobAccounts | None,
    *,
    elapsed_s: float | None,
    duration_s: float | None,
) -> _Costs:
    """Return the costs by the ledger, or else the rent of the planned fleet."""
    if accounts is None or not accounts.timeline:
        rent_usd = _rent_usd(planned, elapsed_s)
        return _Costs(rent_usd, rent_usd, _rent_usd(planned, duration_s))
    spent = accounts.spent_usd
    if spent is None or not elapsed_s:
        return _Costs(spent, None, None)
    since_start = spent_usd(accounts.timeline, since=job.start_time)
    if duration_s is None:
        return _Costs(spent, since_start, None)
    to_come = since_start / elapsed_s * (duration_s - elapsed_s)
    return _Costs(spent, since_start, spent + to_come)


def _lost_share(job: JobRun, lost: float | None) -> float | None:
    """Return the share of all work since the start that was done in vain."""
    if job.start_time is None or lost is None or job.progress_fraction is None:
        return None
    return lost / (job.progress_fraction + lost) if lost else 0.0


def _product(share: float | None, whole: float | None) -> float | None:
    return None if share is None or whole is None else share * whole


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
