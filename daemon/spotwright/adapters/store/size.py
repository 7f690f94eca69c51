"""How much room a store takes."""

from sqlalchemy import text

from spotwright.adapters.store.store_part import StorePart

_SQLITE = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
_POSTGRESQL = "SELECT pg_database_size(current_database())"


class SqlSize(StorePart):
    """The size of the database."""

    def size_bytes(self) -> int:
        """Return how much the database takes on disk, without its write-ahead log."""
        with self._database.reading() as connection:
            query = text(_SQLITE if self._database.is_sqlite else _POSTGRESQL)
            return int(connection.execute(query).scalar_one())
