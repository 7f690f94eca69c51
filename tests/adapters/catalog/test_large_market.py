"""A market ten times the largest of today, against an oracle that walks its price list."""

from dataclasses import replace

import pytest

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.catalog import Snapshot
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market, OfferQuery

OFFER_COUNT = 500_000
QUERY = OfferQuery(
    gpus=frozenset({"T4", "A10G"}),
    regions=frozenset({"us-east-1-copy0", "us-west-2-copy1"}),
    markets=frozenset({Market.SPOT}),
    max_price_usd_per_hour=2.0,
)


def large_market() -> Snapshot:
    """Return the bundled AWS market, copied to new regions until it has that many offers."""
    bundled = load_snapshot(bundled_path(Cloud.AWS))
    rows = [p for p in bundled.prices if p.on_demand_usd_per_hour and p.spot_usd_per_hour]
    copies = [
        replace(row, region=f"{row.region}-copy{number}", zone=f"{row.zone}-copy{number}")
        for number in range(OFFER_COUNT // (2 * len(rows)) + 1)
        for row in rows
    ]
    times = dict.fromkeys((row.region for row in copies), bundled.catalog_time)
    return replace(bundled, prices=tuple(copies[: OFFER_COUNT // 2]), price_times=times)


def by_walking_the_list(market: Snapshot) -> list[tuple[float, str, str]]:
    types = market.instance_types
    return sorted(
        (row.spot_usd_per_hour, row.instance_type, row.zone)
        for row in market.prices
        if row.region in QUERY.regions
        and types[row.instance_type].gpu_name in QUERY.gpus
        and not types[row.instance_type].retired
        and row.spot_usd_per_hour is not None
        and row.spot_usd_per_hour <= 2.0
    )


@pytest.mark.soak
def test_half_a_million_offers_are_all_there_and_a_query_finds_what_walking_them_finds() -> None:
    market = large_market()
    catalog = Catalog(market)

    found = catalog.offers(QUERY)

    assert len(catalog.offers(OfferQuery(include_retired=True))) == OFFER_COUNT
    assert found
    assert [
        (offer.price_usd_per_hour, offer.instance_type.name, offer.zone) for offer in found
    ] == by_walking_the_list(market)
