"""The prices of one region in both markets, joined by type and zone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from spotwright.adapters.aws.on_demand_prices import fetch_on_demand_prices
from spotwright.adapters.aws.spot_prices import fetch_spot_prices
from spotwright.adapters.aws.zones import Zones, fetch_offered
from spotwright.domain.catalog import ZonePrice
from spotwright.domain.errors import OutsideWorldError

if TYPE_CHECKING:
    from spotwright.adapters.aws.connection import RegionClients


@dataclass(frozen=True, slots=True)
class RegionPrices:
    """What the types of one region cost in each zone, and what had to be left out."""

    prices: tuple[ZonePrice, ...]
    notes: tuple[str, ...]

    @property
    def spot_pools(self) -> frozenset[tuple[str, str]]:
        """The (type, zone id) pairs that have a spot price."""
        return frozenset((p.instance_type, p.zone) for p in self.prices if p.spot_usd_per_hour)


def fetch_region_prices(
    clients: RegionClients, *, types: Collection[str], zones: Zones, now: datetime
) -> RegionPrices:
    """Return the region's prices; a region without any in one market is taken for a failure.

    Raises:
        OutsideWorldError: a call failed, or AWS lists no spot or no on-demand prices.
    """
    region = clients.region
    offered = {(t, zone) for t, zone in fetch_offered(clients) if t in types and zone in zones.ids}
    _require(offered, "instance types", region)
    spot = fetch_spot_prices(clients, types=types, zones=zones, now=now)
    _require(spot.usd_per_hour, "spot prices", region)
    on_demand = {t: usd for t, usd in fetch_on_demand_prices(clients).items() if t in types}
    _require(on_demand, "on-demand prices", region)
    prices = zone_prices(region, offered=offered, on_demand=on_demand, spot=spot.usd_per_hour)
    return RegionPrices(prices, (*spot.notes, *_unpriced(region, offered, prices)))


def zone_prices(
    region: str,
    *,
    offered: Collection[tuple[str, str]],
    on_demand: Mapping[str, float],
    spot: Mapping[tuple[str, str], float],
) -> tuple[ZonePrice, ...]:
    """Join both markets; the on-demand price holds in every zone that offers the type."""
    on_demand_pools = {pool: on_demand[pool[0]] for pool in offered if pool[0] in on_demand}
    return tuple(
        ZonePrice(pool[0], region, pool[1], on_demand_pools.get(pool), spot.get(pool))
        for pool in sorted(on_demand_pools.keys() | spot.keys())
    )


def _require(found: Collection[object], what: str, region: str) -> None:
    if not found:
        raise OutsideWorldError(
            f"AWS answered but listed no {what} for {region}; check the region's name and that "
            f"the account has it enabled, or refresh without it"
        )


def _unpriced(
    region: str, offered: Collection[tuple[str, str]], prices: Collection[ZonePrice]
) -> list[str]:
    priced = {price.instance_type for price in prices}
    names = sorted({name for name, _ in offered} - priced)
    return [f"left out in {region}, offered without a price: {', '.join(names)}"] if names else []
