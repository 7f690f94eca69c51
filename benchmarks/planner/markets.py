"""Markets to search: the bundled catalog, the same at other prices, and larger ones made of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.offer import Offer
from spotwright.planner.problem import Problem
from spotwright.usecases.list_offers import server_offers, worker_offers

SEED = 7
ONE_REGION = ("us-east-1",)
FIVE_REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "ap-northeast-1")
ZONES_PER_REGION = 3  # of made-up markets


@dataclass(frozen=True, slots=True)
class Market:
    """What a job may rent."""

    name: str
    workers: Sequence[Offer]
    servers: Sequence[Offer]


@cache
def catalog(cloud: Cloud = Cloud.AWS) -> Catalog:
    """Return the catalog that ships with the program, whatever the user refreshed since."""
    return Catalog(load_snapshot(bundled_path(cloud)))


def bundled_problem(job: JobSpec, regions: Collection[str]) -> Problem:
    """Return a job with all pools of some regions, in both markets."""
    job = replace(job, limits=replace(job.limits, regions=frozenset(regions)))
    return Problem(
        job=job,
        worker_offers=worker_offers(job, catalog()),
        server_offers=server_offers(job, catalog()),
        gpu_facts=catalog().gpu,
    )


def quotas(count: int) -> dict[str, int]:
    """Return the same quota for every GPU type."""
    return {kind.name: count for kind in catalog().instance_types() if kind.gpu_count}


def repriced(offers: Sequence[Offer], *, seed: int, spread: float = 0.1) -> list[Offer]:
    """Return the same pools, every price moved by a factor drawn from a log-normal."""
    factors = np.exp(np.random.default_rng(seed).normal(0.0, spread, len(offers)))
    return [
        replace(offer, price_usd_per_hour=offer.price_usd_per_hour * float(factor))
        for offer, factor in zip(offers, factors, strict=True)
    ]


def synthetic_problem(job: JobSpec, *, pool_count: int, seed: int = SEED) -> Problem:
    """Return a job with so many pools: bundled types in made-up regions at moved prices.

    Fewer pools than one zone offers are drawn from it; more come from as many zones as it takes.
    """
    base = bundled_problem(job, ONE_REGION)
    kinds = {(o.instance_type.name, o.market): o for o in reversed(base.worker_offers)}
    zone_count = -(-pool_count // len(kinds))
    pools = [
        _moved(offer, number) for number in range(zone_count) for _, offer in sorted(kinds.items())
    ]
    drawn = np.random.default_rng(seed).permutation(len(pools))[:pool_count]
    regions = sorted({offer.region for offer in pools})
    servers = {offer.instance_type.name: offer for offer in base.server_offers}
    return replace(
        base,
        job=replace(job, limits=_anywhere(job.limits)),
        worker_offers=repriced([pools[i] for i in sorted(drawn.tolist())], seed=seed),
        server_offers=[
            replace(offer, region=region, zone=f"{region}-zone0")
            for region in regions
            for offer in servers.values()
        ],
    )


def _moved(offer: Offer, number: int) -> Offer:
    region = f"region{number // ZONES_PER_REGION}"
    return replace(offer, region=region, zone=f"{region}-zone{number % ZONES_PER_REGION}")


def _anywhere(limits: Limits) -> Limits:
    return replace(limits, regions=frozenset(), zones=frozenset())
