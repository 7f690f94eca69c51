"""Account for a job: what it rented, what that cost, what happened, how far it came."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from spotwright.domain.accounts import (
    EventCount,
    EventMark,
    JobAccounts,
    ProgressPoint,
)
from spotwright.domain.job_run import Event, JobRun, Progress
from spotwright.domain.ledger import LedgerEntry, ProgressMark
from spotwright.domain.planned_run import PlannedRun
from spotwright.usecases.account_pools import account_pools
from spotwright.usecases.rented_spans import accounts_end, rented_spans, spent_usd

_MOST_MARKS = 500  # the latest events; more cannot be told apart in a chart
_DAILY_KINDS = {
    *("job-created", "controller-changed", "checkpoint-advice"),
    *("network-probed", "network-probe-failed"),
}
_FELL_BACK = "progress-fell-back"


class Records(NamedTuple):
    """What is known of a job besides the job itself."""

    entries: Sequence[LedgerEntry]
    events: Sequence[Event]
    marks: Sequence[ProgressMark]


def account_job(
    job: JobRun, planned: PlannedRun, records: Records, *, now: datetime
) -> JobAccounts:
    """Return the accounts of a job."""
    until = accounts_end(records.entries, job_end=job.end_time, now=now)
    spans = rented_spans(records.entries, until=until)
    counts = Counter(event.kind for event in records.events)
    return JobAccounts(
        until=until,
        pools=account_pools(
            planned, spans, records.events, training=(job.start_time or until, until)
        ),
        timeline=spans,
        event_counts=tuple(EventCount(kind=k, event_count=n) for k, n in sorted(counts.items())),
        marks=tuple(_event_marks(records.events)),
        progress=tuple(_progress(job, records.marks, until)),
        priced_usd=spent_usd(spans),
        unpriced_node_hours=sum(s.node_hours for s in spans if s.price_usd_per_hour is None),
    )


def lost_fraction(planned: PlannedRun, events: Iterable[Event]) -> float | None:
    """Return how much of the goal was reached and lost again; None where that cannot be told."""
    lost = 0.0
    for event in events:
        if event.kind == _FELL_BACK:
            reached = planned.fraction(_told_progress(event, "reached_"))
            restored = planned.fraction(_told_progress(event, ""))
            if reached is None or restored is None:
                return None
            lost += max(0.0, reached - restored)
    return lost


def _told_progress(event: Event, prefix: str) -> Progress:
    told = {name: event.facts.get(f"{prefix}{name}") for name in ("samples", "steps")}
    return Progress(**{name: float(text) for name, text in told.items() if text is not None})


def _event_marks(events: Sequence[Event]) -> list[EventMark]:
    shown = [event for event in events if event.kind not in _DAILY_KINDS]
    return [
        EventMark(time=event.time, kind=event.kind, text=event.text)
        for event in shown[-_MOST_MARKS:]
    ]


def _progress(
    job: JobRun, marks: Sequence[ProgressMark], until: datetime
) -> Iterable[ProgressPoint]:
    """Yield how far the job had come, from its start to now."""
    if job.start_time is None:
        return
    yield ProgressPoint(time=job.start_time, fraction=0.0)
    between = [mark for mark in marks if job.start_time < mark.time < until]
    for mark in between:
        yield ProgressPoint(time=mark.time, fraction=mark.fraction)
    if job.progress_fraction is not None and until > job.start_time:
        yield ProgressPoint(time=until, fraction=job.progress_fraction)
