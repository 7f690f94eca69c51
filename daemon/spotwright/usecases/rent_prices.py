"""What the nodes of a rented fleet cost per hour, and how old the prices are."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from spotwright.domain.errors import UnknownNameError
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market, Offer, OfferQuery, Pool
from spotwright.domain.rental import GrantedFleet, WantedFleet
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.rental_ports import RentedFleets


@dataclass(frozen=True, slots=True, kw_only=True)
class RentPrices:
    """The price of one node of each pool; what nobody tells is left out."""

    usd_per_hour: Mapping[Pool, float]
    catalog_time: datetime | None  # of the oldest of the catalog's; None: none is in use


def rent_prices(
    wanted: WantedFleet, granted: GrantedFleet, *, rented: RentedFleets, catalog: OfferSource
) -> RentPrices:
    """Return what the pools that are wanted or run cost.

    Spot prices are asked of the cloud: they move. Those of on-demand are the catalog's.
    """
    pools = {pool.pool for pool in wanted.pools} | {node.pool for node in granted.nodes}
    spot = {pool for pool in pools if pool.market is Market.SPOT}
    on_demand = catalog_prices(pools - spot, catalog, region=wanted.region)
    return RentPrices(
        usd_per_hour={**rented.spot_prices_usd_per_hour(spot), **on_demand.usd_per_hour},
        catalog_time=on_demand.catalog_time,
    )


def catalog_prices(pools: Collection[Pool], catalog: OfferSource, *, region: str) -> RentPrices:
    """Return what pools cost by a catalog. On-demand costs the same in all zones of a region."""
    prices: dict[Pool, float] = {}
    used: list[Offer] = []
    for name in sorted({pool.instance_type for pool in pools}):
        for offer in _offers(name, catalog, region=region):
            for pool in pools:
                if pool.instance_type == name and _is_price_of(offer, pool):
                    prices[pool] = offer.price_usd_per_hour
                    used.append(offer)
    return RentPrices(
        usd_per_hour=prices, catalog_time=catalog.oldest_price_time(used) if used else None
    )


def _offers(name: str, catalog: OfferSource, *, region: str) -> Collection[Offer]:
    query = OfferQuery(
        cloud=Cloud.AWS, instance_types=frozenset({name}), regions=frozenset({region})
    )
    try:
        return catalog.offers(query)
    except UnknownNameError:  # a type or a region that is not in the catalog has no price
        return ()


def _is_price_of(offer: Offer, pool: Pool) -> bool:
    if offer.market is not pool.market:
        return False
    return offer.market is Market.ON_DEMAND or offer.zone == pool.zone
