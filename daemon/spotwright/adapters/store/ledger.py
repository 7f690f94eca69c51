"""The ledger of rent in the database."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import Row, func, select

from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import ledger, progress_marks
from spotwright.domain.ledger import LedgerEntry, ProgressMark, RentedPool

_KEY = ("job_id", "agent_id", "start_time")


class SqlLedger(StorePart):
    """Who was seen working for jobs, and how far these had come."""

    def write_ledger(
        self, entries: Sequence[LedgerEntry], marks: Sequence[ProgressMark] = ()
    ) -> None:
        """Write entries and marks in one step.

        Ends of known entries move on, and never back; a price that was not known is filled in.
        """
        put = self._database.insert(ledger)
        put = put.on_conflict_do_update(
            index_elements=_KEY,
            set_={
                "end_time": put.excluded.end_time,
                "price_usd_per_hour": func.coalesce(
                    ledger.c.price_usd_per_hour, put.excluded.price_usd_per_hour
                ),
            },
            where=put.excluded.end_time > ledger.c.end_time,
        )
        # In one order for everybody: two replicas that write the same rows do not lock each other.
        rows = sorted(map(_values, entries), key=itemgetter(*_KEY))
        with self._database.writing() as connection:
            if rows:
                connection.execute(put, rows)
            if marks:
                keep = self._database.insert(progress_marks).on_conflict_do_nothing()
                connection.execute(keep, [asdict(mark) for mark in marks])

    def ledger(self, job_id: str, *, seen_since: datetime | None = None) -> Sequence[LedgerEntry]:
        """Return a job's entries by start_time, ties by agent; those that ended since."""
        query = select(ledger).where(ledger.c.job_id == job_id)
        if seen_since is not None:
            query = query.where(ledger.c.end_time >= seen_since)
        query = query.order_by(ledger.c.start_time, ledger.c.agent_id)
        with self._database.reading() as connection:
            return [_entry(row) for row in connection.execute(query)]

    def progress_marks(self, job_id: str) -> Sequence[ProgressMark]:
        """Return how far a job had come, oldest first."""
        query = select(progress_marks).where(progress_marks.c.job_id == job_id)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(progress_marks.c.time))
            return [ProgressMark(**row._asdict()) for row in rows]


def _values(entry: LedgerEntry) -> dict[str, Any]:
    # Not asdict, which copies every time and takes most of a write.
    return {
        "job_id": entry.job_id,
        "agent_id": entry.agent_id,
        "start_time": entry.start_time,
        "end_time": entry.end_time,
        "instance_id": entry.instance_id,
        "price_usd_per_hour": entry.price_usd_per_hour,
        **entry.pool._asdict(),
    }


def _entry(row: Row[Any]) -> LedgerEntry:
    return LedgerEntry(
        job_id=row.job_id,
        agent_id=row.agent_id,
        start_time=row.start_time,
        end_time=row.end_time,
        instance_id=row.instance_id,
        pool=RentedPool(row.instance_type, row.zone, row.market),
        price_usd_per_hour=row.price_usd_per_hour,
    )
