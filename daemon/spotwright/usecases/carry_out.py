"""How far the plan of a steered job was carried out, and what is to be done next.

    written   the variables of the plan are on disk
    started   its apply was begun: kept before Terraform runs
    applied   its apply ended well
    given up  nodes that it does not count on, which are ended so that others take their place
    saved     training has had the time to save its state: an apply ends nodes that had a notice

A controller that finds an apply that was begun and did not end runs it again, which rents nothing
twice. One that failed is run again after a pause, longer each time; another plan does not wait for
it, and takes the place of one that was begun and has not yet changed anything.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from spotwright.domain.job_run import JobRun, NewEvent, Steer
from spotwright.usecases.steering_notes import Carried
from spotwright.usecases.steering_ports import Applied

SAVING_S = 120.0  # for training, before its nodes are given back: as long as a notice of AWS
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 10.0, 1800.0


class Doing(StrEnum):
    """What is to be done about a plan."""

    NOTHING = "nothing"
    WRITE = "write"
    APPLY = "apply"
    REPLACE = "replace"
    GIVE_BACK = "give-back"


def to_do(job: JobRun, carried: Carried, *, now: datetime) -> Doing:
    """Return what is to be done about the plan of a job."""
    pauses = job.plan_id == carried.failed_plan_id and now.timestamp() < carried.retry_unix_s
    if job.state.has_ended or pauses:
        return Doing.NOTHING
    if carried.give_back_unix_s is not None:
        is_due = now.timestamp() >= carried.give_back_unix_s and not carried.is_given_back
        return Doing.GIVE_BACK if is_due else Doing.NOTHING
    if job.course.steer is Steer.WRITE and carried.written_plan_id != job.plan_id:
        return Doing.WRITE
    if job.course.steer is Steer.APPLY and carried.applied_plan_id != job.plan_id:
        return Doing.APPLY if now.timestamp() >= carried.saved_unix_s else Doing.NOTHING
    if job.course.steer is Steer.APPLY and carried.given_up:
        return Doing.REPLACE
    return Doing.NOTHING


def written(carried: Carried, plan_id: str, path: str, now: datetime) -> tuple[Carried, NewEvent]:
    """Return what is remembered after variables were written, and the event."""
    event = NewEvent(
        time=now,
        kind="fleet-written",
        text=f"the variables of plan {plan_id} are in {path}",
        facts={"plan_id": plan_id, "path": path},
    )
    return replace(_without_failures(carried), written_plan_id=plan_id), event


def started(carried: Carried, plan_id: str, now: datetime) -> tuple[Carried, NewEvent]:
    """Return what is remembered before an apply, and the event."""
    again = carried.started_plan_id == plan_id
    event = NewEvent(
        time=now,
        kind="apply-resumed" if again else "apply-started",
        text=f"Terraform {'goes on with' if again else 'applies'} plan {plan_id}",
        facts={"plan_id": plan_id},
    )
    return replace(carried, started_plan_id=plan_id), event


def applied(
    carried: Carried, plan_id: str, did: Applied, now: datetime
) -> tuple[Carried, NewEvent]:
    """Return what is remembered after an apply, and the event."""
    words, facts = [f"the fleet of plan {plan_id} is asked for"], {"plan_id": plan_id}
    if did.ended:
        facts["ended"] = ", ".join(did.ended)
        words.append(f"of those that go anyway, {facts['ended']} ended")
    if did.problem:
        facts["problem"] = did.problem
        words.append(f"which nodes end was left to the cloud: {did.problem}")
    event = NewEvent(time=now, kind="applied", text="; ".join(words), facts=facts)
    done = _without_given_up(_without_failures(carried), did.ended)
    return replace(done, written_plan_id=plan_id, applied_plan_id=plan_id), event


def dropped(carried: Carried, plan_id: str, now: datetime) -> tuple[Carried, NewEvent]:
    """Return what is remembered of an apply that another plan has overtaken, and the event."""
    event = NewEvent(
        time=now,
        kind="apply-dropped",
        text=f"plan {plan_id} is not applied: the job has another one by now",
        facts={"plan_id": plan_id},
    )
    return carried, event


def giving_up(carried: Carried, node_ids: Iterable[str]) -> Carried:
    """Return what is remembered once nodes are to be replaced."""
    return replace(carried, given_up=tuple(dict.fromkeys([*carried.given_up, *node_ids])))


def replaced(
    carried: Carried, asked: Collection[str], ended: Sequence[str], now: datetime
) -> tuple[Carried, NewEvent]:
    """Return what is remembered after nodes were ended for others, and the event.

    Args:
        carried: so far.
        asked: the nodes that were to end.
        ended: those of them that still ran.
        now: the controller's clock.
    """
    gone = [node_id for node_id in asked if node_id not in ended]
    words = [f"{', '.join(ended)} ended, for others in their place"] if ended else []
    words += [f"{', '.join(gone)} had ended before"] if gone else []
    event = NewEvent(
        time=now,
        kind="nodes-ended",
        text="; ".join(words),
        facts={"ended": ", ".join(ended), "gone": ", ".join(gone)},
    )
    return _without_given_up(_without_failures(carried), asked), event


def saving(carried: Carried, *, until_unix_s: float) -> Carried:
    """Return what is remembered while training saves its state on nodes that an apply may end."""
    return replace(carried, saved_unix_s=max(carried.saved_unix_s, until_unix_s))


def ending(carried: Carried, now: datetime) -> Carried:
    """Return what is remembered once a budget is spent: training has time to save its state."""
    if carried.give_back_unix_s is not None:
        return carried
    return replace(carried, give_back_unix_s=now.timestamp() + SAVING_S)


def given_back(carried: Carried, now: datetime) -> tuple[Carried, NewEvent]:
    """Return what is remembered after all was given back, and the event."""
    event = NewEvent(
        time=now,
        kind="fleet-given-back",
        text="the budget is spent: all nodes are given back; the job goes on if it is started anew",
        facts={},
    )
    return replace(_without_failures(carried), is_given_back=True), event


def failed(
    carried: Carried, plan_id: str, problem: str, *, doing: Doing, now: datetime
) -> tuple[Carried, NewEvent]:
    """Return what is remembered after something failed, and the event."""
    before = carried.failure_count if carried.failed_plan_id == plan_id else 0
    pause_s = min(_FIRST_PAUSE_S * 2**before, _LONGEST_PAUSE_S)
    undone = f"plan {plan_id} was not carried out"
    if doing is Doing.REPLACE:
        undone = f"{', '.join(carried.given_up)} may still run"
    event = NewEvent(
        time=now,
        kind=f"{doing}-failed",
        text=f"{undone}, next try in {pause_s:.0f} s: {problem}",
        facts={"plan_id": plan_id, "problem": problem, "retry_in_s": f"{pause_s:g}"},
    )
    tried = replace(
        carried,
        failed_plan_id=plan_id,
        failure_count=before + 1,
        retry_unix_s=now.timestamp() + pause_s,
    )
    return tried, event


def _without_given_up(carried: Carried, node_ids: Collection[str]) -> Carried:
    left = tuple(node_id for node_id in carried.given_up if node_id not in node_ids)
    return replace(carried, given_up=left)


def _without_failures(carried: Carried) -> Carried:
    return replace(carried, failed_plan_id="", failure_count=0, retry_unix_s=0.0)
