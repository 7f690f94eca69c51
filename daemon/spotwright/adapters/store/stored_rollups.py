"""Sums by time out of the database, and their end.

Ten-second sums are written as batches come. A minute is the sum of its ten-second intervals: those
are added up when it is read, and into rows of its own when they are too old to be kept.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, tuple_

from spotwright.adapters.store.rollup_document import packed, unpacked
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import rollups
from spotwright.domain.telemetry import RESOLUTIONS_S, RollupPart, merge_parts
from spotwright.usecases.store_ports import Retention

WRITTEN_S = 10  # the resolution that is written as batches come
_KEY = list(rollups.primary_key.columns)


class SqlStoredRollups(StorePart):
    """What agents sent, summed up."""

    def rollups(
        self, agent_id: str, *, resolution_s: int, start_unix_s: int, end_unix_s: int, limit: int
    ) -> Sequence[RollupPart]:
        """Return whole intervals that start within [start, end), oldest first."""
        first, end = (_up_to_whole(t, resolution_s) for t in (start_unix_s, end_unix_s))
        mine = and_(
            rollups.c.agent_id == agent_id,
            rollups.c.resolution_s.in_({resolution_s, WRITTEN_S}),
            rollups.c.start_unix_s >= first,
            rollups.c.start_unix_s < end,
        )
        whole = rollups.c.start_unix_s - rollups.c.start_unix_s % resolution_s
        starts = select(whole).where(mine).distinct().order_by(whole).limit(limit)
        with self._database.reading() as connection:
            found = connection.execute(starts).scalars().all()
            if not found:
                return []
            query = select(rollups.c.start_unix_s, rollups.c.document).where(
                mine, rollups.c.start_unix_s < found[-1] + resolution_s
            )
            rows = connection.execute(query)
            return merge_parts(unpacked(t - t % resolution_s, doc) for t, doc in rows)


def prune_rollups(connection: Connection, retention: Retention, *, limit: int) -> int:
    """Drop at most `limit` old rows of each resolution; the coarser ones take over their sums."""
    count = 0
    for resolution_s, before_unix_s in retention.rollups_unix_s.items():
        old = and_(
            rollups.c.resolution_s == resolution_s,
            rollups.c.start_unix_s <= before_unix_s - resolution_s,
        )
        if resolution_s == WRITTEN_S:
            count += _fold(connection, old, retention, limit=limit)
        else:
            oldest = select(*_KEY).where(old).limit(limit).with_for_update(skip_locked=True)
            count += connection.execute(delete(rollups).where(tuple_(*_KEY).in_(oldest))).rowcount
    return count


def _fold(
    connection: Connection, old: ColumnElement[bool], retention: Retention, *, limit: int
) -> int:
    """Add rows up into coarser ones, unless those would be too old themselves, and drop them."""
    # What someone is adding to is left for the next time: nobody waits for anybody in a circle.
    oldest = select(*_KEY).where(old).order_by(*_KEY).limit(limit)
    oldest = oldest.with_for_update(skip_locked=True)
    dropped = connection.execute(
        delete(rollups)
        .where(tuple_(*_KEY).in_(oldest))
        .returning(rollups.c.agent_id, rollups.c.start_unix_s, rollups.c.document)
    ).all()
    sums = [
        row
        for resolution_s in RESOLUTIONS_S
        if resolution_s > WRITTEN_S
        for row in _summed(dropped, resolution_s)
        if row["start_unix_s"] > retention.rollups_unix_s.get(resolution_s, 0) - resolution_s
    ]
    if sums:
        connection.execute(insert(rollups), sums)
    return len(dropped)


def _summed(rows: Iterable[tuple[str, int, bytes]], resolution_s: int) -> list[dict[str, Any]]:
    parts: dict[tuple[str, int], RollupPart] = {}
    for agent_id, start, document in rows:
        interval = agent_id, start - start % resolution_s
        part = unpacked(interval[1], document)
        parts[interval] = parts[interval].merged(part) if interval in parts else part
    return [
        {
            "resolution_s": resolution_s,
            "start_unix_s": start,
            "agent_id": agent_id,
            "part_number": secrets.randbits(62),
            "document": packed(
                (part.host_sample_count, part.gpu_sample_count, part.step_count), part.statistics
            ),
        }
        for (agent_id, start), part in parts.items()
    ]


def _up_to_whole(time_unix_s: int, resolution_s: int) -> int:
    return -(-time_unix_s // resolution_s) * resolution_s
