"""What a controller sees of one job's fleet in one look, and what it makes of it.

A look changes nothing: it returns the course of the job and what to remember, for the controller to
keep while the job is still its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from spotwright.domain.job import Goal, Target, TargetKind
from spotwright.domain.job_run import JobCourse, JobRun, JobState, NewEvent, Steer
from spotwright.domain.offer import Market
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.steering import JobNow, JobView, NodeState, Trigger
from spotwright.domain.steering_question import JobFacts
from spotwright.domain.telemetry import AgentRecord
from spotwright.domain.units import format_duration
from spotwright.usecases.advise_checkpoints import (
    agents_of,
    checkpoint_interval_s,
    is_news,
    newly_leaving,
)
from spotwright.usecases.forecast_job import PaceMeter, forecast_job, spent
from spotwright.usecases.steering_memory import SteeringMemory
from spotwright.usecases.steering_notes import SteeringNotes
from spotwright.usecases.steering_rules import SteeringRules
from spotwright.usecases.view_job import Seen, usd_per_hour, view_job
from spotwright.usecases.watch_fleet import Watched, is_too_early, watch_fleet

_KEEP_S = 60.0  # between two writes of what goes on by itself
# Notices and the start are in the log already; that time has passed is no news.
_SILENT = {
    Trigger.STARTED,
    Trigger.INTERRUPTION_NOTICE,
    Trigger.REBALANCE_HINT,
    Trigger.CHECK_DUE,
}
_TEXTS = {
    Trigger.NODE_LOST: "a node is gone",
    Trigger.SHORT_GRANT: "fewer nodes than asked for, for too long",
    Trigger.CAPACITY_BACK: "a pool that had failed may be asked again",
    Trigger.DRIFT: "training is faster or slower than planned",
    Trigger.PRICE_CHANGE: "prices have changed",
    Trigger.DEADLINE_AT_RISK: "at this speed the deadline will be missed",
    Trigger.CEILING_REACHED: "at this rent the budget will not do",
}


class Promise(NamedTuple):
    """What was promised."""

    current: PlannedRun  # by the plan that a job runs
    first: PlannedRun  # by the one that it started with


class Moment(NamedTuple):
    """When a look is made, by the daemon's clock."""

    now: datetime
    up_since: datetime  # the daemon has listened since then


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Something to tell training about checkpoints."""

    agent_ids: tuple[str, ...]
    interval_s: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What came of a look."""

    course: JobCourse
    notes: SteeringNotes
    events: Sequence[NewEvent] = ()
    keep: bool = False  # not only what goes on by itself
    savings: tuple[Saving, ...] = ()
    due: "Due | None" = None  # a decision is needed now


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A decision that is needed, and how the job stood then."""

    job: JobRun
    view: JobView
    now: JobNow
    forced: bool
    triggers: tuple[Trigger, ...] = field(default=())


def look_at_fleet(
    job: JobRun,
    promise: Promise,
    agents: Sequence[AgentRecord],
    *,
    notes: SteeringNotes,
    meter: PaceMeter,
    rules: SteeringRules,
    moment: Moment,
) -> Looked:
    """Look at a job.

    Args:
        job: one that has not ended.
        promise: what it is held against.
        agents: those that work for it.
        notes: from the look before.
        meter: that measures its speed.
        rules: when something counts.
        moment: when.
    """
    if job.state is not JobState.RUNNING:
        return Looked(course=job.course, notes=notes)
    planned, now = promise.current, moment.now
    is_old = _is_old(job.course, now)
    whole = view_job(
        job,
        planned,
        agents,
        now=now,
        up_since=moment.up_since,
        leaving_until=notes.leaving_until,
    )
    pace = meter.measured(job, planned, now=now, is_whole=_is_whole(whole.view))
    prices = {**planned.prices_usd_per_hour, **notes.prices_usd_per_hour}
    notes = replace(notes, prices_usd_per_hour=prices)
    course = spent(job.course, usd_per_hour(whole.hosts, planned, prices), now=now)
    job = replace(job, course=course)
    forecast = forecast_job(job, planned, now=now, pace_factor=pace)
    course = replace(course, forecast=forecast)
    job = replace(job, course=course)
    looked = Looked(course=course, notes=notes, keep=is_old)
    if course.steer is Steer.OFF or not planned.workers:
        return looked
    view = replace(
        whole.view,
        pace_factor=pace,
        spent_usd=course.spent_usd or 0.0,
        prices_usd_per_hour=prices,
    )
    if _is_still_starting(view, notes.memory, rules):
        return looked
    return _steered(looked, job, whole._replace(view=view), promise, rules, now)


def _is_whole(view: JobView) -> bool:
    training = sum(node.state is not NodeState.STARTING for node in view.nodes)
    return not view.asked or training >= sum(view.asked.values())


def _is_old(course: JobCourse, now: datetime) -> bool:
    """Tell whether what is kept of a job is so old that it is written again."""
    until = course.spent_until
    return until is None or (now - until).total_seconds() >= _KEEP_S


def _is_still_starting(view: JobView, memory: SteeringMemory, rules: SteeringRules) -> bool:
    """Tell whether a fleet is only just being rented, and nothing is wrong with it yet."""
    if memory.time_s is not None or view.time_s >= rules.grant_timeout_s:
        return False
    leaving = any(node.state is NodeState.LEAVING for node in view.nodes)
    return not leaving and len(view.nodes) < sum(view.asked.values())


def _steered(
    looked: Looked,
    job: JobRun,
    seen: Seen,
    promise: Promise,
    rules: SteeringRules,
    now: datetime,
) -> Looked:
    notes, view, planned = looked.notes, seen.view, promise.current
    facts = notes.facts or JobFacts(
        spot_pools=frozenset(p for p in planned.workers if p.market is Market.SPOT)
    )
    watched = watch_fleet(
        view,
        notes.memory,
        goal=_goal(promise.first, facts),
        rules=rules,
        spot_pools=facts.spot_pools,
    )
    savings, interval_s = _savings(seen, notes, watched.memory, facts, planned, rules, now)
    pending = tuple(dict.fromkeys((*notes.pending, *watched.triggers)))
    forced = notes.forced or bool(watched.triggers and watched.forced)
    kept = replace(
        notes,
        memory=watched.memory,
        pending=pending,
        forced=forced and bool(pending),
        leaving_until=seen.leaving_until,
        interval_s=interval_s,
    )
    changed = pending != notes.pending or bool(savings)
    return replace(
        looked,
        notes=kept,
        events=[*_events(watched.triggers, view, now), *_advice_events(kept, notes, now)],
        keep=looked.keep or changed or {*kept.memory.nodes} != {*notes.memory.nodes},
        savings=savings,
        due=_due(job, view, watched, kept, rules),
    )


def _due(
    job: JobRun, view: JobView, watched: Watched, notes: SteeringNotes, rules: SteeringRules
) -> Due | None:
    asks = watched._replace(forced=notes.forced)
    if not notes.pending or is_too_early(asks, rules):
        return None
    return Due(job=job, view=view, now=watched.now, forced=notes.forced, triggers=notes.pending)


def _goal(first: PlannedRun, facts: JobFacts) -> Goal:
    target = first.target or Target(kind=TargetKind.SAMPLES, value=first.samples_to_goal)
    return Goal(target=target, deadline_s=first.deadline_s, budget_usd=facts.budget_usd)


def _savings(
    seen: Seen,
    notes: SteeringNotes,
    memory: SteeringMemory,
    facts: JobFacts,
    planned: PlannedRun,
    rules: SteeringRules,
    now: datetime,
) -> tuple[tuple[Saving, ...], float | None]:
    """Return what training is told of checkpoints, and the interval that it then knows."""
    hosts = {host.node_id: host for host in seen.hosts}
    found = []
    states = {node.node_id: node.state for node in seen.view.nodes}
    leaving = newly_leaving(states, notes.memory.nodes) if rules.save_on_notice else []
    for node_id in leaving:
        until = seen.leaving_until.get(node_id)
        concerned = hosts if facts.stops_as_one else {node_id: hosts[node_id]}
        found.append(
            Saving(
                agent_ids=tuple(agents_of(concerned)),
                seconds_left=None if until is None else max(0.0, until - now.timestamp()),
            )
        )
    interval_s = None
    if facts.checkpoint_s is not None and facts.stops_as_one:
        interval_s = checkpoint_interval_s(
            facts.checkpoint_s,
            planned_per_hour=planned.interruptions_per_hour,
            weather=memory.weather,
        )
    if not is_news(interval_s, notes.interval_s):
        new = {name: hosts[name] for name in states.keys() - notes.memory.nodes.keys()}
        if new and notes.interval_s is not None:
            found.append(Saving(agent_ids=tuple(agents_of(new)), interval_s=notes.interval_s))
        return tuple(found), notes.interval_s
    found.append(Saving(agent_ids=tuple(agents_of(hosts)), interval_s=interval_s))
    return tuple(found), interval_s


def _events(triggers: Sequence[Trigger], view: JobView, now: datetime) -> list[NewEvent]:
    return [
        NewEvent(
            time=now,
            kind=trigger,
            text=_TEXTS[trigger],
            facts={"node_count": str(len(view.nodes)), "asked": str(sum(view.asked.values()))},
        )
        for trigger in triggers
        if trigger not in _SILENT
    ]


def _advice_events(kept: SteeringNotes, before: SteeringNotes, now: datetime) -> Iterator[NewEvent]:
    interval_s = kept.interval_s
    if interval_s is not None and interval_s != before.interval_s:
        yield NewEvent(
            time=now,
            kind="checkpoint-advice",
            text=f"training is told to save its state every {format_duration(interval_s)}",
            facts={"interval_s": f"{interval_s:.6g}"},
        )
