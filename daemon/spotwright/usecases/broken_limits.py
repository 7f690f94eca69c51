"""What of its job a fleet would break: a what-if may, but it should be said."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.offer import Market, Pool
from spotwright.domain.prediction import Prediction
from spotwright.domain.quota import QUOTA_CODES
from spotwright.domain.units import format_duration, format_usd

_ROOM = 1 + 1e-9  # for rounding


def broken_limits(
    job: JobSpec, prediction: Prediction, *, now: datetime | None = None
) -> list[str]:
    """Return a sentence for each goal that is missed and each limit that is broken.

    Without `now`, pools that cool down count as excluded still.
    """
    limits, nodes = job.limits, prediction.fleet.nodes
    return [*_goal(job, prediction), *_fleet(limits, nodes), *_pools(limits, nodes, now)]


def _goal(job: JobSpec, prediction: Prediction) -> Iterator[str]:
    goal = job.goal
    if goal.deadline_s is not None:
        yield from _deadline(goal.deadline_s, goal.confidence_fraction, prediction)
    cost = prediction.cost_usd
    if cost is not None and goal.budget_usd and cost.mid > goal.budget_usd * _ROOM:
        yield f"the budget of {format_usd(goal.budget_usd)} is exceeded"


def _deadline(deadline_s: float, wanted: float, prediction: Prediction) -> Iterator[str]:
    chance = prediction.deadline_probability
    if chance is not None and chance < wanted:
        yield (
            f"the deadline of {format_duration(deadline_s)} is met with {chance:.1%}, "
            f"the job wants {wanted:.1%}"
        )


def model_error_notes(job: JobSpec, prediction: Prediction) -> list[str]:
    """Say where only the model's own error makes the deadline less sure than the job wants."""
    chance, overall = prediction.deadline_probability, prediction.overall_deadline_probability
    wanted = job.goal.confidence_fraction
    if chance is None or overall is None or chance < wanted or overall >= wanted:
        return []
    return [
        f"counting the model's own error, the deadline is met with {overall:.1%}, "
        f"less than the {wanted:.1%} asked of interruptions"
    ]


def _fleet(limits: Limits, nodes: tuple[NodeGroup, ...]) -> Iterator[str]:
    workers = [group for group in nodes if group.role is Role.WORKER]
    servers = [group for group in nodes if group.role is Role.PS]
    yield from _names(limits, workers, servers)
    yield from _counts(limits, nodes, workers)
    yield from _server_count(limits, servers)
    yield from _vcpus(limits, nodes)
    yield from _prices(limits, nodes)


def _names(limits: Limits, workers: list[NodeGroup], servers: list[NodeGroup]) -> Iterator[str]:
    offers = [g.offer for g in (*workers, *servers) if g.offer]
    types = [g.instance_type.name for g in workers]
    outside = {
        "limits.types": _beyond(limits.instance_types, types),
        "limits.gpus": _beyond(limits.gpus, [g.device for g in workers]),
        "limits.regions": _beyond(limits.regions, [offer.region for offer in offers]),
        "limits.zones": _beyond(limits.zones, [offer.zone for offer in offers]),
        "limits.markets": _beyond(limits.markets, [g.market for g in workers]),
        "limits.parameter_server_types": _beyond(
            limits.parameter_server_types, [g.instance_type.name for g in servers]
        ),
    }
    for limit, names in outside.items():
        if names:
            yield f"{', '.join(names)} is outside {limit}"
    excluded = sorted(set(types) & limits.excluded_types)
    if excluded:
        yield f"{', '.join(excluded)} is in limits.exclude_types"


def _counts(
    limits: Limits, nodes: tuple[NodeGroup, ...], workers: list[NodeGroup]
) -> Iterator[str]:
    count = sum(group.node_count for group in nodes)
    if count > limits.max_nodes:
        yield f"{count} nodes are more than limits.max_nodes, {limits.max_nodes}"
    by_type = _sum((g.instance_type.name, g.node_count) for g in workers)
    for name, most in sorted(limits.max_count_by_type.items()):
        if by_type.get(name, 0) > most:
            yield f"{by_type[name]:g} x {name} are more than limits.max_count, {most}"
    by_pool = _sum((str(g.offer.pool), g.node_count) for g in workers if g.offer)
    most_per_pool = limits.max_count_per_pool or math.inf
    for pool, found in by_pool.items():
        if found > most_per_pool:
            yield f"{found:g} nodes of {pool} are more than limits.max_count_per_pool"
    if limits.max_pools is not None and len(by_pool) > limits.max_pools:
        yield f"{len(by_pool)} pools are more than limits.max_pools, {limits.max_pools}"
    on_demand = sum(g.node_count for g in workers if g.market is Market.ON_DEMAND)
    if on_demand * _ROOM < limits.min_on_demand_fraction * sum(g.node_count for g in workers):
        yield "fewer on-demand nodes than limits.min_on_demand"


def _server_count(limits: Limits, servers: list[NodeGroup]) -> Iterator[str]:
    count, most = sum(group.node_count for group in servers), limits.max_parameter_servers
    if count > most:
        yield f"{count} parameter servers are more than limits.max_parameter_servers, {most}"


def _pools(limits: Limits, nodes: tuple[NodeGroup, ...], now: datetime | None) -> Iterator[str]:
    found: Counter[Pool] = Counter()
    for group in nodes:
        if group.offer and group.role is Role.WORKER:
            found[group.offer.pool] += group.node_count
    for pool in sorted({group.offer.pool for group in nodes if group.offer}):
        if limits.excludes(pool, now=now):
            until = limits.excluded_pools[pool]
            cools_down = f" until {until:%Y-%m-%d %H:%M %Z}" if until else ""
            yield f"{pool} is in limits.exclude_pools{cools_down}"
    for pool, least in sorted(limits.min_count_by_pool.items()):
        if found[pool] < least:
            yield f"{found[pool]} workers of {pool} are fewer than limits.pin_pools, {least}"


def _vcpus(limits: Limits, nodes: tuple[NodeGroup, ...]) -> Iterator[str]:
    """Compare with the quotas of each region; classes that share one are counted together."""
    for (quota_class, market), most in sorted(limits.max_vcpus.items()):
        code = QUOTA_CODES.get((quota_class, market), quota_class)
        by_region = _sum(
            (g.offer.region, g.node_count * g.instance_type.vcpu_count)
            for g in nodes
            if g.offer
            and g.market is market
            and QUOTA_CODES.get((g.instance_type.quota_class or "", market)) == code
        )
        for region, found in sorted(by_region.items()):
            if found > most:
                yield (
                    f"{found:g} {market} {quota_class} vCPUs in {region} are more than "
                    f"limits.max_vcpus, {most}"
                )


def _prices(limits: Limits, nodes: tuple[NodeGroup, ...]) -> Iterator[str]:
    by_market = _sum((g.market, g.usd_per_hour or 0.0) for g in nodes)
    for market, most in sorted(limits.max_usd_per_hour.items()):
        if by_market.get(market, 0.0) > most * _ROOM:
            yield f"{market} nodes cost more than limits.max_usd_per_hour, {format_usd(most)}"
    for group in nodes:
        ceiling = limits.max_price_by_type_usd_per_hour.get(group.instance_type.name, math.inf)
        if group.offer and group.offer.price_usd_per_hour > ceiling:
            yield f"{group.instance_type.name} costs more than limits.max_price allows"


def _sum(items: Iterable[tuple[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for key, amount in items:
        totals[key] = totals.get(key, 0.0) + amount
    return totals


def _beyond(allowed: frozenset[str], names: list[str]) -> list[str]:
    return sorted(set(names) - allowed) if allowed else []
