"""On-demand prices from the AWS price list, which has one price per type and region."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from spotwright.adapters.aws.refusals import asking

if TYPE_CHECKING:
    from mypy_boto3_pricing.type_defs import FilterTypeDef

    from spotwright.adapters.aws.connection import RegionClients

# Plain Linux on shared hardware, paid by the hour, without a capacity reservation.
_PRODUCT = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "operation": "RunInstances",
}


def fetch_on_demand_prices(clients: RegionClients) -> dict[str, float]:
    """Return the region's USD per hour by instance type."""
    with asking("pricing:GetProducts", region=clients.region):
        pages = clients.pricing.get_paginator("get_products").paginate(
            ServiceCode="AmazonEC2", FormatVersion="aws_v1", Filters=_filters(clients.region)
        )
        return read_price_list(entry for page in pages for entry in page["PriceList"])


def _filters(region: str) -> list[FilterTypeDef]:
    return [
        {"Type": "TERM_MATCH", "Field": field, "Value": value}
        for field, value in (_PRODUCT | {"regionCode": region}).items()
    ]


def read_price_list(entries: Iterable[str]) -> dict[str, float]:
    """Read GetProducts entries, each a JSON text; of two prices for a type the dearer counts."""
    prices: dict[str, float] = {}
    for entry in entries:
        product = json.loads(entry)
        name = product["product"]["attributes"]["instanceType"]
        for price in _hourly_usd(product["terms"].get("OnDemand", {})):
            prices[name] = max(price, prices.get(name, 0.0))
    return prices


def _hourly_usd(terms: Mapping[str, Any]) -> list[float]:
    """Return the hourly prices of OnDemand terms; entries at 0 USD are not for sale."""
    dimensions = [d for term in terms.values() for d in term["priceDimensions"].values()]
    prices = [float(d["pricePerUnit"].get("USD", 0)) for d in dimensions if d["unit"] == "Hrs"]
    return [price for price in prices if 0 < price < math.inf]
