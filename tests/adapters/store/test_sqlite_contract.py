"""SQLite keeps the contract of every store."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spotwright.adapters.store.sql_store import open_store as open_sql_store
from spotwright.usecases.store_ports import Store
from tests.contracts.store import StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: open_sql_store(f"sqlite:///{tmp_path}/made/if/absent/store.db")
