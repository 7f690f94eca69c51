"""What every Store must do.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self) -> Callable[[], Store]: ...  # each call: another one on the same data

Data of earlier tests may be there: each test takes names of its own.
"""

from collections.abc import Callable, Iterator

import pytest

from spotwright.usecases.store_ports import Store
from tests.contracts.store_jobs import JobStoreContract
from tests.contracts.store_leases import LeaseStoreContract
from tests.contracts.store_ledger import LedgerContract
from tests.contracts.store_plans import PlanStoreContract
from tests.contracts.store_probes import ProbeContract
from tests.contracts.store_retention import RetentionContract
from tests.contracts.store_rollups import RollupContract
from tests.contracts.store_sessions import SessionContract
from tests.contracts.store_telemetry import TelemetryContract
from tests.contracts.store_tokens import TokenStoreContract


class StoreContract(
    PlanStoreContract,
    JobStoreContract,
    LedgerContract,
    LeaseStoreContract,
    SessionContract,
    ProbeContract,
    TelemetryContract,
    RollupContract,
    RetentionContract,
    TokenStoreContract,
):
    """Tests that a subclass inherits, given an `open_store` fixture."""

    @pytest.fixture
    def store(self, open_store: Callable[[], Store]) -> Iterator[Store]:
        opened = open_store()
        yield opened
        opened.close()

    @pytest.fixture
    def other(self, open_store: Callable[[], Store]) -> Iterator[Store]:
        """Another replica on the same data."""
        opened = open_store()
        yield opened
        opened.close()
