"""Where fleets may stand, nothing left out: the market as it is offered.

The exact search leaves out pools and servers that cannot be part of a better fleet; here they all
stay, so that a mistake in those rules shows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spotwright.domain.errors import MissingFactError
from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import JobSpec, Placement
from spotwright.domain.offer import Offer
from spotwright.domain.plan import Objective
from spotwright.domain.workload import ParameterServing
from spotwright.perfmodel.step_model import WorkerClass, worker_class
from spotwright.planner.context import Context
from spotwright.planner.placements import place_of
from spotwright.planner.problem import Problem


@dataclass(frozen=True, slots=True)
class Place:
    """A zone, a region or the whole market: its worker pools and one choice of servers."""

    workers: tuple[WorkerClass, ...]
    servers: tuple[NodeGroup, ...]

    def context(
        self,
        problem: Problem,
        *,
        objective: Objective = Objective.COST,
        workers: Sequence[WorkerClass] | None = None,
    ) -> Context:
        """Return what evaluates fleets of all these pools, or of some of them."""
        return Context(
            problem.job,
            self.workers if workers is None else workers,
            self.servers,
            objective=objective,
            running=problem.running,
        )


def places(problem: Problem, placement: Placement) -> Iterator[Place]:
    """Yield every place with every type, zone and number of servers in it."""
    limits = problem.job.limits
    for workers, server_offers in _by_place(problem, placement):
        if not problem.job.workload.strategy.uses_parameter_servers:
            yield Place(workers, ())
            continue
        for offer in server_offers:
            for count in range(1, limits.max_parameter_servers + 1):
                yield Place(workers, (_servers(offer, count),))


def zones_with_own_servers(problem: Problem) -> Iterator[Place]:
    """Yield every zone with the servers that the job names: most papers choose workers only.

    They know one market without traffic between zones, so that each zone is one to them.
    """
    for workers, server_offers in _by_place(problem, Placement.ONE_ZONE):
        if not problem.job.workload.strategy.uses_parameter_servers:
            yield Place(workers, ())
        elif server_offers:
            yield Place(workers, (own_servers(problem.job, server_offers),))


def own_servers(job: JobSpec, offers: Sequence[Offer]) -> NodeGroup:
    """Return the servers that the job names, of any type where that is not offered, cheapest."""
    serving = job.workload.parameter_serving or ParameterServing()
    own = [offer for offer in offers if offer.instance_type.name == serving.default_type]
    cheapest = min(own or offers, key=lambda offer: (offer.price_usd_per_hour, offer.pool))
    return _servers(cheapest, min(serving.default_count, job.limits.max_parameter_servers))


def _servers(offer: Offer, count: int) -> NodeGroup:
    return NodeGroup(
        role=Role.PS,
        instance_type=offer.instance_type,
        node_count=count,
        gpus_per_node=0.0,
        offer=offer,
    )


def _by_place(
    problem: Problem, placement: Placement
) -> Iterator[tuple[tuple[WorkerClass, ...], list[Offer]]]:
    """Yield the workers and the server offers of each place that has every pinned pool."""
    workers = list(_known_workers(problem))
    for name in sorted({place_of(placement, offer) for offer, _ in workers}):
        inside = [
            (offer, worker) for offer, worker in workers if place_of(placement, offer) == name
        ]
        if set(problem.job.limits.min_count_by_pool) <= {offer.pool for offer, _ in inside}:
            servers = [o for o in problem.server_offers if place_of(placement, o) == name]
            yield tuple(worker for _, worker in inside), servers


def _known_workers(problem: Problem) -> Iterator[tuple[Offer, WorkerClass]]:
    """Yield a class per offer; offers whose speed nobody can tell are left out, unless all are."""
    job, known, unknown = problem.job, False, None
    for offer in problem.worker_offers:
        group = NodeGroup(
            role=Role.WORKER,
            instance_type=offer.instance_type,
            node_count=1,
            gpus_per_node=offer.instance_type.gpu_count,
            offer=offer,
        )
        try:
            worker = worker_class(job.workload, group, problem.gpu_facts, job.limits.network)
        except MissingFactError as error:
            unknown = error
        else:
            known = True
            yield offer, worker
    if unknown is not None and not known:
        raise unknown
