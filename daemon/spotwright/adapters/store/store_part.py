"""What every part of the store has: the database."""

from spotwright.adapters.store.database import Database


class StorePart:
    """Methods over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
