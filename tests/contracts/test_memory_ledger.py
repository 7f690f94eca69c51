"""The ledger that tests use keeps the contract of every store."""

import pytest

from tests.contracts.store_ledger import LedgerContract
from tests.fakes.memory_ledger import MemoryLedger


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def store(self) -> MemoryLedger:
        return MemoryLedger()

    @pytest.fixture
    def other(self, store: MemoryLedger) -> MemoryLedger:
        return store
