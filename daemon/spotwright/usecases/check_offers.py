"""Make sure that every role of a job has something to rent, and say which limits leave nothing."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from spotwright.domain.errors import NoFeasibleFleetError
from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.offer import OfferQuery
from spotwright.domain.workload import Strategy
from spotwright.planner.problem import Problem
from spotwright.usecases.list_offers import worker_offers
from spotwright.usecases.ports import OfferSource

_FILTERS = {
    "exclude_pools": "excluded_pools",
    "exclude_types": "excluded_types",
    "max_price": "max_price_by_type_usd_per_hour",
    "markets": "markets",
    "zones": "zones",
    "regions": "regions",
    "types": "instance_types",
    "gpus": "gpus",
}


def check_offers(problem: Problem, source: OfferSource, *, now: datetime | None) -> None:
    """Raise NoFeasibleFleetError where a role has nothing to choose from: no figure would help."""
    job, clashes = problem.job, []
    strategy = job.workload.strategy
    if not problem.worker_offers and strategy is not Strategy.SERVERLESS:
        clashes.append(_no_workers(job, source, now))
    if not problem.server_offers and strategy is not Strategy.ALLREDUCE:
        clashes.append(
            "nothing is on offer for parameter servers: look at limits.parameter_server_types, "
            "regions, zones and max_price"
        )
    offered = {offer.pool for offer in problem.worker_offers}
    clashes += [
        f"limits.pin_pools: {pool} is not on offer"
        for pool in sorted(job.limits.min_count_by_pool)
        if pool not in offered
    ]
    if clashes:
        raise NoFeasibleFleetError(clashes=clashes, changes=())


def without_price(job: JobSpec, source: OfferSource) -> Iterator[str]:
    """Say of each type that the job names whether nobody knows its price there."""
    limits = job.limits
    places = " or ".join(sorted(limits.zones or limits.regions)) or "the catalog"
    markets = " or ".join(sorted(limits.markets))
    for name in sorted(limits.instance_types - limits.excluded_types):
        query = OfferQuery(
            cloud=limits.cloud,
            instance_types=frozenset({name}),
            regions=limits.regions,
            zones=limits.zones,
            markets=limits.markets,
        )
        if not source.offers(query):
            yield f"{name} has no {markets} price in {places}"


def _no_workers(job: JobSpec, source: OfferSource, now: datetime | None) -> str:
    """Say which types have no price, and which limits, each by itself, leave no pool."""
    usual, found = Limits(), [*without_price(job, source)]
    for name, field_name in _FILTERS.items():
        changes: dict[str, Any] = {field_name: getattr(usual, field_name)}
        without = replace(job, limits=replace(job.limits, **changes))
        pools = len(worker_offers(without, source, now=now))
        if pools:
            found.append(f"without limits.{name} there would be {pools} pools")
    if found:
        return f"nothing is on offer for workers: {'; '.join(found)}"
    return (
        "nothing is on offer for workers: no type has the GPU memory, or several limits together "
        "leave none"
    )
