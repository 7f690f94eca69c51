"""Make sure that pinned pools are what a job may rent, as far as that takes a catalog to tell."""

from spotwright.domain.errors import PinnedPoolError
from spotwright.domain.job import JobSpec, Limits, Placement
from spotwright.domain.offer import OfferQuery, Pool
from spotwright.domain.pins import pin_clash
from spotwright.usecases.ports import OfferSource


def check_pins(job: JobSpec, source: OfferSource) -> None:
    """Raise PinnedPoolError for the first pin in a region, or with a GPU, that the limits forbid.

    Names must have been checked. Whether a pool is offered today is left to the planner.
    """
    limits = job.limits
    regions = {pool: _region(pool, limits, source) for pool in limits.min_count_by_pool}
    for pool, region in regions.items():
        if limits.regions and region not in limits.regions:
            raise pin_clash(pool, f"{region} is not in limits.regions")
        gpu = source.instance_type(pool.instance_type).gpu_name
        if limits.gpus and gpu not in limits.gpus:
            raise pin_clash(pool, f"{gpu or 'a type without GPUs'} is not in limits.gpus")
    if limits.placement is not Placement.ANYWHERE and len(set(regions.values())) > 1:
        there = ", ".join(sorted(set(regions.values())))
        text = f"pins in {there} need another limits.placement than {limits.placement}"
        raise PinnedPoolError(text, pool=str([*regions][-1]))


def _region(pool: Pool, limits: Limits, source: OfferSource) -> str:
    query = OfferQuery(cloud=limits.cloud, zones=frozenset({pool.zone}), include_retired=True)
    return source.offers(query)[0].region  # a catalog knows its zones from their prices
