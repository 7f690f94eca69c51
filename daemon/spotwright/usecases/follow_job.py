"""What a controller notices about one job: a pure function of what it sees and remembers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from spotwright.domain.job_run import JobRun, NewEvent
from spotwright.domain.shrunk import Part, ShrunkHost
from spotwright.domain.telemetry import AgentRecord
from spotwright.domain.units import format_duration
from spotwright.usecases import shrunk_events

SILENT_AFTER_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What has been noticed about a job already. The next controller reads it from the log."""

    deadline_passed: bool = False
    silent_agents: frozenset[str] = frozenset()
    bottlenecks: frozenset[tuple[str, str]] = frozenset()  # instance type and term
    shrunk: Mapping[Part, ShrunkHost] = field(default_factory=dict)


class Followed(NamedTuple):
    """What is new, and what to remember from now on."""

    events: Sequence[NewEvent]
    memory: Memory


def remember(events: Iterable[NewEvent], memory: Memory | None = None) -> Memory:
    """Return what the events of a job, oldest first, add to what is remembered."""
    known = memory or Memory()
    silent = set(known.silent_agents)
    slow, shrunk = set(known.bottlenecks), dict(known.shrunk)
    passed = known.deadline_passed
    for event in events:
        agent_id = event.facts.get("agent_id", "")
        if event.kind == "agent-silent":
            silent.add(agent_id)
        elif event.kind == "agent-back":
            silent.discard(agent_id)
        elif event.kind == "bottleneck-found":
            slow.add(_bottleneck(event))
        elif event.kind == "bottleneck-gone":
            slow.discard(_bottleneck(event))
        elif event.kind == shrunk_events.SHRUNK:
            shrunk[shrunk_events.part_of(event)] = shrunk_events.host_of(event)
        elif event.kind == shrunk_events.WHOLE:
            shrunk.pop(shrunk_events.part_of(event), None)
        passed = passed or event.kind == "deadline-passed"
    return Memory(
        deadline_passed=passed,
        silent_agents=frozenset(silent),
        bottlenecks=frozenset(slow),
        shrunk=shrunk,
    )


def follow(
    job: JobRun,
    agents: Sequence[AgentRecord],
    *,
    deadline_s: float | None,
    now: datetime,
    memory: Memory,
) -> Followed:
    """Return what happened to a job since it was last looked at.

    Args:
        job: one that has not ended.
        agents: those that work for it.
        deadline_s: of its plan, from the first progress.
        now: the controller's clock.
        memory: from the call before.
    """
    seen = {agent.facts.agent_id: agent for agent in agents if agent.last_seen is not None}
    silent = {agent_id for agent_id, agent in seen.items() if _is_silent(agent, now)}
    known = memory.silent_agents & seen.keys()
    events = [
        *(_silent_event(seen[agent_id], now) for agent_id in sorted(silent - known)),
        *(_back_event(seen[agent_id], now) for agent_id in sorted(known - silent)),
    ]
    memory = replace(memory, silent_agents=frozenset(silent))
    if _is_late(job, deadline_s, now) and not memory.deadline_passed:
        events.append(_deadline_event(deadline_s, now))
        memory = replace(memory, deadline_passed=True)
    return Followed(events, memory)


def _bottleneck(event: NewEvent) -> tuple[str, str]:
    return event.facts.get("instance_type", ""), event.facts.get("term", "")


def _is_silent(agent: AgentRecord, now: datetime) -> bool:
    return agent.last_seen is not None and now - agent.last_seen > timedelta(seconds=SILENT_AFTER_S)


def _is_late(job: JobRun, deadline_s: float | None, now: datetime) -> bool:
    if deadline_s is None or job.start_time is None:
        return False
    return (now - job.start_time).total_seconds() > deadline_s


def _silent_event(agent: AgentRecord, now: datetime) -> NewEvent:
    last_seen = agent.last_seen or now
    silent_s = (now - last_seen).total_seconds()
    return NewEvent(
        time=now,
        kind="agent-silent",
        text=f"agent {agent.facts.agent_id} has sent nothing for {format_duration(silent_s)}",
        facts={"agent_id": agent.facts.agent_id, "last_seen": last_seen.isoformat()},
    )


def _back_event(agent: AgentRecord, now: datetime) -> NewEvent:
    return NewEvent(
        time=now,
        kind="agent-back",
        text=f"agent {agent.facts.agent_id} sends again",
        facts={"agent_id": agent.facts.agent_id},
    )


def _deadline_event(deadline_s: float | None, now: datetime) -> NewEvent:
    return NewEvent(
        time=now,
        kind="deadline-passed",
        text=f"the deadline of {format_duration(deadline_s or 0.0)} has passed",
        facts={"deadline_s": f"{deadline_s or 0.0:g}"},
    )
