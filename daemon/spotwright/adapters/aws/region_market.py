"""All that AWS says of one region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from spotwright.adapters.aws.instance_types import fetch_instance_types
from spotwright.adapters.aws.placement import fetch_placement
from spotwright.adapters.aws.quotas import fetch_quotas
from spotwright.adapters.aws.region_prices import fetch_region_prices
from spotwright.adapters.aws.zones import fetch_zones
from spotwright.domain.catalog import QuotaKey, Snapshot, ZonePrice
from spotwright.domain.hardware import InstanceType

if TYPE_CHECKING:
    from spotwright.adapters.aws.connection import RegionClients


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionMarket:
    """Types, prices, quotas and scores of one region, with notes on what was left out."""

    region: str
    zones: frozenset[str]
    types: Mapping[str, InstanceType]
    prices: tuple[ZonePrice, ...]
    vcpu_quotas: Mapping[QuotaKey, int]
    placement_scores: Mapping[tuple[str, str], int]
    notes: tuple[str, ...]


def fetch_region_market(clients: RegionClients, *, last: Snapshot, now: datetime) -> RegionMarket:
    """Ask AWS about one region.

    Raises:
        OutsideWorldError: a call other than for placement scores failed, or a market is empty.
    """
    zones = fetch_zones(clients)
    described = fetch_instance_types(clients, last=last)
    types = described.types
    priced = fetch_region_prices(clients, types=types.keys(), zones=zones, now=now)
    quotas = fetch_quotas(clients, classes={t.quota_class for t in types.values() if t.quota_class})
    placement = fetch_placement(
        clients.ec2, region=clients.region, pools=priced.spot_pools, types=types
    )
    parts = (zones, described, priced, quotas, placement)
    return RegionMarket(
        region=clients.region,
        zones=zones.ids,
        types=types,
        prices=priced.prices,
        vcpu_quotas=quotas.vcpu_counts,
        placement_scores=placement.scores,
        notes=tuple(note for part in parts for note in part.notes),
    )
