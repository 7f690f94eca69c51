"""Batches out of the database, and their end."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, and_, delete, func, select

from spotwright.adapters.store.forgotten_agents import prune_agents
from spotwright.adapters.store.requests import prune_requests
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.stored_rollups import prune_rollups
from spotwright.adapters.store.tables import agent_boots, batches
from spotwright.domain.telemetry import BatchKey, StoredBatch
from spotwright.usecases.store_ports import Retention


class SqlStoredBatches(StorePart):
    """What agents sent."""

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

    def oldest_batch_unix_ms(self, *, since_unix_ms: int = 0) -> int | None:
        """Return when the oldest batch that is kept was received, of those received since."""
        received = batches.c.receive_unix_ms
        oldest = select(func.min(received)).where(received >= since_unix_ms)
        with self._database.reading() as connection:
            return connection.execute(oldest).scalar()

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
        old = old.with_for_update(skip_locked=True)  # another replica may drop them just now
        with self._database.writing() as connection:
            count = connection.execute(
                delete(batches).where(batches.c.row_number.in_(old))
            ).rowcount
            count += prune_rollups(connection, retention, limit=limit)
            count += prune_requests(connection, retention.requests_unix_s, limit=limit)
            count += prune_agents(connection, retention.agents_unix_s, limit=limit)
        return count


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
