from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spotwright.adapters.catalog.snapshot_file import write_snapshot
from spotwright.client import Client
from spotwright.domain.catalog import Snapshot
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import OfferQuery
from spotwright.usecases.ports import OfferSource
from tests.contracts.offer_source import OfferSourceContract, small_market
from tests.served_planner import ServedPlanner, served_planner


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("market")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[ServedPlanner]:
    write_snapshot(folder / "market.json", small_market())
    catalog = {"SPOTWRIGHT_CATALOG": str(folder / "market.json")}
    with served_planner(folder, environment=catalog) as served:
        yield served


@pytest.fixture
def client(served: ServedPlanner) -> Iterator[Client]:
    with Client(served.address) as client:
        yield client


class TestRemoteCatalog(OfferSourceContract):
    """A client, a server and a worker process are a source of offers as good as any."""

    @pytest.fixture
    def source(self, client: Client) -> OfferSource:
        return client.catalog(Cloud.AWS)


def test_a_catalog_refreshed_on_disk_is_what_the_next_answer_is_from(
    client: Client, folder: Path
) -> None:
    catalog, market = client.catalog(), small_market()
    file, before = folder / "market.json", catalog.offers(OfferQuery())
    try:
        write_snapshot(file, _dearer(market))
        after = catalog.offers(OfferQuery())
    finally:
        write_snapshot(file, market)

    prices = {str(offer.pool): offer.price_usd_per_hour for offer in before}
    assert {str(offer.pool): offer.price_usd_per_hour / 2 for offer in after} == prices


def _dearer(market: Snapshot) -> Snapshot:
    prices = tuple(
        replace(
            price,
            on_demand_usd_per_hour=_doubled(price.on_demand_usd_per_hour),
            spot_usd_per_hour=_doubled(price.spot_usd_per_hour),
        )
        for price in market.prices
    )
    return replace(market, prices=prices)


def _doubled(price: float | None) -> float | None:
    return None if price is None else 2 * price
