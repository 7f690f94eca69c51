"""What a controller sees of one job's fleet in one look, and what it makes of it.

A look changes nothing: it returns the course of the job and what to remember, for the controller to
keep while the job is still its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from spotwright.domain.job import Goal, Target, TargetKind
from spotwright.domain.job_run import Forecast, JobCourse, JobRun, NewEvent, Steer
from spotwright.domain.offer import Market, Pool
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.shrunk import Part, ShrunkHost
from spotwright.domain.steering import JobNow, JobView, NodeState, Trigger
from spotwright.domain.steering_question import JobFacts
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases.advise_checkpoints import (
    Advised,
    Saving,
    advice_events,
    agents_of,
    savings_of,
)
from spotwright.usecases.carry_out import SAVING_S
from spotwright.usecases.fleet_events import (
    notices,
    price_events,
    trigger_events,
    unseen_event,
)
from spotwright.usecases.forecast_job import forecast_job, spent
from spotwright.usecases.shrunk_nodes import shrunk_nodes
from spotwright.usecases.standing_fleet import Meters, planned_share
from spotwright.usecases.steering_memory import SteeringMemory, counted_from_later
from spotwright.usecases.steering_notes import Asked, SteeringNotes, notes_text
from spotwright.usecases.steering_rules import SteeringRules
from spotwright.usecases.view_job import (
    Seen,
    hosts_of,
    rented,
    silent_nodes,
    unpriced,
    usd_per_hour,
    view_job,
)
from spotwright.usecases.watch_fleet import Watched, is_too_early, short_since, watch_fleet

_KEEP_S = 60.0  # between two writes of what goes on by itself
_MOVED_FRACTION = 0.05  # of a forecast, which is then written at once


class Promise(NamedTuple):
    """What was promised."""

    current: PlannedRun  # by the plan that a job runs
    first: PlannedRun  # by the one that it started with


class Heard(NamedTuple):
    """What is heard of the hosts of a job."""

    agents: Sequence[AgentRecord]  # that work for it
    shrunk: Mapping[Part, ShrunkHost]  # what has become less


class Moment(NamedTuple):
    """When a look is made, by the daemon's clock."""

    now: datetime
    up_since: datetime  # the daemon has listened since then


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What came of a look."""

    course: JobCourse
    notes: SteeringNotes
    events: Sequence[NewEvent] = ()
    announced: Sequence[NewEvent] = ()  # that are in the log already, and were told to nobody
    keep: bool = False  # not only what goes on by itself
    savings: tuple[Saving, ...] = ()
    due: "Due | None" = None  # a decision is needed now
    going: tuple[str, ...] = ()  # nodes that are lost or will be taken: those first

    @property
    def course_with_notes(self) -> JobCourse:
        """The course as it is kept with the job."""
        return replace(self.course, notes=notes_text(self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A decision that is needed, and how the job stood then."""

    job: JobRun
    view: JobView
    now: JobNow
    forced: bool
    triggers: tuple[Trigger, ...]
    look: int  # that found it due
    since_unix_s: float  # its times are counted from then


def look_at_fleet(
    job: JobRun,
    promise: Promise,
    heard: Heard,
    *,
    notes: SteeringNotes,
    meters: Meters,
    rules: SteeringRules,
    moment: Moment,
) -> Looked:
    """Look at a job.

    Args:
        job: one that has not ended.
        promise: what it is held against.
        heard: of its hosts.
        notes: from the look before.
        meters: that measure its speed.
        rules: when something counts.
        moment: when.
    """
    agents, shrunk = heard
    hosts = hosts_of(agents, now=moment.now, up_since=moment.up_since)
    since = _since(job, notes, moment.now, is_rented=bool(hosts))
    if job.state.has_ended or since is None:
        return Looked(course=job.course, notes=notes)
    seen = view_job(
        replace(job, start_time=since),
        promise.current,
        agents,
        now=moment.now,
        up_since=moment.up_since,
        leaving_until=notes.leaving_until,
        starting_since=notes.starting_since,
    )
    seen = seen._replace(view=replace(seen.view, shrunk=shrunk_nodes(seen, shrunk)))
    look = _Look(job=job, promise=promise, rules=rules, now=moment.now)
    notes = replace(notes, looks=notes.looks + 1, starting_since=seen.starting_since)
    notes = _counted_from(since, notes)
    looked, seen = look.followed(seen, notes, meters)
    is_over = notes.carried.give_back_unix_s is not None
    if job.course.steer is Steer.OFF or not promise.current.workers or is_over:
        return looked
    if job.start_time is not None and not seen.was_seen:
        return look.unseen(seen.view, looked)
    looked = replace(looked, notes=replace(looked.notes, is_unseen=False))
    asked = _since_asked(job, seen.view, looked.notes)
    silent = silent_nodes(agents, now=moment.now, up_since=moment.up_since)
    going = (*sorted(silent), *seen.leaving_until)
    looked = replace(looked, notes=replace(looked.notes, memory=asked), going=going)
    if _is_still_starting(seen.view, asked, rules):
        waiting = replace(asked, short_since=short_since(seen.view, asked))
        return replace(looked, notes=replace(looked.notes, memory=waiting))
    return look.steered(seen, looked)


def _since(job: JobRun, notes: SteeringNotes, now: datetime, *, is_rented: bool) -> datetime | None:
    """Return from when on time counts.

    That is the first step. A fleet that is there, or was applied, may never make one, and is paid:
    until then time counts from when it was first seen so.
    """
    if job.start_time is not None:
        return job.start_time
    if notes.since_unix_s is not None:
        return datetime.fromtimestamp(notes.since_unix_s, UTC)
    return now if is_rented or notes.carried.started_plan_id else None


def _counted_from(since: datetime, notes: SteeringNotes) -> SteeringNotes:
    since_unix_s = since.timestamp()
    by_s = since_unix_s - (notes.since_unix_s or since_unix_s)
    memory = counted_from_later(notes.memory, by_s) if by_s else notes.memory
    return replace(notes, memory=memory, since_unix_s=since_unix_s)


def _is_whole(view: JobView) -> bool:
    training = sum(node.state is not NodeState.STARTING for node in view.nodes)
    return not view.asked or training >= sum(view.asked.values())


def _is_old(course: JobCourse, now: datetime) -> bool:
    """Tell whether what is kept of a job is so old that it is written again."""
    until = course.spent_until
    return until is None or (now - until).total_seconds() >= _KEEP_S


def _has_moved(before: Forecast | None, after: Forecast | None) -> bool:
    """Tell whether a forecast is so far from the one that is kept that people should see it."""
    if before is None or after is None:
        return before is not after
    moved_s = abs(after.duration_s.mid - before.duration_s.mid)
    return moved_s > _MOVED_FRACTION * before.duration_s.mid


def _since_asked(job: JobRun, view: JobView, notes: SteeringNotes) -> SteeringMemory:
    """Return what is remembered, where pools fall short only since they were asked for nodes."""
    if job.course.steer is not Steer.APPLY or notes.carried.applied_plan_id == job.plan_id:
        return notes.memory
    return replace(notes.memory, short_since=dict.fromkeys(view.asked, view.time_s))


def _is_still_starting(view: JobView, memory: SteeringMemory, rules: SteeringRules) -> bool:
    """Tell whether a fleet is only just being rented, and nothing is wrong with it yet."""
    short = short_since(view, memory)
    leaving = any(node.state is NodeState.LEAVING for node in view.nodes)
    if memory.time_s is not None or leaving or not short:
        return False
    return view.time_s - min(short.values()) < rules.grant_timeout_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One look at a job."""

    job: JobRun
    promise: Promise
    rules: SteeringRules
    now: datetime

    def followed(self, seen: Seen, notes: SteeringNotes, meters: Meters) -> tuple[Looked, Seen]:
        """Count what is spent, and expect what is to come."""
        job, planned, now = self.job, self.promise.current, self.now
        nodes = frozenset(node.node_id + node.text for node in seen.view.shrunk)
        pace = meters.whole.measured(
            job, planned, now=now, is_whole=_is_whole(seen.view), shrunk=nodes
        )
        prices = {**planned.prices_usd_per_hour, **notes.prices_usd_per_hour}
        course, missing = self._paid(seen, notes, prices)
        to_come, rent = pace, planned.rent_usd_per_hour
        if job.course.steer is Steer.OFF and seen.was_seen:  # nobody gives it other nodes
            share = planned_share(seen.view, planned)
            to_come = meters.standing.measured(job, planned, now=now, share=share)
            rent = None if missing else usd_per_hour(rented(seen, planned), prices)
        if to_come is None and notes.memory.shrunk_share < 1:
            to_come = notes.memory.pace_factor  # nothing is measured yet, but predicted
        forecast = forecast_job(
            replace(job, course=course),
            replace(planned, rent_usd_per_hour=rent),
            now=now,
            pace_factor=to_come,
        )
        if forecast is not None and missing:
            forecast = replace(forecast, cost_usd=None)
        course = replace(course, forecast=forecast)
        view = replace(
            seen.view,
            pace_factor=pace,
            spent_usd=course.spent_usd or 0.0,
            prices_usd_per_hour=prices,
        )
        told = [*price_events(missing - notes.unpriced, now)]
        looked = Looked(
            course=course,
            notes=replace(notes, prices_usd_per_hour=prices, unpriced=missing),
            events=told,
            keep=bool(told)
            or _has_moved(job.course.forecast, forecast)
            or (_is_old(job.course, now) and not missing),
        )
        return looked, seen._replace(view=view)

    def _paid(
        self, seen: Seen, notes: SteeringNotes, prices: Mapping[Pool, float]
    ) -> tuple[JobCourse, frozenset[Pool]]:
        """Return what is spent by now, and the pools whose price nobody has told.

        While there are any, nothing is counted; once prices are known, it is for all that time.
        """
        job, planned = self.job, self.promise.current
        if notes.carried.is_given_back:
            planned = replace(planned, servers={})
        nodes = rented(seen, planned)
        missing = unpriced(nodes, prices)
        if missing:
            return job.course, missing
        usd: float | None = usd_per_hour(nodes, prices)
        if not nodes and not seen.was_seen:
            usd = planned.rent_usd_per_hour
        if job.start_time is None and not seen.was_seen:
            usd = 0.0  # nobody has seen a node of it yet
        return spent(job.course, usd, now=self.now), missing

    def unseen(self, view: JobView, looked: Looked) -> Looked:
        """Leave a fleet alone that trains though none of its hosts was ever seen; say so once."""
        if looked.notes.is_unseen or view.time_s < self.rules.grant_timeout_s:
            return looked
        return replace(
            looked,
            notes=replace(looked.notes, is_unseen=True),
            events=[*looked.events, unseen_event(view, self.now)],
            keep=True,
        )

    def steered(self, seen: Seen, looked: Looked) -> Looked:
        """See what happened to the fleet, and what that calls for."""
        notes, view, now = looked.notes, seen.view, self.now
        facts = notes.facts or JobFacts(spot_pools=_spot_pools(self.promise.current))
        watched = watch_fleet(
            view,
            notes.memory,
            goal=self._goal(facts),
            rules=self.rules,
            spot_pools=facts.spot_pools,
        )
        advice = Advised(facts, self.promise.current.interruptions_per_hour, self.rules)
        savings, interval_s = savings_of(seen, notes, watched.memory, advice)
        if Trigger.BUDGET_SPENT in watched.triggers and self.job.course.steer is Steer.APPLY:
            agents = agents_of({host.node_id: host for host in seen.hosts})
            until_s = now.timestamp() + SAVING_S
            savings = (*savings, Saving(agent_ids=tuple(agents), until_unix_s=until_s))
        kept = replace(
            notes,
            memory=watched.memory,
            pending=_pending(notes, watched),
            leaving_until=seen.leaving_until,
            interval_s=interval_s,
        )
        changed = kept.pending != notes.pending or bool(savings)
        told = [*trigger_events(watched.triggers, view, now), *advice_events(kept, notes, now)]
        return replace(
            looked,
            notes=kept,
            events=[*looked.events, *told],
            announced=tuple(notices(seen, notes.memory, now)),
            keep=looked.keep or changed or {*kept.memory.nodes} != {*notes.memory.nodes},
            savings=savings,
            due=self._due(looked.course, view, watched, kept),
        )

    def _due(
        self, course: JobCourse, view: JobView, watched: Watched, notes: SteeringNotes
    ) -> Due | None:
        asks = watched._replace(forced=notes.forced, triggers=tuple(notes.pending))
        if not notes.pending or is_too_early(asks, self.rules):
            return None
        now = watched.now
        if self.job.start_time is None:
            now = replace(now, time_s=0.0)  # the deadline counts from the first step
        return Due(
            job=replace(self.job, course=course),
            view=view,
            now=now,
            forced=notes.forced,
            triggers=tuple(notes.pending),
            look=notes.looks,
            since_unix_s=notes.since_unix_s or 0.0,
        )

    def _goal(self, facts: JobFacts) -> Goal:
        first = self.promise.first
        target = first.target or Target(kind=TargetKind.SAMPLES, value=first.samples_to_goal)
        deadline_s = None if self.job.start_time is None else first.deadline_s
        return Goal(target=target, deadline_s=deadline_s, budget_usd=facts.budget_usd)


def _spot_pools(planned: PlannedRun) -> frozenset[Pool]:
    return frozenset(pool for pool in planned.workers if pool.market is Market.SPOT)


def _pending(notes: SteeringNotes, watched: Watched) -> dict[Trigger, Asked]:
    """Return what asks for a decision, with the latest look that saw it."""
    pending = dict(notes.pending)
    for trigger in watched.triggers:
        was_forced = trigger in pending and pending[trigger].forced
        pending[trigger] = Asked(notes.looks, forced=was_forced or watched.forced)
    return pending
