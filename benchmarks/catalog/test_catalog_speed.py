"""How fast the catalog is read and asked.

Targets: 50 ms to read the bundled AWS snapshot and build its index, 10 ms for a selective query
over 50,000 offers. The large markets are copies of the bundled one, so nothing in them is random.
On two shared virtual cores with Python 3.11 the medians were 10 to 15 ms and 0.3 ms.
"""

from dataclasses import replace
from functools import cache

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market, OfferQuery

SELECTIVE = OfferQuery(
    gpus=frozenset({"T4", "A10G"}),
    regions=frozenset({"us-east-1-copy0", "us-west-2-copy1"}),
    markets=frozenset({Market.SPOT}),
    max_price_usd_per_hour=2.0,
    min_gpu_memory_gib=16.0,
)


def load_catalog() -> Catalog:
    return Catalog(load_snapshot(bundled_path(Cloud.AWS)))


@cache
def replicated_market(offer_count: int) -> Snapshot:
    """Return the bundled AWS market, copied to new regions until it has that many offers."""
    bundled = load_snapshot(bundled_path(Cloud.AWS))
    rows = [p for p in bundled.prices if p.on_demand_usd_per_hour and p.spot_usd_per_hour]
    copies = -(-offer_count // (2 * len(rows)))
    prices = [_copy(row, number) for number in range(copies) for row in rows]
    times = dict.fromkeys((price.region for price in prices), bundled.catalog_time)
    return replace(bundled, prices=tuple(prices[: offer_count // 2]), price_times=times)


def _copy(row: ZonePrice, number: int) -> ZonePrice:
    return replace(row, region=f"{row.region}-copy{number}", zone=f"{row.zone}-copy{number}")


def expected_count(snapshot: Snapshot, query: OfferQuery) -> int:
    types = snapshot.instance_types
    return sum(
        row.region in query.regions
        and types[row.instance_type].gpu_name in query.gpus
        and types[row.instance_type].gpu_memory_gib >= 16.0
        and not types[row.instance_type].retired
        and (row.spot_usd_per_hour or 0.0) <= 2.0
        for row in snapshot.prices
    )


def test_time_to_load_the_bundled_aws_snapshot(benchmark: BenchmarkFixture) -> None:
    catalog = benchmark(load_catalog)

    assert len(catalog.instance_types()) == len(
        load_snapshot(bundled_path(Cloud.AWS)).instance_types
    )


@pytest.mark.parametrize("offer_count", [5_000, 20_000, 50_000])
def test_query_time_by_market_size(benchmark: BenchmarkFixture, offer_count: int) -> None:
    market = replicated_market(offer_count)
    catalog = Catalog(market)
    assert len(catalog.offers(OfferQuery(include_retired=True))) == offer_count

    found = benchmark(catalog.offers, SELECTIVE)

    assert len(found) == expected_count(market, SELECTIVE) > 0
    prices = [offer.price_usd_per_hour for offer in found]
    assert prices == sorted(prices)
