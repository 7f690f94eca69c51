"""Spot prices: the newest observation of each type in each zone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from spotwright.adapters.aws.refusals import asking

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import SpotPriceTypeDef

    from spotwright.adapters.aws.connection import RegionClients
    from spotwright.adapters.aws.zones import Zones

_PRODUCT = "Linux/UNIX"


@dataclass(frozen=True, slots=True)
class SpotPrices:
    """The price per hour in USD by (type, zone id), and what had to be left out."""

    usd_per_hour: Mapping[tuple[str, str], float]
    notes: tuple[str, ...] = ()


def fetch_spot_prices(
    clients: RegionClients, *, types: Collection[str], zones: Zones, now: datetime
) -> SpotPrices:
    """Return the prices in force now; a history from `now` on holds just those."""
    with asking("ec2:DescribeSpotPriceHistory", region=clients.region):
        pages = clients.ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=sorted(types),  # type: ignore[arg-type]  # the stubs list known names
            ProductDescriptions=[_PRODUCT],
            StartTime=now,
        )
        return read_spot_prices((price for p in pages for price in p["SpotPriceHistory"]), zones)


def read_spot_prices(history: Iterable[SpotPriceTypeDef], zones: Zones) -> SpotPrices:
    """Read the newest price per type and zone from DescribeSpotPriceHistory records."""
    newest: dict[tuple[str, str], SpotPriceTypeDef] = {}
    strangers: set[str] = set()
    for record in history:
        zone = zones.id_by_name.get(record["AvailabilityZone"])
        if zone is None:
            strangers.add(record["AvailabilityZone"])
            continue
        key = (record["InstanceType"], zone)
        if key not in newest or record["Timestamp"] > newest[key]["Timestamp"]:
            newest[key] = record
    notes = (
        f"left out spot prices in {z}: no such zone in this account" for z in sorted(strangers)
    )
    return SpotPrices({key: _usd(r["SpotPrice"]) for key, r in newest.items()}, tuple(notes))


def _usd(text: str) -> float:
    price = float(text)
    if not 0 < price < math.inf:
        raise ValueError(f"{text!r} is not a price")
    return price
