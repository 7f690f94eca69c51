"""Statements of the hot path: compiled once, run for many rows at a time.

SQLite takes the rows one after the other; PostgreSQL takes all of them at once, each column an
array. Measured with 100 batches a commit, CPU for each batch: values given to the driver as they
are, 59 us instead of 71 with SQLite; arrays, 58 us instead of 118 with PostgreSQL.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Insert, Update, bindparam, column, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeEngine

from spotwright.adapters.store.array_text import array_text

Upsert = sqlite.Insert | postgresql.Insert
_PREFIX = "given_"  # SQLAlchemy keeps the names of columns to itself


class GivenRows:
    """Rows as a statement sees them: `value` has an expression for each of their columns."""

    def __init__(self, types: Mapping[str, TypeEngine[Any]], *, is_sqlite: bool) -> None:
        self._is_sqlite = is_sqlite
        if is_sqlite:
            self.value: dict[str, Any] = {
                name: bindparam(_PREFIX + name, type_=kind) for name, kind in types.items()
            }
            return
        arrays = [bindparam(_PREFIX + n, type_=postgresql.ARRAY(t)) for n, t in types.items()]
        rows = func.unnest(*arrays).table_valued(*(column(n, t) for n, t in types.items()))
        self.value = dict(rows.render_derived(name="given").c.items())

    def into(self, insert: Upsert) -> Upsert:
        """Make an INSERT of them."""
        if self._is_sqlite:
            return insert.values(self.value)
        return insert.from_select(list(self.value), select(*self.value.values()))


class PreparedStatement:
    """A statement over GivenRows."""

    def __init__(self, statement: Insert | Update, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._sql = str(compiled)
        positions: list[str] | None = getattr(compiled, "positiontup", None)
        self._positions = positions and [name.removeprefix(_PREFIX) for name in positions]
        self._kinds: dict[str, type] = {}
        if self._positions is None:
            arrays: dict[str, Any] = {name: bind.type for name, bind in compiled.binds.items()}
            self._kinds = {name: array.item_type.python_type for name, array in arrays.items()}

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        """Run it for these rows, if any, and return how many it touched."""
        if not rows:
            return 0
        if self._positions is not None:
            values = itemgetter(*self._positions)
            return connection.exec_driver_sql(self._sql, [values(row) for row in rows]).rowcount
        texts = {}
        for name, kind in self._kinds.items():
            column_name = name.removeprefix(_PREFIX)
            texts[name] = array_text([row[column_name] for row in rows], kind)
        return connection.exec_driver_sql(self._sql, texts).rowcount
