"""Where a fleet may stand: which pools may be mixed, and which servers go with them.

A placement is a zone, a region or the whole market; in it stand the worker pools that may be mixed
and one choice of parameter servers. Two kinds of choices are left out, and neither can be part of a
better fleet: servers that do the same work for more money, and pools that others of the same type,
market and region match in every respect (price, hazard, distance) with room for all nodes. Servers
that run already are kept.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from spotwright.domain.errors import MissingFactError
from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import JobSpec, Placement
from spotwright.domain.offer import Market, Offer, Pool
from spotwright.domain.workload import Contention, SpotdnnLoss, Strategy
from spotwright.perfmodel.interruption import hazard_per_hour
from spotwright.perfmodel.parameter_server import server_demand
from spotwright.perfmodel.step_model import WorkerClass, worker_class
from spotwright.planner.problem import Problem

# Price and hazard of each type and market in a zone.
_Facts = Mapping[tuple[str, Market], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Site:
    """One placement with its servers."""

    workers: tuple[WorkerClass, ...]
    servers: tuple[NodeGroup, ...]


def sites(
    problem: Problem, *, prices_matter: bool = True, keep: Set[Pool] = frozenset()
) -> list[Site]:
    """Return every placement that the job allows, with every sensible choice of servers.

    Pools that are pinned, or in `keep`, are never left out.
    """
    keep = keep | problem.job.limits.min_count_by_pool.keys()
    workers = _worker_classes(problem)
    found = []
    for place, inside in _places(problem.job, workers):
        if _lacks_pinned(problem.job, inside):
            continue
        kept: dict[str, tuple[WorkerClass, ...]] = {}  # by the servers' zone
        for servers in _server_choices(problem, place):
            zone = servers[0].offer.zone if servers and servers[0].offer else ""
            if zone not in kept:
                kept[zone] = _without_matched(problem, inside, servers, keep)
            found.append(Site(kept[zone], servers))
    apart = keep | problem.job.limits.max_count_by_pool.keys()  # those may lack room for all nodes
    return _without_dearer(problem.job, found, apart, prices_matter=prices_matter)


def _without_dearer(
    job: JobSpec, found: Sequence[Site], keep: Set[Pool], *, prices_matter: bool
) -> list[Site]:
    """Drop sites of one zone that another zone of the region matches pool by pool.

    On-demand prices are the same all over a region: six zones would be searched six times.
    """
    kept: list[Site] = []
    rivals: dict[object, list[_Facts]] = {}
    for site in found:
        offers = [group.offer for group in _groups(site) if group.offer]
        places = {(offer.region, offer.zone) for offer in offers}
        if len(places) > 1 or any(offer.pool in keep for offer in offers):
            kept.append(site)
            continue
        facts = {
            (g.instance_type.name, g.market): (
                g.offer.price_usd_per_hour if g.offer and prices_matter else 0.0,
                hazard_per_hour(job.workload, g),
            )
            for g in _groups(site)
        }
        servers = tuple((g.instance_type.name, g.node_count, g.market) for g in site.servers)
        others = rivals.setdefault((offers[0].region, servers), [])
        if not any(_matched(facts, other) for other in others):
            kept.append(site)
            others.append(facts)
    return kept


def _groups(site: Site) -> list[NodeGroup]:
    return [*(worker.group for worker in site.workers), *site.servers]


def _matched(mine: "_Facts", other: "_Facts") -> bool:
    """Tell whether another zone has every pool of mine, as cheap and as safe."""
    return all(
        kind in other and other[kind][0] <= price and other[kind][1] <= hazard
        for kind, (price, hazard) in mine.items()
    )


def _worker_classes(problem: Problem) -> list[WorkerClass]:
    """Return a class per offer; types whose speed nobody can tell are left out, unless all are."""
    job, unknown = problem.job, None
    by_type: dict[str, WorkerClass | None] = {}
    found = []
    for offer in sorted(problem.worker_offers, key=lambda offer: offer.pool):
        kind = offer.instance_type
        group = NodeGroup(
            role=Role.WORKER,
            instance_type=kind,
            node_count=1,
            gpus_per_node=kind.gpu_count,
            offer=offer,
        )
        if kind.name not in by_type:
            try:
                by_type[kind.name] = worker_class(
                    job.workload, group, problem.gpu_facts, job.limits.network
                )
            except MissingFactError as error:
                by_type[kind.name], unknown = None, error
        known = by_type[kind.name]
        if known is not None:
            found.append(replace(known, group=group))
    if not found and unknown is not None:
        raise unknown
    return found


def _places(
    job: JobSpec, workers: Sequence[WorkerClass]
) -> Iterator[tuple[str, list[WorkerClass]]]:
    """Yield the workers of each place; rings of one zone come apart from those across zones."""
    placements = {job.limits.placement}
    if job.workload.strategy is Strategy.ALLREDUCE and job.limits.max_nodes > 1:
        placements.add(Placement.ONE_ZONE)
    seen = set()
    for placement in sorted(placements):
        by_place: dict[str, list[WorkerClass]] = {}
        for worker in workers:
            offer = worker.group.offer
            assert offer is not None
            by_place.setdefault(place_of(placement, offer), []).append(worker)
        for place, inside in sorted(by_place.items()):
            members = frozenset(w.group.offer.pool for w in inside if w.group.offer)
            if members not in seen:
                seen.add(members)
                yield place, inside


def place_of(placement: Placement, offer: Offer) -> str:
    """Return the name of the place that a fleet with this offer is confined to."""
    match placement:
        case Placement.ONE_ZONE:
            return offer.zone
        case Placement.ONE_REGION:
            return offer.region
        case Placement.ANYWHERE:
            return ""


def _is_in(job: JobSpec, offer: Offer | None, place: str) -> bool:
    return offer is not None and place_of(job.limits.placement, offer) == place


def _lacks_pinned(job: JobSpec, workers: Sequence[WorkerClass]) -> bool:
    pools = {worker.group.offer.pool for worker in workers if worker.group.offer}
    return any(pool not in pools for pool in job.limits.min_count_by_pool)


def _server_choices(problem: Problem, place: str) -> Iterator[tuple[NodeGroup, ...]]:
    """Yield the servers worth trying in a place; one empty choice where none are needed."""
    job, workers = problem.job, {offer.pool for offer in problem.worker_offers}
    if job.workload.strategy is Strategy.ALLREDUCE:
        yield ()
        return
    running = _running_servers(problem)
    if running:
        if all(_is_in(job, group.offer, place) for group in running):
            yield running
        return
    best: dict[object, tuple[float, NodeGroup]] = {}
    for offer in sorted(problem.server_offers, key=lambda offer: offer.pool):
        if not _is_in(job, offer, place):
            continue
        for count in range(1, job.limits.max_parameter_servers + 1):
            group = NodeGroup(
                role=Role.PS,
                instance_type=offer.instance_type,
                node_count=count,
                gpus_per_node=0,
                offer=offer,
            )
            demand = server_demand(job.workload, (group,), job.limits.network)
            hazard = hazard_per_hour(job.workload, group) * count
            work = demand.bandwidth_mbps if _spotdnn(job) else demand
            shared = offer.pool if hazard and offer.pool in workers else None  # shocks take both
            key = (offer.zone, work, hazard, shared, _quota_use(job, group))
            price = offer.price_usd_per_hour * count
            if key not in best or price < best[key][0]:
                best[key] = (price, group)
    for _, group in best.values():
        yield (group,)


def _running_servers(problem: Problem) -> tuple[NodeGroup, ...]:
    """Return the servers that run, which hold the parameters; none if they may not be kept."""
    offers = {offer.pool: offer for offer in problem.server_offers}
    running = problem.running.servers
    too_many = sum(running.values()) > problem.job.limits.max_parameter_servers
    if too_many or not all(pool in offers for pool in running):
        return ()
    return tuple(
        NodeGroup(
            role=Role.PS,
            instance_type=offers[pool].instance_type,
            node_count=count,
            gpus_per_node=0,
            offer=offers[pool],
        )
        for pool, count in sorted(running.items())
    )


def _spotdnn(job: JobSpec) -> bool:
    """Tell whether the contention rule knows the servers by their bandwidth alone."""
    serving = job.workload.parameter_serving
    asynchronous = job.workload.strategy is Strategy.ASP_PS
    return asynchronous and serving is not None and serving.contention is Contention.SPOTDNN


def _quota_use(job: JobSpec, group: NodeGroup) -> object:
    """Return what a choice takes from limits, where there are any."""
    limits = job.limits
    counted = limits.max_vcpus or limits.max_usd_per_hour
    return (group.instance_type.name, group.node_count, group.market) if counted else None


def _without_matched(
    problem: Problem,
    workers: Sequence[WorkerClass],
    servers: Sequence[NodeGroup],
    keep: Set[Pool],
) -> tuple[WorkerClass, ...]:
    """Drop pools that others of the same type, market and region match with room for every node."""
    limits = problem.job.limits
    per_pool = min(limits.max_count_per_pool or limits.max_nodes, limits.max_nodes)
    needed = math.ceil(limits.max_nodes / per_pool)
    kept: list[WorkerClass] = []
    by_kind: dict[tuple[object, ...], list[tuple[float, ...]]] = {}
    apart = partial(_apart, problem.job)
    facts = [(_facts(problem, worker, servers), worker) for worker in workers]
    for mine, worker in sorted(facts, key=lambda pair: pair[0]):
        offer = worker.group.offer
        assert offer is not None
        kind = (offer.instance_type.name, offer.market, offer.region, apart(offer, mine[0]))
        others = by_kind.setdefault(kind, [])
        better = sum(all(a <= b for a, b in zip(other, mine, strict=True)) for other in others)
        if better < needed or offer.pool in keep:
            kept.append(worker)
        if offer.pool not in limits.max_count_by_pool:  # else it may lack room for every node
            others.append(mine)
    return tuple(sorted(kept, key=lambda w: str(w.group.offer.pool) if w.group.offer else ""))


def _apart(job: JobSpec, offer: Offer, distance: float) -> object:
    """Return what else must be equal for pools to be compared."""
    if job.workload.strategy is Strategy.ALLREDUCE:
        return offer.zone  # a ring pays for every zone that it visits
    if _spotdnn(job):
        return None  # that rule knows no distance: farther workers are as fast
    # By spotDNN's law a slower worker can make the loss fall faster, and at a queue a nearer one
    # with a small batch takes its turn from those with large ones.
    serving = job.workload.parameter_serving
    queues = serving is not None and serving.contention is Contention.QUEUEING
    asynchronous = job.workload.strategy is Strategy.ASP_PS
    return distance if asynchronous and (queues or _is_spotdnn_loss(job)) else None


def _is_spotdnn_loss(job: JobSpec) -> bool:
    return isinstance(job.workload.convergence, SpotdnnLoss)


def _facts(
    problem: Problem, worker: WorkerClass, servers: Sequence[NodeGroup]
) -> tuple[float, float, float]:
    """Return what pools of one type differ in, less being better: distance, price, hazard."""
    offer = worker.group.offer
    assert offer is not None
    hazard = hazard_per_hour(problem.job.workload, worker.group)
    return (_far(worker, servers), offer.price_usd_per_hour, hazard)


def _far(worker: WorkerClass, servers: Sequence[NodeGroup]) -> float:
    """Return 0 in the servers' zone, 1 in their region, 2 beyond: traffic and latency follow."""
    offer = worker.group.offer
    distances = [
        0.0 if s.offer.zone == offer.zone else 1.0 if s.offer.region == offer.region else 2.0
        for s in servers
        if s.offer and offer
    ]
    return max(distances, default=0.0)
