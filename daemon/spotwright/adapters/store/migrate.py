"""The schema, brought up to date when the store is opened."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from spotwright.adapters.store.database import Database
from spotwright.domain.errors import BadInputError

HEAD = "0003"  # the newest migration; a test compares it with the folder
MIGRATIONS = Path(__file__).with_name("migrations")
_LOCK_NUMBER = 7_443_000_001  # any number that nobody else uses in this database


def migrate(database: Database) -> None:
    """Bring the schema to HEAD.

    Raises:
        BadInputError: a newer program made it.
    """
    with database.reading() as connection:
        if schema_version(connection) == HEAD:  # the usual case, without importing Alembic
            return
    with database.changing_tables() as connection:
        if not database.is_sqlite:  # there, this transaction is the only one that writes
            connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _LOCK_NUMBER})
        _upgrade(connection, database.name)


def schema_version(connection: Connection) -> str | None:
    """Return the version of the schema; None where there is none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(
        text("SELECT version_num FROM alembic_version")
    ).scalar()
    return version


def _upgrade(connection: Connection, name: str) -> None:
    from alembic import command  # noqa: PLC0415 - costs 0.2 s, and is rarely needed
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    version = schema_version(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in known:
        raise BadInputError(
            f"store {name} has schema {version}, this program knows {HEAD} and older; "
            "upgrade Spotwright, or name another store"
        )
    command.upgrade(config, HEAD)
