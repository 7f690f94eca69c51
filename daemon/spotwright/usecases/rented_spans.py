"""From sightings to what was rented.

An instance that was silent and is back under the same instance_id was rented all the time: clouds
never give an id twice. What is still seen at the end of the accounts runs until then.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.domain.accounts import NodeSpan
from spotwright.domain.ledger import SILENCE, LedgerEntry


def accounts_end(
    entries: Sequence[LedgerEntry], *, job_end: datetime | None, now: datetime
) -> datetime:
    """Return until when accounts go: the job's end, the last sighting if it is fresh, or now."""
    if job_end is not None:
        return job_end
    last = max((entry.end_time for entry in entries), default=now)
    return min(last, now) if now - last <= SILENCE else now


def rented_spans(entries: Iterable[LedgerEntry], *, until: datetime) -> tuple[NodeSpan, ...]:
    """Return what was rented until some time, by start, ties by agent."""
    by_agent: dict[str, list[LedgerEntry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.start_time):
        if entry.start_time <= until:
            by_agent[entry.agent_id].append(entry)
    spans = [span for own in by_agent.values() for span in _agent_spans(own, until)]
    return tuple(sorted(spans, key=lambda span: (span.start_time, span.agent_id)))


def spent_usd(spans: Iterable[NodeSpan], *, since: datetime | None = None) -> float:
    """Return what was paid for all that has a price, from some time on."""
    return sum(
        span.price_usd_per_hour * _hours_since(span, since)
        for span in spans
        if span.price_usd_per_hour is not None
    )


def below_fraction(
    spans: Iterable[NodeSpan], *, node_count: int, start: datetime, end: datetime
) -> float | None:
    """Return the share of a time in which fewer nodes than so many ran; None for no time."""
    if end <= start:
        return None
    steps: list[tuple[datetime, int]] = [(start, 0), (end, 0)]
    for span in spans:
        first, last = max(span.start_time, start), min(span.end_time, end)
        if first < last:
            steps += [(first, 1), (last, -1)]
    steps.sort(key=lambda step: step[0])
    running, below_s, before = 0, 0.0, start
    for time, change in steps:
        if running < node_count:
            below_s += (time - before).total_seconds()
        running, before = running + change, time
    return below_s / (end - start).total_seconds()


def _agent_spans(entries: Sequence[LedgerEntry], until: datetime) -> list[NodeSpan]:
    spans: list[NodeSpan] = []
    for entry in entries:
        span = _span(entry, until)
        spans += _joined(spans.pop(), span) if spans else [span]
    if until - spans[-1].end_time <= SILENCE:
        spans[-1] = replace(spans[-1], end_time=until, is_running=True)
    return spans


def _span(entry: LedgerEntry, until: datetime) -> NodeSpan:
    return NodeSpan(
        agent_id=entry.agent_id,
        instance_id=entry.instance_id,
        pool=entry.pool,
        start_time=entry.start_time,
        end_time=min(entry.end_time, until),
        price_usd_per_hour=entry.price_usd_per_hour,
        is_running=False,
    )


def _joined(before: NodeSpan, span: NodeSpan) -> list[NodeSpan]:
    """Return two spans of one agent as what was rented: no overlap, and no false gap."""
    is_same = span.instance_id == before.instance_id
    goes_on = is_same and (span.instance_id != "" or span.start_time <= before.end_time)
    same_rent = (span.pool, span.price_usd_per_hour) == (before.pool, before.price_usd_per_hour)
    if goes_on and same_rent:
        return [replace(before, end_time=max(before.end_time, span.end_time))]
    if goes_on:
        before = replace(before, end_time=span.start_time)
    start = max(span.start_time, before.end_time)
    return [before, replace(span, start_time=start, end_time=max(start, span.end_time))]


def _hours_since(span: NodeSpan, since: datetime | None) -> float:
    start = span.start_time if since is None else max(span.start_time, since)
    return max(0.0, (span.end_time - start).total_seconds()) / 3600
