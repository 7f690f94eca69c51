import pytest

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.usecases.ports import OfferSource
from tests.contracts.offer_source import OfferSourceContract, small_market


class TestCatalog(OfferSourceContract):
    @pytest.fixture
    def source(self) -> OfferSource:
        return Catalog(small_market())
