"""Which offers a job's limits allow."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.domain.errors import MemoryDoesNotFitError
from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.domain.workload import GlobalBatch
from spotwright.perfmodel.batch import batch_per_gpu
from spotwright.perfmodel.memory import check_memory
from spotwright.usecases.ports import OfferSource


def worker_offers(
    job: JobSpec, source: OfferSource, *, now: datetime | None = None
) -> Sequence[Offer]:
    """Return what a job may rent as workers and its GPUs can hold, cheapest first.

    Without `now`, pools that cool down count as excluded still.
    """
    limits = job.limits
    query = replace(
        _query(limits),
        gpus=limits.gpus,
        instance_types=limits.instance_types,
        markets=limits.markets,
        with_gpu=None if limits.instance_types else True,
    )
    return [o for o in _allowed(limits, source.offers(query), now) if _has_room(job, o)]


def server_offers(
    job: JobSpec, source: OfferSource, *, now: datetime | None = None
) -> Sequence[Offer]:
    """Return what a job may rent as parameter servers: on-demand unless spot is allowed.

    Without `now`, pools that cool down count as excluded still. A job without servers gets none.
    """
    limits, serving = job.limits, job.workload.parameter_serving
    if serving is None:
        return []
    types = limits.parameter_server_types or frozenset({serving.default_type})
    markets = limits.markets if limits.spot_parameter_servers else frozenset({Market.ON_DEMAND})
    query = replace(_query(limits), instance_types=types, markets=markets)
    return _allowed(limits, source.offers(query), now)


def _query(limits: Limits) -> OfferQuery:
    return OfferQuery(cloud=limits.cloud, regions=limits.regions, zones=limits.zones)


def _allowed(limits: Limits, offers: Sequence[Offer], now: datetime | None) -> list[Offer]:
    ceilings = limits.max_price_by_type_usd_per_hour
    return [
        offer
        for offer in offers
        if offer.instance_type.name not in limits.excluded_types
        and not limits.excludes(offer.pool, now=now)
        and offer.price_usd_per_hour <= ceilings.get(offer.instance_type.name, float("inf"))
    ]


def _has_room(job: JobSpec, offer: Offer) -> bool:
    """Tell whether the workload fits, spread over as many nodes as the job allows."""
    instance_type, rule = offer.instance_type, job.workload.batch
    if isinstance(rule, GlobalBatch) or rule is None:
        batch = 1  # whatever fits is worked off in micro-batches
    else:
        batch = batch_per_gpu(job.workload, instance_type)
    gpu_count = max(instance_type.gpu_count, 1.0) * job.limits.max_nodes
    try:
        check_memory(job.workload, instance_type, batch_per_gpu=batch, gpu_count=gpu_count)
    except MemoryDoesNotFitError:
        return False
    return True
