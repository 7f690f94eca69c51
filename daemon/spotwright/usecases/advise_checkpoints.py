"""How often training should save its state, from what has been lost while it was watched.

events_per_hour = (planned rate * 6 h + losses seen) / (6 h + hours watched)
interval_s      = sqrt(2 * checkpoint_s / rate per second), Young and Daly's
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from spotwright.domain.job_run import NewEvent
from spotwright.domain.offer import Pool
from spotwright.domain.steering import NodeState, Weather
from spotwright.domain.steering_question import JobFacts
from spotwright.domain.units import format_duration
from spotwright.usecases.steering_memory import SteeringMemory
from spotwright.usecases.steering_notes import SteeringNotes
from spotwright.usecases.steering_rules import SteeringRules
from spotwright.usecases.view_job import Host, Seen

_PRIOR_HOURS = 6.0  # for which the plan's rate counts as seen
_CHANGED = 0.20  # a change that training is told of
_LONGEST_S = 86_400.0
_LEAST_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Something to tell training about checkpoints."""

    agent_ids: tuple[str, ...]
    interval_s: float | None = None
    until_unix_s: float | None = None  # when a host goes

    def left_s(self, now: datetime) -> float | None:
        """Return how long it has; None where nobody knows."""
        until_s = self.until_unix_s
        return None if until_s is None else max(0.0, until_s - now.timestamp())


class Advised(NamedTuple):
    """What advice depends on, beside what is seen."""

    facts: JobFacts
    planned_per_hour: float  # interruptions
    rules: SteeringRules


def savings_of(
    seen: Seen, notes: SteeringNotes, memory: SteeringMemory, advised: Advised
) -> tuple[tuple[Saving, ...], float | None]:
    """Return what training is told of checkpoints, and the interval that it then knows.

    Args:
        seen: the fleet.
        notes: from the look before.
        memory: of this look.
        advised: what else counts.
    """
    hosts = {host.node_id: host for host in seen.hosts}
    found = list(_saved_now(seen, notes, advised))
    interval_s = _interval_s(memory, advised)
    if is_news(interval_s, notes.interval_s):
        found.append(Saving(agent_ids=tuple(agents_of(hosts)), interval_s=interval_s))
        return tuple(found), interval_s
    new = {
        node.node_id: hosts[node.node_id]
        for node in seen.view.nodes
        if node.node_id not in notes.memory.nodes
    }
    if new and notes.interval_s is not None:
        found.append(Saving(agent_ids=tuple(agents_of(new)), interval_s=notes.interval_s))
    return tuple(found), notes.interval_s


def _saved_now(seen: Seen, notes: SteeringNotes, advised: Advised) -> Iterator[Saving]:
    """Yield what is told because of notices that came since the last look."""
    if not advised.rules.save_on_notice:
        return
    hosts = {host.node_id: host for host in seen.hosts}
    states = {node.node_id: node.state for node in seen.view.nodes}
    for node_id in newly_leaving(states, notes.memory.nodes):
        concerned = hosts if advised.facts.stops_as_one else {node_id: hosts[node_id]}
        yield Saving(
            agent_ids=tuple(agents_of(concerned)), until_unix_s=seen.leaving_until.get(node_id)
        )


def _interval_s(memory: SteeringMemory, advised: Advised) -> float | None:
    facts, planned_per_hour, _ = advised
    if facts.checkpoint_s is None or not facts.stops_as_one:
        return None
    return checkpoint_interval_s(
        facts.checkpoint_s, planned_per_hour=planned_per_hour, weather=memory.weather
    )


def advice_events(kept: SteeringNotes, before: SteeringNotes, now: datetime) -> Iterator[NewEvent]:
    """Yield the event of an interval that training did not know."""
    interval_s = kept.interval_s
    if interval_s is not None and interval_s != before.interval_s:
        yield NewEvent(
            time=now,
            kind="checkpoint-advice",
            text=f"training is told to save its state every {format_duration(interval_s)}",
            facts={"interval_s": f"{interval_s:.6g}"},
        )


def checkpoint_interval_s(
    checkpoint_s: float, *, planned_per_hour: float, weather: Mapping[Pool, Weather]
) -> float | None:
    """Return the best interval; None where nothing is ever taken away."""
    losses = sum(seen.losses for seen in weather.values())
    hours = max((seen.up_hours for seen in weather.values()), default=0.0)
    events_per_hour = (planned_per_hour * _PRIOR_HOURS + losses) / (_PRIOR_HOURS + hours)
    if events_per_hour <= 0 or checkpoint_s <= 0:
        return None
    best_s = math.sqrt(2 * checkpoint_s * 3600 / events_per_hour)
    return min(max(best_s, _LEAST_S), _LONGEST_S)


def is_news(interval_s: float | None, told_s: float | None) -> bool:
    """Tell whether an interval differs enough from what training was told."""
    if interval_s is None or told_s is None:
        return interval_s is not None
    return abs(interval_s / told_s - 1) > _CHANGED


def newly_leaving(
    states: Mapping[str, NodeState], before: Mapping[str, tuple[Pool, NodeState]]
) -> list[str]:
    """Return the nodes that a notice came for since the last look."""
    return [
        node_id
        for node_id, state in states.items()
        if state is NodeState.LEAVING
        and before.get(node_id, (None, None))[1] is not NodeState.LEAVING
    ]


def agents_of(hosts: Mapping[str, Host]) -> list[str]:
    """Return the agents of hosts, by name."""
    return sorted(agent.facts.agent_id for host in hosts.values() for agent in host.agents)
