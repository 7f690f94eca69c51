"""Spot prices come from the cloud, on-demand prices from the catalog with their age."""

from dataclasses import replace

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.domain.offer import Market, Pool
from spotwright.domain.rental import GrantedFleet
from spotwright.usecases.rent_prices import RentPrices, catalog_prices, rent_prices
from tests.contracts.offer_source import EAST_TIME, small_market
from tests.fakes.memory_rented_fleets import MemoryRentedFleets
from tests.usecases.example_rental import G5_SPOT, M5, nodes, wanted_fleet, wanted_pool

CATALOG = Catalog(small_market())  # knows g5 spot at 0.42 and m5 at 0.192, both in use1-az1 only
NOTHING = GrantedFleet(nodes=(), groups=())


def prices_of(granted: GrantedFleet, *, region: str = "us-east-1") -> RentPrices:
    rented = MemoryRentedFleets(spot_prices={G5_SPOT: 0.31})
    wanted = replace(wanted_fleet(), region=region)
    return rent_prices(wanted, granted, rented=rented, catalog=CATALOG)


def test_each_market_has_its_own_source() -> None:
    found = prices_of(NOTHING)

    assert found.usd_per_hour == {G5_SPOT: 0.31, M5: 0.192}
    assert found.catalog_time == EAST_TIME


def test_what_runs_is_priced_beside_what_is_wanted() -> None:
    fallen = Pool("g5.xlarge", "use1-az4", Market.ON_DEMAND)

    found = prices_of(GrantedFleet(nodes=tuple(nodes(1, pool=fallen)), groups=()))

    assert found.usd_per_hour[fallen] == 1.006


def test_a_type_that_the_catalog_does_not_know_has_no_price() -> None:
    strange = Pool("z9.nano", "use1-az4", Market.ON_DEMAND)

    found = prices_of(GrantedFleet(nodes=tuple(nodes(1, pool=strange)), groups=()))

    assert strange not in found.usd_per_hour
    assert M5 in found.usd_per_hour


def test_a_region_that_the_catalog_does_not_know_has_no_on_demand_prices() -> None:
    found = prices_of(NOTHING, region="mars-north-1")

    assert found.usd_per_hour == {G5_SPOT: 0.31}
    assert found.catalog_time is None


def test_prices_of_spot_alone_need_no_catalog() -> None:
    wanted = replace(wanted_fleet(), pools=(wanted_pool(2),))

    found = rent_prices(wanted, NOTHING, rented=MemoryRentedFleets(), catalog=CATALOG)

    assert (found.usd_per_hour, found.catalog_time) == ({}, None)


def test_by_the_catalog_alone_spot_has_a_price_by_zone_and_on_demand_by_region() -> None:
    here, elsewhere = (Pool("g5.xlarge", f"use1-az{n}", Market.SPOT) for n in (1, 6))
    on_demand = Pool("g5.xlarge", "use1-az6", Market.ON_DEMAND)

    found = catalog_prices({here, elsewhere, on_demand}, CATALOG, region="us-east-1")

    assert found.usd_per_hour == {here: 0.42, on_demand: 1.006}
    assert found.catalog_time == EAST_TIME
