"""How often training should save its state, from what has been lost while it was watched.

events_per_hour = (planned rate * 6 h + losses seen) / (6 h + hours watched)
interval_s      = sqrt(2 * checkpoint_s / rate per second), Young and Daly's
"""

import math
from collections.abc import Mapping

from spotwright.domain.offer import Pool
from spotwright.domain.steering import NodeState, Weather
from spotwright.usecases.view_job import Host

_PRIOR_HOURS = 6.0  # for which the plan's rate counts as seen
_CHANGED = 0.20  # a change that training is told of
_LONGEST_S = 86_400.0
_LEAST_S = 1.0


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
