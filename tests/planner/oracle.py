"""Every fleet there is, one by one: what a search must agree with.

Nothing is taken from the planner. No offer is left out as no better than another, limits are read
from the job by plain code, and whatever they allow is evaluated.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import MissingFactError
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.job import Limits, Placement
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Objective
from spotwright.domain.quota import QUOTA_CODES
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.fleets import FleetEvaluator
from spotwright.perfmodel.step_model import WorkerClass, worker_class
from spotwright.planner.problem import Problem

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The fleet that no other beats."""

    fleet: Fleet
    cost_usd: float  # with what switching to it costs
    duration_s: float

    def value(self, objective: Objective) -> float:
        return self.cost_usd if objective is Objective.COST else self.duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """All fleets of one placement with one choice of servers that keep every limit."""

    workers: Sequence[NodeGroup]
    servers: tuple[NodeGroup, ...]
    counts: Floats  # (pools, fleets)
    cost_usd: Floats
    duration_s: Floats


class EveryFleet:
    """What all fleets that a problem's limits allow cost, and how long they take."""

    def __init__(self, problem: Problem) -> None:
        """Evaluate them all; the goal's deadline and budget are not looked at."""
        self._sites = [
            _evaluated(problem, workers, servers)
            for place in sorted({_place(problem, o) for o in problem.worker_offers})
            for workers in [_classes(problem, place)]
            for servers in _servers(problem, place)
            if workers
        ]
        self.fleet_count = sum(site.counts.shape[1] for site in self._sites)

    def best(
        self,
        objective: Objective,
        *,
        deadline_s: float | None = None,
        budget_usd: float | None = None,
    ) -> Best | None:
        """Return the cheapest or the fastest fleet that keeps both goals, or None."""
        found: Best | None = None
        for site in self._sites:
            cost, duration = site.cost_usd, site.duration_s
            kept = duration <= (deadline_s or math.inf) * (1 + _ROUNDING)
            kept &= cost <= (budget_usd or math.inf) * (1 + _ROUNDING)
            value = np.where(kept, cost if objective is Objective.COST else duration, np.inf)
            i = int(np.argmin(value)) if len(value) else 0
            if len(value) and value[i] < (found.value(objective) if found else math.inf):
                found = Best(
                    fleet=_fleet(site, i), cost_usd=float(cost[i]), duration_s=float(duration[i])
                )
        return found

    def in_order(self, objective: Objective, *, deadline_s: float) -> Iterator[Best]:
        """Yield every fleet that keeps a deadline, best first."""
        found = [
            (float(value), site, int(i))
            for site in self._sites
            for i in np.flatnonzero(site.duration_s <= deadline_s * (1 + _ROUNDING))
            for value in [(site.cost_usd if objective is Objective.COST else site.duration_s)[i]]
        ]
        for _, site, i in sorted(found, key=lambda item: item[0]):
            cost_usd, duration_s = float(site.cost_usd[i]), float(site.duration_s[i])
            yield Best(fleet=_fleet(site, i), cost_usd=cost_usd, duration_s=duration_s)


def switching_usd(problem: Problem, fleet: Fleet) -> float:
    """Return the rent of new nodes before they train, where anything runs already."""
    running = problem.running
    if not running.nodes:
        return 0.0
    usd = 0.0
    for group in fleet.workers:
        assert group.offer is not None
        new = max(0, group.node_count - running.nodes.get(group.offer.pool, 0))
        usd += new * group.offer.price_usd_per_hour * running.switching_s / 3600
    return usd


def _place(problem: Problem, offer: Offer) -> str:
    by_placement = {
        Placement.ONE_ZONE: offer.zone,
        Placement.ONE_REGION: offer.region,
        Placement.ANYWHERE: "anywhere",
    }
    return by_placement[problem.job.limits.placement]


def _classes(problem: Problem, place: str) -> list[WorkerClass]:
    """Return a class for every offer in a place whose speed is known."""
    job, found = problem.job, []
    for offer in problem.worker_offers:
        group = _nodes(Role.WORKER, offer, 1)
        if _place(problem, offer) == place:
            try:
                found.append(
                    worker_class(job.workload, group, problem.gpu_facts, job.limits.network)
                )
            except MissingFactError:
                continue
    return found


def _servers(problem: Problem, place: str) -> Iterator[tuple[NodeGroup, ...]]:
    if problem.job.workload.strategy is Strategy.ALLREDUCE:
        yield ()
        return
    for offer in problem.server_offers:
        if _place(problem, offer) == place:
            for count in range(1, problem.job.limits.max_parameter_servers + 1):
                yield (_nodes(Role.PS, offer, count),)


def _nodes(role: Role, offer: Offer, count: int) -> NodeGroup:
    return NodeGroup(
        role=role,
        instance_type=offer.instance_type,
        node_count=count,
        gpus_per_node=offer.instance_type.gpu_count if role is Role.WORKER else 0.0,
        offer=offer,
    )


def _evaluated(
    problem: Problem, workers: Sequence[WorkerClass], servers: tuple[NodeGroup, ...]
) -> _Site:
    job, groups = problem.job, [worker.group for worker in workers]
    counts = _all_counts(job.limits, len(workers), sum(s.node_count for s in servers))
    counts = counts[:, _allowed(job.limits, groups, servers, counts)]
    cost, duration = np.empty(0), np.empty(0)
    if counts.shape[1]:
        evaluator = FleetEvaluator(job, workers, servers, most_workers=job.limits.max_nodes)
        figures = evaluator.evaluate(counts)
        meant = figures.in_fitted_range & figures.fits_memory & np.isfinite(figures.cost_usd)
        counts, duration = counts[:, meant], figures.duration_s[meant]
        cost = figures.cost_usd[meant] + _switching(problem, groups, counts)
    return _Site(workers=groups, servers=servers, counts=counts, cost_usd=cost, duration_s=duration)


def _switching(problem: Problem, groups: Sequence[NodeGroup], counts: Floats) -> Floats:
    usd = np.zeros(counts.shape[1])
    running = problem.running
    for offer, row in zip(_offers(groups), counts, strict=True):
        if running.nodes:
            new = np.maximum(row - running.nodes.get(offer.pool, 0), 0.0)
            usd += new * offer.price_usd_per_hour * running.switching_s / 3600
    return usd


def _all_counts(limits: Limits, pools: int, server_count: int) -> Floats:
    """Return every way to rent nodes, (pools, fleets), by the counts that are limited alone."""
    most = limits.max_nodes - server_count
    each = np.arange(min(limits.max_count_per_pool or limits.max_nodes, max(most, 0)) + 1.0)
    fleets = np.zeros((0, 1))
    for _ in range(pools):
        old = np.repeat(fleets, len(each), axis=1)
        fleets = np.vstack((old, np.tile(each, fleets.shape[1])))
        fleets = fleets[:, fleets.sum(axis=0) <= most]
    return fleets[:, fleets.sum(axis=0) >= 1]


def _allowed(
    limits: Limits, workers: Sequence[NodeGroup], servers: Sequence[NodeGroup], counts: Floats
) -> Mask:
    """Return which fleets keep the limits that are not on single counts."""
    offers, kept = _offers(workers), np.ones(counts.shape[1], dtype=np.bool_)
    kept &= _on_demand(limits, offers, counts) & _pins(limits, offers, counts)
    kept &= _vcpus(limits, workers, servers, counts) & _rent(limits, workers, servers, counts)
    if limits.max_pools is not None:
        kept &= (counts > 0).sum(axis=0) <= limits.max_pools
    for name, most in limits.max_count_by_type.items():
        kept &= _sum(counts, [float(o.instance_type.name == name) for o in offers]) <= most
    return kept


def _on_demand(limits: Limits, offers: Sequence[Offer], counts: Floats) -> Mask:
    on_demand = _sum(counts, [float(offer.market is Market.ON_DEMAND) for offer in offers])
    return on_demand >= limits.min_on_demand_fraction * counts.sum(axis=0) - _ROUNDING


def _pins(limits: Limits, offers: Sequence[Offer], counts: Floats) -> Mask:
    kept = np.ones(counts.shape[1], dtype=np.bool_)
    for pool, least in limits.min_count_by_pool.items():
        kept &= _sum(counts, [float(offer.pool == pool) for offer in offers]) >= least
    return kept


def _vcpus(
    limits: Limits, workers: Sequence[NodeGroup], servers: Sequence[NodeGroup], counts: Floats
) -> Mask:
    kept = np.ones(counts.shape[1], dtype=np.bool_)
    for (quota_class, market), most in limits.max_vcpus.items():
        code = QUOTA_CODES[quota_class, market]
        for region in {offer.region for offer in _offers((*workers, *servers))}:
            each = [_vcpus_used(offer, code, market, region) for offer in _offers(workers)]
            by_servers = sum(
                server.node_count * _vcpus_used(offer, code, market, region)
                for server, offer in zip(servers, _offers(servers), strict=True)
            )
            kept &= _sum(counts, each) + by_servers <= most
    return kept


def _vcpus_used(offer: Offer, code: str, market: Market, region: str) -> float:
    kind = offer.instance_type
    counted = QUOTA_CODES.get((kind.quota_class or "", market)) == code
    here = offer.market is market and offer.region == region
    return kind.vcpu_count if counted and here else 0.0


def _rent(
    limits: Limits, workers: Sequence[NodeGroup], servers: Sequence[NodeGroup], counts: Floats
) -> Mask:
    kept = np.ones(counts.shape[1], dtype=np.bool_)
    for market, most in limits.max_usd_per_hour.items():
        rents = [o.price_usd_per_hour if o.market is market else 0.0 for o in _offers(workers)]
        by_servers = sum(s.usd_per_hour or 0.0 for s in servers if s.market is market)
        kept &= _sum(counts, rents) + by_servers <= most * (1 + _ROUNDING)
    return kept


def _sum(counts: Floats, weights: Sequence[float]) -> Floats:
    return np.asarray(np.array(weights) @ counts)


def _offers(groups: Sequence[NodeGroup]) -> list[Offer]:
    return [group.offer for group in groups if group.offer is not None]


def _fleet(site: _Site, i: int) -> Fleet:
    counts = site.counts[:, i].astype(int).tolist()
    chosen = [replace(g, node_count=n) for g, n in zip(site.workers, counts, strict=True) if n]
    return Fleet(nodes=(*chosen, *site.servers))
