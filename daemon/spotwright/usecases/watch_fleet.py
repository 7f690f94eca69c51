"""See what happened to a running job's fleet, and whether that calls for a decision.

A pure function of what is seen and remembered, so that the daemon and the simulator share it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from spotwright.domain.job import Goal
from spotwright.domain.offer import Market, Pool
from spotwright.domain.steering import (
    JobNow,
    JobView,
    Move,
    NodeState,
    Trigger,
    Weather,
)
from spotwright.usecases.steering_memory import SteeringMemory
from spotwright.usecases.steering_rules import SteeringRules

_STAYING = {NodeState.STARTING, NodeState.TRAINING, NodeState.HINTED}
# What cannot be left as it is; everything else may wait until a change pays.
_FORCING = {
    Trigger.INTERRUPTION_NOTICE,
    Trigger.NODE_LOST,
    Trigger.SHORT_GRANT,
    Trigger.DEADLINE_AT_RISK,
    Trigger.CEILING_REACHED,
    Trigger.BUDGET_SPENT,
}
_CLEARED = 0.98  # of a deadline or a budget: below it a risk counts as gone


class Watched(NamedTuple):
    """What was seen."""

    triggers: tuple[Trigger, ...]
    forced: bool  # a decision cannot wait until it pays
    now: JobNow
    memory: SteeringMemory


def watch_fleet(
    view: JobView,
    memory: SteeringMemory,
    *,
    goal: Goal,
    rules: SteeringRules,
    spot_pools: Set[Pool],
) -> Watched:
    """Look at a fleet.

    Args:
        view: what is seen now.
        memory: from the look before.
        goal: of the whole job.
        rules: when something counts.
        spot_pools: those that the job could use, for how capacity comes and goes.
    """
    failed = Counter(_failed_pools(view, memory, rules))
    looked = _cooled(_weathered(memory, view, spot_pools, failed), view, failed, rules)
    down = _down(view, looked)
    triggers = tuple(dict.fromkeys(_triggers(view, memory, looked, down, rules, goal)))
    # What was told is told again only after it has lasted for as long once more.
    ungranted = _ungranted(view, memory, rules)
    drift_since_s = _drift_since(view, memory, rules)
    looked = replace(
        looked,
        time_s=view.time_s,
        nodes={node.node_id: (node.pool, node.state) for node in view.nodes},
        down=down,
        short_since=short_since(view, memory) | dict.fromkeys(ungranted, view.time_s),
        drift_since_s=view.time_s if Trigger.DRIFT in triggers else drift_since_s,
        standing=frozenset(_risks(view, memory, goal, rules)),
        shrunk=_shrunk(view, memory),
    )
    forced = bool(_FORCING & {*triggers}) or _is_makeshift(view, memory)
    return Watched(triggers, forced, _now(view, looked, rules), looked)


def is_too_early(watched: Watched, rules: SteeringRules) -> bool:
    """Tell whether what nothing forces would follow too soon on the last change."""
    since_s = watched.now.time_s - watched.memory.change_s
    waits = not watched.forced and Trigger.NODE_RESIZED not in watched.triggers
    return rules.savings_threshold and waits and since_s < rules.calm_s


def postponed(watched: Watched, rules: SteeringRules) -> SteeringMemory:
    """Return what is remembered where it is too early: a look is due once there is calm."""
    memory = watched.memory
    return replace(memory, check_s=min(memory.check_s, memory.change_s + rules.calm_s))


def _triggers(
    view: JobView,
    before: SteeringMemory,
    looked: SteeringMemory,
    down: Set[Pool],
    rules: SteeringRules,
    goal: Goal,
) -> Iterator[Trigger]:
    if before.time_s is None:
        yield Trigger.STARTED
    for node in view.nodes:
        _, state = before.nodes.get(node.node_id, (node.pool, None))
        if node.state is not state and node.state is NodeState.LEAVING:
            yield Trigger.INTERRUPTION_NOTICE
        if node.state is not state and node.state is NodeState.HINTED:
            yield Trigger.REBALANCE_HINT
    if any(_lost(view, before)):
        yield Trigger.NODE_LOST
    if any(_resized(view, before)):
        yield Trigger.NODE_RESIZED
    if any(_ungranted(view, before, rules)):
        yield Trigger.SHORT_GRANT
    if before.down - down:
        yield Trigger.CAPACITY_BACK
    drift_since_s = _drift_since(view, before, rules)
    if drift_since_s is not None and view.time_s - drift_since_s >= rules.drift_after_s:
        yield Trigger.DRIFT
    if any(_moved_prices(view, before, rules)):
        yield Trigger.PRICE_CHANGE
    yield from sorted(_risks(view, before, goal, rules) - before.standing)
    if view.time_s >= looked.check_s:
        yield Trigger.CHECK_DUE


def _lost(view: JobView, before: SteeringMemory) -> Iterator[Pool]:
    """Yield the pools of nodes that are gone though they are still wanted."""
    present = {node.node_id for node in view.nodes}
    counts = Counter(node.pool for node in view.nodes)
    for node_id, (pool, _) in before.nodes.items():
        is_lost = node_id not in present and node_id not in before.left
        if is_lost and counts[pool] < view.asked.get(pool, 0):
            yield pool


def _shrunk(view: JobView, before: SteeringMemory) -> frozenset[tuple[str, str]]:
    """Return the nodes that have become less, but for those that were given up."""
    return frozenset(
        (node.node_id, node.text) for node in view.shrunk if node.node_id not in before.left
    )


def _resized(view: JobView, before: SteeringMemory) -> Iterator[str]:
    """Yield the nodes that have become less since the last look, or are whole again."""
    now = _shrunk(view, before)
    yield from (node_id for node_id, _ in now - before.shrunk)
    shrunk = {node_id for node_id, _ in now}
    there = {node.node_id for node in view.nodes} - before.left
    yield from (node_id for node_id, _ in before.shrunk if node_id in there - shrunk)


def _cut_pools(view: JobView, before: SteeringMemory) -> set[Pool]:
    """Return the spot pools that have just cut what they gave: they have no more to give."""
    new = {node_id for node_id, _ in _shrunk(view, before) - before.shrunk}
    pools = {node.pool for node in view.shrunk if node.node_id in new}
    return {pool for pool in pools if pool.market is Market.SPOT}


def _ungranted(view: JobView, before: SteeringMemory, rules: SteeringRules) -> Iterator[Pool]:
    """Yield the pools that have not given what was asked for, for too long."""
    for pool, since_s in short_since(view, before).items():
        if view.time_s - since_s >= rules.grant_timeout_s:
            yield pool


def short_since(view: JobView, before: SteeringMemory) -> dict[Pool, float]:
    """Return since when pools have given fewer nodes than were asked for."""
    counts = Counter(node.pool for node in view.nodes)
    return {
        pool: before.short_since.get(pool, view.time_s)
        for pool, wanted in view.asked.items()
        if counts[pool] < wanted
    }


def _failed_pools(view: JobView, before: SteeringMemory, rules: SteeringRules) -> Iterator[Pool]:
    """Yield the spot pools that took or refused nodes since the last look.

    A pool that cools down refuses, as was to be expected: that is no other failure.
    """
    refused = {*_ungranted(view, before, rules)} - {*before.cooling}
    failed = {*_lost(view, before), *refused}
    for node in view.nodes:
        _, state = before.nodes.get(node.node_id, (node.pool, None))
        if node.state is NodeState.LEAVING and state is not NodeState.LEAVING:
            failed.add(node.pool)
    for pool in sorted(failed):
        was_leaving = any(
            p == pool and state is NodeState.LEAVING for p, state in before.nodes.values()
        )
        if pool.market is Market.SPOT and not (was_leaving and pool in before.cooling):
            yield pool


def _cooled(
    memory: SteeringMemory, view: JobView, failed: Mapping[Pool, int], rules: SteeringRules
) -> SteeringMemory:
    """Leave pools that failed alone for a while, longer each time."""
    cooling = {pool: until for pool, until in memory.cooling.items() if until > view.time_s}
    failures = dict(memory.failures)
    weather = dict(memory.weather)
    cut = _cut_pools(view, memory)
    refused = {*_ungranted(view, memory, rules), *cut} - {*_lost(view, memory)}
    for pool in sorted({*failed, *cut}):
        count, last_s = failures.get(pool, (0, view.time_s))
        count = 1 if view.time_s - last_s > rules.forget_failures_s else count + 1
        failures[pool] = (count, view.time_s)
        # That takes no work; but a pool that gives nothing is no better than one that lost a node.
        if not view.is_probed and (pool not in refused or count == 1):
            seen = weather.get(pool, Weather())
            weather[pool] = replace(seen, losses=seen.losses + 1)
        if rules.cool_down:
            pause_s = min(rules.first_cool_down_s * 2 ** (count - 1), rules.longest_cool_down_s)
            cooling[pool] = view.time_s + pause_s
    return replace(memory, cooling=cooling, failures=failures, weather=weather)


def _weathered(
    memory: SteeringMemory, view: JobView, spot_pools: Set[Pool], failed: Mapping[Pool, int]
) -> SteeringMemory:
    """Count how long capacity was there since the last look, and how that ended."""
    if memory.time_s is None or not spot_pools:
        return memory
    hours = (view.time_s - memory.time_s) / 3600
    now_down = _down(view, memory)
    was_up, is_up = bool(spot_pools - memory.down), bool(spot_pools - now_down)
    weather = dict(memory.weather)
    if view.is_probed:
        for pool in spot_pools:
            seen = weather.get(pool, Weather())
            weather[pool] = seen.passed(
                hours, was_up=pool not in memory.down, is_up=pool not in now_down
            )
    else:
        for pool in {pool for pool, _ in memory.nodes.values() if pool.market is Market.SPOT}:
            seen = weather.get(pool, Weather())
            weather[pool] = replace(seen, up_hours=seen.up_hours + hours)
    capacity = memory.capacity.passed(hours, was_up=was_up, is_up=is_up)
    if failed and was_up and is_up:  # lost, and there again in another pool: a restart all the same
        capacity = replace(capacity, losses=capacity.losses + 1, returns=capacity.returns + 1)
    return replace(memory, weather=weather, capacity=capacity)


def _down(view: JobView, memory: SteeringMemory) -> frozenset[Pool]:
    cooling = {pool for pool, until in memory.cooling.items() if until > view.time_s}
    return view.unavailable | (frozenset() if view.is_probed else cooling)


def _drift_since(view: JobView, memory: SteeringMemory, rules: SteeringRules) -> float | None:
    """Return since when steps are other than the last decision took them to be."""
    if view.pace_factor is None:
        return None
    low, high = rules.pace_interval
    paces = [max(pace, rules.least_pace) for pace in (view.pace_factor, memory.pace_factor)]
    if low <= paces[0] / paces[1] <= high:
        return None
    return memory.drift_since_s if memory.drift_since_s is not None else view.time_s


def _moved_prices(view: JobView, memory: SteeringMemory, rules: SteeringRules) -> Iterator[Pool]:
    for pool in view.asked:
        before, after = memory.prices.get(pool), view.prices_usd_per_hour.get(pool)
        if before and after and abs(after / before - 1) >= rules.price_change_fraction:
            yield pool


def _risks(view: JobView, memory: SteeringMemory, goal: Goal, rules: SteeringRules) -> set[Trigger]:
    """Return what threatens the goal; a risk that was told must recede clearly to be gone."""
    risks = set()
    hours = _hours_left(view, memory)
    if hours is not None and goal.deadline_s is not None:
        told = Trigger.DEADLINE_AT_RISK in memory.standing
        late = view.time_s + hours * 3600 > goal.deadline_s * (_CLEARED if told else 1.0)
        risks |= {Trigger.DEADLINE_AT_RISK} if late else set()
    if hours is not None and goal.budget_usd is not None:
        told = Trigger.CEILING_REACHED in memory.standing
        bound_usd = goal.budget_usd * (_CLEARED if told else 1.0)
        dear = view.spent_usd + hours * memory.usd_per_hour > bound_usd
        risks |= {Trigger.CEILING_REACHED} if dear else set()
    if goal.budget_usd is not None:
        needed_usd = view.spent_usd + _farewell_usd(view, memory, rules)
        told = Trigger.BUDGET_SPENT in memory.standing  # and nothing is ever paid back
        risks |= {Trigger.BUDGET_SPENT} if told or needed_usd >= goal.budget_usd else set()
    return risks


def _hours_left(view: JobView, memory: SteeringMemory) -> float | None:
    """Return what is left at this pace; training that stands still is a case for drift."""
    speed = memory.goal_per_hour * (_pace(view, memory) or 1.0)
    if speed <= 0 or memory.move is Move.WAIT:
        return None
    return (1 - view.done_fraction) / speed


def _pace(view: JobView, memory: SteeringMemory) -> float:
    """Return the pace that is measured or, while none is, that of the last decision.

    That training stood still says nothing of how fast it goes on.
    """
    return (memory.pace_factor or 1.0) if view.pace_factor is None else view.pace_factor


def _farewell_usd(view: JobView, memory: SteeringMemory, rules: SteeringRules) -> float:
    """Return the rent until the fleet is given back, or until the goal if that is nearer."""
    hours = rules.farewell_s / 3600
    left = _hours_left(view, memory)
    return memory.usd_per_hour * (hours if left is None else min(hours, left))


def _is_makeshift(view: JobView, memory: SteeringMemory) -> bool:
    """Tell whether the job waits, or runs on nodes that stand in for others.

    On-demand nodes that the plan wants are no makeshift: what runs is changed only where it pays.
    """
    on_demand = any(node.pool.market is Market.ON_DEMAND for node in view.nodes)
    waits = memory.move in (None, Move.WAIT, Move.GIVE_UP) or not view.nodes
    return waits or (on_demand and memory.stands_in)


def _now(view: JobView, memory: SteeringMemory, rules: SteeringRules) -> JobNow:
    staying = Counter(
        node.pool
        for node in view.nodes
        if node.state in _STAYING and node.node_id not in memory.left
    )
    starting = [node.ready_s for node in view.nodes if node.state is NodeState.STARTING]
    return JobNow(
        time_s=view.time_s,
        done_fraction=view.done_fraction,
        spent_usd=view.spent_usd,
        staying=dict(staying),
        asked=view.asked,
        ready_in_s=max((ready - view.time_s for ready in starting), default=0.0),
        servers=view.servers,
        down=memory.down,
        is_probed=view.is_probed,
        weather=memory.weather if rules.learn else {},
        capacity=memory.capacity if rules.learn else Weather(),
        prices_usd_per_hour=view.prices_usd_per_hour,
        pace_factor=_pace(view, memory),
        is_spent=Trigger.BUDGET_SPENT in memory.standing,
        shrunk=tuple(node for node in view.shrunk if node.node_id not in memory.left),
        shrunk_share=memory.shrunk_share if view.pace_factor is None else None,
    )
