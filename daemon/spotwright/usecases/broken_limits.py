"""What of its job a fleet would break: a what-if may, but it should be said."""

from collections.abc import Iterator

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.prediction import Prediction
from spotwright.domain.units import format_duration, format_usd


def broken_limits(job: JobSpec, prediction: Prediction) -> list[str]:
    """Return a sentence for each goal that is missed and each limit that is exceeded."""
    return [*_goal(job, prediction), *_fleet(job.limits, prediction.fleet.nodes)]


def _goal(job: JobSpec, prediction: Prediction) -> Iterator[str]:
    goal, chance = job.goal, prediction.deadline_probability
    if chance is not None and goal.deadline_s and chance < goal.confidence_fraction:
        yield (
            f"the deadline of {format_duration(goal.deadline_s)} is met with {chance:.1%}, "
            f"the job wants {goal.confidence_fraction:.1%}"
        )
    cost = prediction.cost_usd
    if cost is not None and goal.budget_usd and cost.mid > goal.budget_usd:
        yield f"the budget of {format_usd(goal.budget_usd)} is exceeded"


def _fleet(limits: Limits, nodes: tuple[NodeGroup, ...]) -> Iterator[str]:
    count = sum(group.node_count for group in nodes)
    if count > limits.max_nodes:
        yield f"{count} nodes are more than limits.max_nodes, {limits.max_nodes}"
    workers = [group for group in nodes if group.role is Role.WORKER]
    outside = {
        "limits.types": _beyond(limits.instance_types, [g.instance_type.name for g in workers]),
        "limits.gpus": _beyond(limits.gpus, [g.device for g in workers]),
        "limits.regions": _beyond(limits.regions, [g.offer.region for g in nodes if g.offer]),
        "limits.zones": _beyond(limits.zones, [g.offer.zone for g in nodes if g.offer]),
        "limits.markets": _beyond(limits.markets, [g.market for g in workers]),
    }
    for limit, names in outside.items():
        if names:
            yield f"{', '.join(names)} is outside {limit}"
    for name, most in sorted(limits.max_count_by_type.items()):
        found = sum(g.node_count for g in workers if g.instance_type.name == name)
        if found > most:
            yield f"{found} x {name} are more than limits.max_count, {most}"


def _beyond(allowed: frozenset[str], names: list[str]) -> list[str]:
    return sorted(set(names) - allowed) if allowed else []
