"""The store on SQLite or PostgreSQL."""

from spotwright.adapters.store.agents import SqlAgents
from spotwright.adapters.store.commands import SqlCommands
from spotwright.adapters.store.database import Database
from spotwright.adapters.store.ingest import SqlIngest
from spotwright.adapters.store.job_steps import SqlJobSteps
from spotwright.adapters.store.jobs import SqlJobs
from spotwright.adapters.store.leases import SqlLeases
from spotwright.adapters.store.ledger import SqlLedger
from spotwright.adapters.store.migrate import migrate
from spotwright.adapters.store.plans import SqlPlans
from spotwright.adapters.store.size import SqlSize
from spotwright.adapters.store.stored_batches import SqlStoredBatches
from spotwright.adapters.store.stored_rollups import SqlStoredRollups
from spotwright.adapters.store.tokens import SqlTokens

_BUSY_TIMEOUT_S = 5.0


class SqlStore(
    SqlPlans,
    SqlJobs,
    SqlLedger,
    SqlJobSteps,
    SqlLeases,
    SqlAgents,
    SqlIngest,
    SqlStoredBatches,
    SqlStoredRollups,
    SqlCommands,
    SqlTokens,
    SqlSize,
):
    """All of it."""

    def close(self) -> None:
        """Let go of every connection."""
        self._database.close()


def open_store(url: str, *, busy_timeout_s: float = _BUSY_TIMEOUT_S) -> SqlStore:
    """Open a store, and make or upgrade its tables.

    Args:
        url: sqlite:///PATH or postgresql://USER@HOST/DATABASE.
        busy_timeout_s: how long a call waits for others that write.

    Raises:
        BadInputError: the URL cannot be used, or a newer program made the tables.
        StoreUnavailableError: the store does not answer.
    """
    database = Database(url, busy_timeout_s=busy_timeout_s)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)
