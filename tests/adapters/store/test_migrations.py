"""Every released schema can be brought to the newest, which is what the tables say."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, inspect, text

from spotwright.adapters.store.database import Database
from spotwright.adapters.store.migrate import HEAD, MIGRATIONS, migrate, schema_version
from spotwright.adapters.store.sql_store import open_store
from spotwright.adapters.store.tables import metadata
from spotwright.domain.errors import BadInputError
from tests.contracts.store_values import TIME, new_plan
from tests.postgres_server import PostgresServer, postgres_server

__all__ = ["postgres_server"]

RELEASED = ("0001",)  # add the newest migration here with each release that has one
MakeUrl = Callable[[], str]


_EMPTY = {"alembic_version", "job_steps"}  # not of things that the released versions kept


@pytest.fixture(params=["sqlite", "postgresql"])
def make_url(request: pytest.FixtureRequest, tmp_path: Path) -> MakeUrl:
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{uuid4().hex}.db"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return lambda: server.url(f"migrated_{uuid4().hex}")


def test_the_schema_made_by_migrations_is_that_of_the_tables(make_url: MakeUrl) -> None:
    url = make_url()
    open_store(url).close()

    with closing(Database(url, busy_timeout_s=5.0)) as database, database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert schema_version(connection) == HEAD


@pytest.mark.parametrize("version", RELEASED)
def test_what_a_released_version_kept_is_there_after_the_upgrade(
    make_url: MakeUrl, version: str
) -> None:
    with closing(Database(make_url(), busy_timeout_s=5.0)) as database:
        kept = _make_released(database, version)

        migrate(database)

        with database.reading() as connection:
            assert schema_version(connection) == HEAD
            for table in inspect(connection).get_table_names():
                if table not in _EMPTY:
                    count = connection.execute(text(f"SELECT count(*) FROM {table}")).scalar()
                    assert count == (table in kept), table


def test_opening_again_changes_nothing(make_url: MakeUrl) -> None:
    url = make_url()
    with closing(open_store(url)) as store:
        kept = store.add_plan(new_plan())

    with closing(open_store(url)) as store:
        assert store.plan(kept.plan_id) == kept


def test_a_schema_of_a_newer_program_is_refused(make_url: MakeUrl) -> None:
    url = make_url()
    open_store(url).close()
    with closing(Database(url, busy_timeout_s=5.0)) as database, database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(BadInputError, match=f"has schema 9999, .* knows {HEAD} and older"):
        open_store(url)


def test_the_newest_migration_is_the_one_that_the_program_asks_for() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))

    assert scripts.get_heads() == [HEAD]
    assert set(RELEASED) <= {script.revision for script in scripts.walk_revisions()}


def test_opening_a_store_that_is_up_to_date_does_not_import_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    open_store(url).close()
    code = (
        "import sys; from spotwright.adapters.store.sql_store import open_store;"
        f"open_store({url!r}).close(); sys.exit('alembic' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _make_released(database: Database, version: str) -> set[str]:
    """Make the schema as it was, with one row in each table; return the names of these."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
        as_it_was = MetaData()
        as_it_was.reflect(connection)
        for table in as_it_was.sorted_tables:
            if table.name != "alembic_version":
                row = {column.name: _value(column.type.python_type) for column in table.columns}
                connection.execute(table.insert(), row)
        return set(as_it_was.tables)


def _value(kind: type) -> object:
    return {str: "text", int: int(TIME.timestamp()), float: 1.5, bytes: b"\x00"}[kind]
