"""What a controller notices about the terms of a job's steps."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.domain.job_run import NewEvent
from spotwright.domain.live_term import LiveTerm
from spotwright.usecases.follow_job import Followed, Memory


def follow_terms(terms: Sequence[LiveTerm], *, now: datetime, memory: Memory) -> Followed:
    """Return bottlenecks that came and went; what cannot be measured now stays as it was."""
    told = {
        (term.instance_type, term.term): term
        for term in terms
        if term.term != "step" and term.measured_s is not None
    }
    slow = {name for name, term in told.items() if term.is_bottleneck}
    gone = (memory.bottlenecks & told.keys()) - slow
    events = [
        *(_found_event(told[name], now) for name in sorted(slow - memory.bottlenecks)),
        *(_gone_event(told[name], now) for name in sorted(gone)),
    ]
    return Followed(events, replace(memory, bottlenecks=(memory.bottlenecks | slow) - gone))


def _found_event(term: LiveTerm, now: datetime) -> NewEvent:
    figures = {
        "planned_s": term.planned_s,
        "measured_s": term.measured_s,
        "planned_mbps": term.planned_mbps,
        "measured_mbps": term.measured_mbps,
    }
    told = {name: f"{value:.6g}" for name, value in figures.items() if value is not None}
    return NewEvent(time=now, kind="bottleneck-found", text=term.text, facts=_name_of(term) | told)


def _gone_event(term: LiveTerm, now: datetime) -> NewEvent:
    return NewEvent(
        time=now,
        kind="bottleneck-gone",
        text=f"{term.term} term as predicted again on {term.instance_type} pool",
        facts=_name_of(term),
    )


def _name_of(term: LiveTerm) -> dict[str, str]:
    return {"instance_type": term.instance_type, "term": term.term}
