"""Make a decision a job's own: its plan, its course, and what the log says."""

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from spotwright.domain.job_run import JobRun, NewEvent, Steer
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.steering import JobView, Move, NodeState, Trigger
from spotwright.domain.steering_question import SteeringAnswer
from spotwright.domain.units import format_duration, format_usd
from spotwright.usecases.carry_out import ending, giving_up, saving
from spotwright.usecases.look_at_fleet import Due
from spotwright.usecases.steering_memory import decided
from spotwright.usecases.steering_notes import SteeringNotes


class Settled(NamedTuple):
    """A job after a decision."""

    job: JobRun
    notes: SteeringNotes
    events: list[NewEvent]


def settled(
    job: JobRun,
    notes: SteeringNotes,
    due: Due,
    answer: SteeringAnswer,
    *,
    planned: PlannedRun,
    now: datetime,
    decision_s: float,
) -> Settled:
    """Return a job that goes on as was decided.

    Args:
        job: as it is now.
        notes: as they are now.
        due: how it stood when it was asked about.
        answer: what was decided.
        planned: its plan so far.
        now: the controller's clock.
        decision_s: how long the decision took.
    """
    is_new = is_another_fleet(answer, planned)
    events = list(_events(job, notes, due, answer, is_new=is_new, now=now, decision_s=decision_s))
    known = replace(
        notes,
        memory=decided(notes.memory, answer.steering, _as_counted_now(due, notes)),
        facts=answer.facts,
        # What came while it was decided asks for a decision of its own.
        pending={t: asked for t, asked in notes.pending.items() if asked.look > due.look},
    )
    if answer.steering.gives_back and job.course.steer is Steer.APPLY:
        known = replace(known, carried=ending(known.carried, now))
    if job.course.steer is Steer.APPLY:
        known = replace(known, carried=giving_up(known.carried, answer.steering.leaves))
    if not is_new or answer.plan is None:
        return Settled(job, known, events)
    course = replace(
        job.course,
        first_plan_id=job.first_plan_id,
        begun_fraction=due.view.done_fraction,
        begun=due.job.progress,
    )
    if (until_unix_s := _saved_unix_s(due, notes, answer, now)) is not None:
        known = replace(known, carried=saving(known.carried, until_unix_s=until_unix_s))
    return Settled(
        replace(job, plan_id=answer.plan.plan_id, course=course, update_time=now), known, events
    )


def _saved_unix_s(
    due: Due, notes: SteeringNotes, answer: SteeringAnswer, now: datetime
) -> float | None:
    """Return when all hosts of a job have saved what a notice asks them to; None: none does."""
    checkpoint_s = answer.facts.checkpoint_s
    leaving = [node.node_id for node in due.view.nodes if node.state is NodeState.LEAVING]
    if not leaving or checkpoint_s is None or not answer.facts.stops_as_one:
        return None
    last_s = max(notes.leaving_until.get(node_id, math.inf) for node_id in leaving)
    return min(now.timestamp() + checkpoint_s, last_s)


def undecided(problem: str, now: datetime) -> NewEvent:
    """Return the event of a decision that could not be made."""
    return NewEvent(
        time=now,
        kind="decision-failed",
        text=f"nothing could be decided, the fleet stays as it is until that can be: {problem}",
        facts={"problem": problem},
    )


def _as_counted_now(due: Due, notes: SteeringNotes) -> JobView:
    """Return what was seen; training may have begun since, from which time counts then."""
    later_s = (notes.since_unix_s or due.since_unix_s) - due.since_unix_s
    return replace(due.view, time_s=due.view.time_s - later_s)


def is_another_fleet(answer: SteeringAnswer, planned: PlannedRun) -> bool:
    """Tell whether what was decided is not what is asked for already."""
    anew = answer.steering.asks_anew(planned.workers, planned.servers)
    return answer.plan is not None and anew


def _events(
    job: JobRun,
    notes: SteeringNotes,
    due: Due,
    answer: SteeringAnswer,
    *,
    is_new: bool,
    now: datetime,
    decision_s: float,
) -> Iterator[NewEvent]:
    move, before = answer.steering.move, notes.memory.move
    facts = _facts(due, answer, decision_s)
    told = _told(answer)
    if move is Move.GIVE_UP and before is not Move.GIVE_UP:
        yield NewEvent(time=now, kind="goal-out-of-reach", text=told, facts=facts)
    if is_new and answer.plan is not None:
        plans = {"plan_id": answer.plan.plan_id, "from_plan_id": job.plan_id}
        yield NewEvent(time=now, kind="replanned", text=told, facts=facts | plans)
    elif answer.steering.leaves:
        yield NewEvent(time=now, kind="node-replaced", text=told, facts=facts)
    if move is Move.WAIT and before is not Move.WAIT:
        yield NewEvent(time=now, kind="waiting", text=answer.steering.reason, facts=facts)
    elif move is Move.KEEP and (before not in (Move.KEEP, None) or _is_about_nodes(due)):
        yield NewEvent(time=now, kind="kept", text=answer.steering.reason, facts=facts)


def _is_about_nodes(due: Due) -> bool:
    """Tell whether it was asked if a node that has become less is worth keeping."""
    return Trigger.NODE_RESIZED in due.triggers and bool(due.now.shrunk)


def _told(answer: SteeringAnswer) -> str:
    steering = answer.steering
    words = [steering.reason]
    if answer.fleet_text:
        words.insert(0, answer.fleet_text)
    if steering.finish_s is not None and steering.cost_usd is not None:
        after, cost = format_duration(steering.finish_s), format_usd(steering.cost_usd)
        words.append(f"done after {after} for {cost}")
    return ": ".join(words[:2]) + "".join(f"; {word}" for word in words[2:])


def _facts(due: Due, answer: SteeringAnswer, decision_s: float) -> dict[str, str]:
    steering = answer.steering
    facts = {
        "move": str(steering.move),
        "reason": steering.reason,
        "fleet": answer.fleet_text,
        "triggers": ", ".join(due.triggers),
        "decision_s": f"{decision_s:.3f}",
    }
    if due.now.shrunk:
        facts["shrunk"] = ", ".join(node.node_id for node in due.now.shrunk)
        facts["leaves"] = ", ".join(steering.leaves)
        facts["speed_share"] = f"{steering.share_with_all:.4f}"
    for name in ("finish_s", "cost_usd"):
        value = getattr(steering, name)
        if value is not None:
            facts[name] = f"{value:.6g}"
    return facts
