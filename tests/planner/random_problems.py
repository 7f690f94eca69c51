"""Small problems drawn at random: few enough fleets to look at each, all the rest as in life.

Types, prices on demand and hardware are those of the bundled catalog. Everything a search could
trip over is drawn now and then: ties between zones, quotas that servers share, shocks, stalls,
tight memory, narrow laws, fleets that run already, goals just met and just missed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from spotwright.domain.hardware import InstanceType
from spotwright.domain.job import Goal, JobSpec, Limits, NetworkRate, Placement
from spotwright.domain.offer import Market, Offer, OfferQuery, Pool
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.domain.workload import Strategy
from spotwright.planner.problem import Problem
from tests.planner.dice import Dice
from tests.planner.oracle import EveryFleet
from tests.planner.random_workloads import random_workload
from tests.usecases.example_job import catalog

MOST_FLEETS = 200_000

WORKER_TYPES = (
    "g4dn.xlarge", "g4dn.2xlarge", "g4dn.12xlarge", "g5.xlarge", "g5.2xlarge", "g5.12xlarge",
    "g6.xlarge", "g6e.xlarge", "gr6f.4xlarge", "p3.2xlarge", "p3.8xlarge", "p3.16xlarge",
    "p4d.24xlarge", "p5.48xlarge", "c5.4xlarge",
)  # fmt: skip
SERVER_TYPES = ("m5.xlarge", "c5.2xlarge", "c5n.xlarge", "m5.4xlarge", "g4dn.xlarge")
ZONES = (
    {"use1-az4": "us-east-1", "use1-az6": "us-east-1"},
    {"use1-az4": "us-east-1", "use2-az1": "us-east-2"},
    {"use1-az4": "us-east-1", "use1-az6": "us-east-1", "use2-az1": "us-east-2"},
)
INTERRUPTION = (None, 0.025, 0.075, 0.175, 0.3, 0.7)
QUOTA_CLASSES = ("standard", "g-vt", "p", "p5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A problem, what to minimise in it, and all of its fleets."""

    seed: int
    problem: Problem
    objective: Objective
    fleets: EveryFleet


def random_problem(strategy: Strategy, seed: int) -> Problem:
    """Return the problem of a seed."""
    return draw(strategy, seed).problem


def draw(strategy: Strategy, seed: int) -> Drawn:
    """Draw a problem; its deadline and budget are set by its fastest and its cheapest fleet."""
    dice = Dice(list(Strategy).index(strategy), seed)
    open_ended = _without_goals(dice, strategy)
    objective = Objective.COST if dice.chance(0.65) else Objective.TIME
    fleets = EveryFleet(open_ended)
    goal = _goal(dice, open_ended.job.goal, objective, fleets)
    problem = replace(open_ended, job=replace(open_ended.job, goal=goal))
    return Drawn(seed=seed, problem=problem, objective=objective, fleets=fleets)


def _goal(dice: Dice, goal: Goal, objective: Objective, fleets: EveryFleet) -> Goal:
    fastest, cheapest = fleets.best(Objective.TIME), fleets.best(Objective.COST)
    if fastest is None or cheapest is None:
        return goal
    late = dice.pick((0.97, 1.02, 1.02, 1.2, 1.2, 1.2, 2, 2, 2, 10))
    dear = dice.pick((0.98, 1.02, 1.02, 1.3, 1.3, 1.3, 3, 3))
    deadline_s = late * fastest.duration_s if dice.chance(0.8) else None
    within = fleets.best(Objective.COST, deadline_s=deadline_s) or cheapest
    is_budgeted = dice.chance(0.25 if objective is Objective.COST else 0.7)
    budget_usd = dear * within.cost_usd if is_budgeted else None
    return replace(goal, deadline_s=deadline_s, budget_usd=budget_usd)


def _without_goals(dice: Dice, strategy: Strategy) -> Problem:
    usable = WORKER_TYPES if strategy is not Strategy.ALLREDUCE else WORKER_TYPES[:-1]
    types = [catalog().instance_type(name) for name in dice.some(usable, dice.whole(2, 3))]
    zones = dice.pick(ZONES)
    offers = dice.some(_offers(dice, types, zones), dice.whole(5, 9))
    servers = _server_offers(dice, offers, zones) if strategy.uses_parameter_servers else []
    limits = _limits(dice, offers, servers)
    workload, target = random_workload(dice, strategy, types)
    pools = [offer.pool for offer in offers]
    excluded = dice.some(pools, 1) if dice.chance(0.1) else []
    limits = replace(
        limits,
        excluded_pools=dict.fromkeys(excluded),
        min_count_by_pool=_pins(dice, limits, [p for p in pools if p not in excluded]),
    )
    return Problem(
        job=JobSpec(name="drawn", workload=workload, goal=Goal(target=target), limits=limits),
        worker_offers=[offer for offer in offers if offer.pool not in excluded],
        server_offers=[offer for offer in servers if offer.pool not in excluded],
        gpu_facts=catalog().gpu,
        running=_running(dice, pools),
    )


# ----- the market


@cache
def _on_demand_usd(name: str) -> float:
    on_demand = frozenset({Market.ON_DEMAND})
    query = OfferQuery(instance_types=frozenset({name}), markets=on_demand)
    return catalog().offers(query)[0].price_usd_per_hour


def _offers(dice: Dice, types: Sequence[InstanceType], zones: Mapping[str, str]) -> list[Offer]:
    """Return every pool; on demand a region has one price, on spot zones may tie too."""
    found = []
    for kind in types:
        usual_usd = _on_demand_usd(kind.name) * dice.scale(0.5, 2)
        spot_fraction, ties = dice.scale(0.2, 1.1), dice.chance(0.3)
        by_region = {region: dice.between(0.8, 1.2) for region in zones.values()}
        taken = {region: dice.pick(INTERRUPTION) for region in zones.values()}
        for zone, region in zones.items():
            on_demand_usd = usual_usd * by_region[region]
            jitter = 1.0 if ties else dice.scale(0.7, 1.4)
            often = dice.pick(INTERRUPTION) if dice.chance(0.3) else taken[region]
            found += [
                _offer(kind, zone, region, on_demand_usd, None),
                replace(
                    _offer(kind, zone, region, on_demand_usd * spot_fraction * jitter, often),
                    market=Market.SPOT,
                ),
            ]
    return found


def _offer(kind: InstanceType, zone: str, region: str, usd: float, taken: float | None) -> Offer:
    return Offer(
        instance_type=kind,
        region=region,
        zone=zone,
        market=Market.ON_DEMAND,
        price_usd_per_hour=usd,
        interruption_fraction=taken,
    )


def _server_offers(dice: Dice, workers: Sequence[Offer], zones: Mapping[str, str]) -> list[Offer]:
    """Return where servers may be rented; in a pool of workers, at its price."""
    types = [catalog().instance_type(n) for n in dice.some(SERVER_TYPES, dice.whole(1, 3))]
    by_pool = {offer.pool: offer for offer in (*_offers(dice, types, zones), *workers)}
    names = {kind.name for kind in types}
    if dice.chance(0.15):
        names.add(workers[0].instance_type.name)
    offers = [offer for offer in by_pool.values() if offer.instance_type.name in names]
    if dice.chance(0.6):
        offers = [offer for offer in offers if offer.market is Market.ON_DEMAND] or offers
    return dice.some(offers, dice.whole(1, 4))


def _running(dice: Dice, pools: Sequence[Pool]) -> RunningFleet:
    if dice.chance(0.6):
        return RunningFleet()
    nodes = {pool: dice.whole(1, 4) for pool in dice.some(pools, dice.whole(1, 3))}
    return RunningFleet(nodes=nodes, switching_s=dice.pick((0.0, 300.0, 300.0, 3600.0, 36000.0)))


# ----- limits


def _limits(dice: Dice, offers: Sequence[Offer], servers: Sequence[Offer]) -> Limits:
    most_servers = dice.whole(1, 3)
    per_pool = dice.pick((None, None, None, None, None, 1, 2, 3, 4))
    max_nodes = dice.whole(5, 12)
    choices = max(1, len(servers) * most_servers)
    while choices * _fleet_count(len(offers), per_pool, max_nodes) > MOST_FLEETS:
        max_nodes -= 1
    rent = sum(offer.price_usd_per_hour for offer in offers) / len(offers) * max_nodes
    types = sorted({offer.instance_type.name for offer in (*offers, *servers)})
    return Limits(
        spot_parameter_servers=True,
        max_parameter_servers=most_servers,
        max_count_by_type={t: dice.whole(1, 6) for t in types if dice.chance(0.1)},
        max_count_per_pool=per_pool,
        max_vcpus=_quotas(dice, offers, servers) if dice.chance(0.3) else {},
        max_nodes=max_nodes,
        max_pools=dice.whole(1, 4) if dice.chance(0.2) else None,
        min_on_demand_fraction=dice.pick((0.1, 0.3, 0.5, 1.0)) if dice.chance(0.2) else 0.0,
        max_usd_per_hour={m: rent * dice.between(0.2, 1.0) for m in Market if dice.chance(0.1)},
        placement=dice.pick((*Placement, Placement.ONE_REGION, Placement.ANYWHERE)),
        network=dice.pick(list(NetworkRate)),
    )


def _fleet_count(pools: int, per_pool: int | None, max_nodes: int) -> int:
    """Return how many fleets of 1 to max_nodes nodes there are."""
    ways = np.zeros(max_nodes + 1, dtype=np.int64)
    ways[0] = 1
    for _ in range(pools):
        each = np.ones(min(per_pool or max_nodes, max_nodes) + 1, dtype=np.int64)
        ways = np.convolve(ways, each)[: max_nodes + 1]
    return int(ways.sum()) - 1


def _quotas(
    dice: Dice, offers: Sequence[Offer], servers: Sequence[Offer]
) -> dict[tuple[str, Market], int]:
    kinds = [offer.instance_type for offer in (*offers, *servers)]
    return {
        (name, market): int(dice.pick(same).vcpu_count) * dice.whole(2, 8)
        for name in QUOTA_CLASSES
        for same in [[kind for kind in kinds if kind.quota_class == name]]
        for market in Market
        if same and dice.chance(0.4)
    }


def _pins(dice: Dice, limits: Limits, pools: Sequence[Pool]) -> dict[Pool, int]:
    if dice.chance(0.9):
        return {}
    pins = dice.some(pools, dice.whole(1, 2))
    if limits.placement is Placement.ONE_ZONE:
        pins = [pool for pool in pins if pool.zone == pins[0].zone]
    return {pool: dice.whole(1, min(2, limits.max_count_per_pool or 2)) for pool in pins}
