"""Transactions on SQLite or PostgreSQL, and their errors in the project's words."""

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Double,
    Engine,
    Insert,
    Table,
    Update,
    create_engine,
    event,
    literal_column,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from spotwright.adapters.store.prepared_statement import GivenRows, PreparedStatement, Upsert
from spotwright.domain.errors import BadInputError, StoreUnavailableError

_WAY_OUT = "give sqlite:///PATH or postgresql://USER@HOST/DATABASE"
# SQLite's primary result codes that may go away by themselves.
_PASSING_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}
_LIMIT_SQLSTATE_CLASS = "54"  # a name that is too long for an index, and the like
_READ_ONLY_SQLSTATE = "25006"  # a server that became a stand-by
_WRITE = "spotwright_write"


class Database:
    """One database; any thread may use it."""

    def __init__(self, url: str, *, busy_timeout_s: float) -> None:
        self._url = _checked_url(url)
        self._timeout_s = busy_timeout_s
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        # SQLite lets one connection write at a time: our own threads queue here, not in SQLite,
        # which would have each of them poll.
        self._writer = threading.Lock() if self.is_sqlite else None
        self._engine = self._sqlite_engine() if self.is_sqlite else self._postgres_engine()

    @property
    def name(self) -> str:
        """Return the URL without a password."""
        return self._url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Let go of every connection."""
        self._engine.dispose()

    def insert(self, table: Table) -> Upsert:
        """Start an INSERT that can say what to do about rows that are there already."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def given_rows(self, columns: Mapping[str, ColumnElement[Any]]) -> GivenRows:
        """Return rows that a prepared statement will be given, with the types of these columns."""
        types = {name: column.type for name, column in columns.items()}
        return GivenRows(types, is_sqlite=self.is_sqlite)

    def prepare(self, statement: Insert | Update) -> PreparedStatement:
        """Compile a statement that runs for many rows at a time."""
        return PreparedStatement(statement, self._engine.dialect)

    @property
    def now_unix_s(self) -> ColumnElement[float]:
        """The store's own clock, as an expression."""
        sqlite_clock = "((julianday('now') - 2440587.5) * 86400.0)"
        postgres_clock = "extract(epoch from clock_timestamp())::double precision"
        return literal_column(sqlite_clock if self.is_sqlite else postgres_clock, Double)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run one transaction that only reads."""
        with self._translated(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Run one transaction that is kept when the block ends, and only then."""
        with self._one_writer(), self._translated(), self._engine.connect() as plain:
            connection = plain.execution_options(**{_WRITE: True})
            with connection.begin():
                yield connection

    @contextmanager
    def changing_tables(self) -> Iterator[Connection]:
        """Run one transaction as `writing` does, however long its statements take."""
        with self.writing() as connection:
            if self.is_sqlite:
                yield connection
                return
            from spotwright.adapters.store.postgres_connection import (  # noqa: PLC0415
                TimedConnection,
                without_limits,
            )

            driver = connection.connection.driver_connection
            assert isinstance(driver, TimedConnection)
            with without_limits(driver):
                yield connection

    @contextmanager
    def _one_writer(self) -> Iterator[None]:
        if self._writer is None:
            yield
            return
        if not self._writer.acquire(timeout=self._timeout_s):
            raise StoreUnavailableError(
                f"store {self.name}: other writes took longer than {self._timeout_s:g} s"
            )
        try:
            yield
        finally:
            self._writer.release()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except PoolTimeoutError as error:
            raise StoreUnavailableError(f"store {self.name}: {_in_one_line(error)}") from error
        except DBAPIError as error:
            if _is_too_much(error):
                raise BadInputError(f"this cannot be stored: {_in_one_line(error.orig)}") from error
            if getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
                raise BadInputError(f"{self.name} is not a database; {_WAY_OUT}") from error
            if not _passes(error):
                raise
            raise StoreUnavailableError(f"store {self.name}: {_in_one_line(error.orig)}") from error

    def _sqlite_engine(self) -> Engine:
        _make_folder(self._url)
        engine = create_engine(
            self._url,
            pool_timeout=self._timeout_s,
            hide_parameters=True,
            connect_args={"timeout": self._timeout_s},
        )

        @event.listens_for(engine, "connect")
        def _on_connect(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
            connection.isolation_level = None  # we begin by ourselves
            # FULL: an acknowledged batch survives a loss of power. It costs one fsync a commit.
            for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                cursor = connection.cursor()
                cursor.execute(f"PRAGMA {setting}")
                cursor.close()

        @event.listens_for(engine, "begin")
        def _on_begin(connection: Connection) -> None:
            writes = connection.get_execution_options().get(_WRITE)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine

    def _postgres_engine(self) -> Engine:
        from spotwright.adapters.store.postgres_connection import connect  # noqa: PLC0415 - its driver

        engine = create_engine(
            self._url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,  # after the server came back, old connections are not used
            pool_timeout=self._timeout_s,
            hide_parameters=True,  # no hash of a token in a log
        )

        @event.listens_for(engine, "do_connect")
        def _on_connect(
            _dialect: Dialect, _entry: ConnectionPoolEntry, arguments: Any, settings: Any
        ) -> object:
            return connect(*arguments, **settings)

        return engine


def _checked_url(text_of_url: str) -> URL:
    try:
        url = make_url(text_of_url)
    except (ArgumentError, ValueError) as error:
        shown = "given" if "@" in text_of_url else repr(text_of_url)  # it may hold a password
        raise BadInputError(f"store {shown} is not a URL; {_WAY_OUT}") from error
    if url.drivername not in ("sqlite", "postgresql"):  # others know them by these names, too
        raise BadInputError(f"store {url.drivername!r} is not supported; {_WAY_OUT}")
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise BadInputError(f"store {text_of_url!r} names no file; {_WAY_OUT}")
    if url.drivername == "sqlite" and url.query:
        raise BadInputError(f"store {text_of_url!r} has options, SQLite takes none; {_WAY_OUT}")
    return url


def _make_folder(url: URL) -> None:
    path = Path(url.database or "")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise BadInputError(
            f"store {path} cannot be written ({error.strerror}); name a file in a folder of yours"
        ) from error


def _is_too_much(error: DBAPIError) -> bool:
    """Tell whether a value is one that no database of this kind takes."""
    state = getattr(error.orig, "sqlstate", None) or ""
    return isinstance(error, DataError) or state.startswith(_LIMIT_SQLSTATE_CLASS)


def _passes(error: DBAPIError) -> bool:
    """Tell whether the same call may work later: the store is away or full, we are not wrong."""
    if error.connection_invalidated:
        return True
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _PASSING_SQLITE
    if getattr(error.orig, "sqlstate", None) == _READ_ONLY_SQLSTATE:
        return True
    return isinstance(error, OperationalError | InterfaceError)


def _in_one_line(error: BaseException | None) -> str:
    return " ".join(str(error).split())
