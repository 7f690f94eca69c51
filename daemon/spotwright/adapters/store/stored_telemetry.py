"""Telemetry out of the database: batches, rollups, and the end of both."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, delete, func, select, tuple_

from spotwright.adapters.store.rollup_document import unpacked
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import agent_boots, batches, rollups
from spotwright.domain.telemetry import BatchKey, RollupPart, StoredBatch, merge_parts
from spotwright.usecases.store_ports import Retention


class SqlStoredTelemetry(StorePart):
    """What agents sent, and its sums."""

    def batches(
        self, agent_id: str, *, start_unix_ms: int, end_unix_ms: int, after: int = 0, limit: int
    ) -> Sequence[tuple[int, StoredBatch]]:
        """Return batches that may hold samples of [start, end), in the order they were stored."""
        query = _numbered_batches(after=after, limit=limit).where(
            agent_boots.c.agent_id == agent_id,
            batches.c.first_unix_ms < end_unix_ms,
            batches.c.last_unix_ms >= start_unix_ms,
        )
        with self._database.reading() as connection:
            return [_numbered(row) for row in connection.execute(query)]

    def rollups(
        self, agent_id: str, *, resolution_s: int, start_unix_s: int, end_unix_s: int, limit: int
    ) -> Sequence[RollupPart]:
        """Return whole intervals that start within [start, end), oldest first."""
        start = rollups.c.start_unix_s
        inside = and_(
            rollups.c.agent_id == agent_id,
            rollups.c.resolution_s == resolution_s,
            start >= start_unix_s,
            start < end_unix_s,
        )
        starts = select(start).where(inside).distinct().order_by(start).limit(limit)
        with self._database.reading() as connection:
            found = connection.execute(starts).scalars().all()
            if not found:
                return []
            query = select(start, rollups.c.document).where(inside, start <= found[-1])
            return merge_parts(unpacked(*row) for row in connection.execute(query))

    def oldest_batch_unix_ms(self) -> int | None:
        """Return when the oldest batch that is kept was received."""
        with self._database.reading() as connection:
            return connection.execute(select(func.min(batches.c.receive_unix_ms))).scalar()

    def received_batches(
        self, *, start_unix_ms: int, end_unix_ms: int, after: int = 0, limit: int
    ) -> Sequence[tuple[int, StoredBatch]]:
        """Return batches received within [start, end), in the order they were stored."""
        number, received = batches.c.row_number, batches.c.receive_unix_ms
        inside = and_(received >= start_unix_ms, received < end_unix_ms)
        with self._database.reading() as connection:
            # Rows come nearly in order of time: find their range by the index on time, then read
            # it by number. The sum keeps the planner from sorting the whole window for each page.
            ends = select(func.min(number), func.max(number)).where(inside, number > after)
            first, last = connection.execute(ends).one()
            if first is None:
                return []
            query = _numbered_batches(after=after, limit=limit).where(
                number.between(first, last),
                received + 0 >= start_unix_ms,
                received + 0 < end_unix_ms,
            )
            return [_numbered(row) for row in connection.execute(query)]

    def prune(self, retention: Retention, *, limit: int) -> int:
        """Drop at most `limit` rows of each kind that are older; return how many were dropped."""
        before_ms = int(retention.batches_unix_s * 1000)
        old = select(batches.c.row_number).where(batches.c.receive_unix_ms < before_ms)
        old = old.order_by(batches.c.receive_unix_ms).limit(limit)
        with self._database.writing() as connection:
            count = connection.execute(
                delete(batches).where(batches.c.row_number.in_(old))
            ).rowcount
            for resolution_s, before_unix_s in retention.rollups_unix_s.items():
                count += _prune_rollups(connection, resolution_s, before_unix_s, limit=limit)
        return count


def _prune_rollups(
    connection: Connection, resolution_s: int, before_unix_s: float, *, limit: int
) -> int:
    key = tuple_(*rollups.primary_key.columns)
    old = (
        select(*rollups.primary_key.columns)
        .where(
            rollups.c.resolution_s == resolution_s,
            rollups.c.start_unix_s + resolution_s <= before_unix_s,
        )
        .limit(limit)
    )
    return connection.execute(delete(rollups).where(key.in_(old))).rowcount


def _numbered_batches(*, after: int, limit: int) -> Select[Any]:
    same = batches.c.boot_number == agent_boots.c.boot_number
    return (
        select(
            batches.c.row_number,
            agent_boots.c.agent_id,
            agent_boots.c.boot_id,
            batches.c.sequence,
            batches.c.receive_unix_ms,
            batches.c.clock_skew_s,
            batches.c.document,
        )
        .select_from(batches.join(agent_boots, same))
        .where(batches.c.row_number > after)
        .order_by(batches.c.row_number)
        .limit(limit)
    )


def _numbered(row: Row[Any]) -> tuple[int, StoredBatch]:
    return row.row_number, StoredBatch(
        key=BatchKey(row.agent_id, row.boot_id, row.sequence),
        receive_unix_ms=row.receive_unix_ms,
        clock_skew_s=row.clock_skew_s,
        document=row.document,
    )
