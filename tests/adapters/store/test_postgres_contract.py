"""PostgreSQL keeps the contract of every store."""

from collections.abc import Callable

import pytest

from spotwright.adapters.store.sql_store import open_store as open_sql_store
from spotwright.usecases.store_ports import Store
from tests.contracts.store import StoreContract
from tests.postgres_server import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_store(self, postgres_url: str) -> Callable[[], Store]:
        return lambda: open_sql_store(postgres_url)
