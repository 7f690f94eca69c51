"""Which offers a job's limits allow."""

from collections.abc import Sequence
from dataclasses import replace

from spotwright.domain.job import Limits
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.usecases.ports import OfferSource


def worker_offers(limits: Limits, source: OfferSource) -> Sequence[Offer]:
    """Return what may be rented as workers, cheapest first."""
    query = replace(
        _query(limits),
        gpus=limits.gpus,
        instance_types=limits.instance_types,
        markets=limits.markets,
        with_gpu=None if limits.instance_types else True,
    )
    return _affordable(limits, source.offers(query))


def server_offers(limits: Limits, source: OfferSource, *, default_type: str) -> Sequence[Offer]:
    """Return what may be rented as parameter servers: on-demand unless spot is allowed."""
    types = limits.parameter_server_types or frozenset({default_type})
    markets = limits.markets if limits.spot_parameter_servers else frozenset({Market.ON_DEMAND})
    return _affordable(
        limits, source.offers(replace(_query(limits), instance_types=types, markets=markets))
    )


def _query(limits: Limits) -> OfferQuery:
    return OfferQuery(cloud=limits.cloud, regions=limits.regions, zones=limits.zones)


def _affordable(limits: Limits, offers: Sequence[Offer]) -> list[Offer]:
    ceilings = limits.max_price_by_type_usd_per_hour
    return [
        offer
        for offer in offers
        if offer.instance_type.name not in limits.excluded_types
        and offer.price_usd_per_hour <= ceilings.get(offer.instance_type.name, float("inf"))
    ]
