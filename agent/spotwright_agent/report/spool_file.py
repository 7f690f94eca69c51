"""The spool on disk: one SQLite file, one small transaction for each change.

A process that is killed loses no transaction. A host that loses power may lose the newest ones.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotwright_agent.report.clock import ClockStamp
from spotwright_agent.report.parcels import Parcel, ParcelKind

_PAGE_BYTES = 4_096
_CHECKPOINT_PAGES = 96
WAL_BYTES = 2**20  # more than the log grows to before it is used from its start again
_BUSY_S = 1.0  # somebody looks at the file with other tools
_COLUMNS = (
    "id, sequence, dropped, document, crc, kind, offset_ms, kernel_boot, create_boot_ms, "
    "sample_count, step_count, first_ms, last_ms"
)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch (
  id INTEGER PRIMARY KEY, sequence INTEGER, dropped INTEGER, document BLOB, crc INTEGER,
  kind INTEGER, offset_ms INTEGER, kernel_boot TEXT, create_boot_ms INTEGER,
  sample_count INTEGER, step_count INTEGER, first_ms INTEGER, last_ms INTEGER);
CREATE UNIQUE INDEX IF NOT EXISTS sent ON batch (sequence) WHERE sequence IS NOT NULL;
CREATE INDEX IF NOT EXISTS unsent_notice ON batch (id) WHERE sequence IS NULL AND kind = 2;
CREATE INDEX IF NOT EXISTS unsent_other ON batch (id) WHERE sequence IS NULL AND kind < 2;
"""
_UNSENT_NOTICE = "sequence IS NULL AND kind = 2"
_UNSENT_OTHER = "sequence IS NULL AND kind < 2"


@dataclass(slots=True, kw_only=True)
class Spooled:
    """A parcel in the spool."""

    id: int  # rises in the order in which batches were cut
    parcel: Parcel
    sequence: int | None = None  # None: never sent
    dropped_count: int = 0  # samples dropped since the batch sent before

    @property
    def is_notice(self) -> bool:
        """It goes first and is kept."""
        return self.parcel.kind is ParcelKind.NOTICE


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTotals:
    """What is in the file."""

    count: int
    document_bytes: int
    sample_count: int
    last_id: int


class SpoolFile:
    """Batches in a file; every method may raise sqlite3.Error."""

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self.path = path
        self._db = sqlite3.connect(
            path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(max_bytes)
        except sqlite3.Error:
            self._db.close()
            raise

    def _prepare(self, max_bytes: int) -> None:
        for setting in (
            f"page_size = {_PAGE_BYTES}",
            "auto_vacuum = INCREMENTAL",
            "journal_mode = WAL",
            "synchronous = NORMAL",
            f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
            f"journal_size_limit = {WAL_BYTES}",
            "cache_size = -512",
            f"max_page_count = {(max_bytes - WAL_BYTES) // _PAGE_BYTES}",
        ):
            self._db.execute(f"PRAGMA {setting}")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def meta(self) -> dict[str, Any]:
        """Return what is known besides batches."""
        return dict(self._db.execute("SELECT name, value FROM meta"))

    def set_meta(self, **values: Any) -> None:
        """Keep what is known besides batches."""
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def totals(self) -> FileTotals:
        """Return what is in the file."""
        row = self._db.execute(
            "SELECT count(*), coalesce(sum(length(document)), 0), "
            "coalesce(sum(sample_count), 0), coalesce(max(id), 0) FROM batch"
        ).fetchone()
        return FileTotals(count=row[0], document_bytes=row[1], sample_count=row[2], last_id=row[3])

    def used_bytes(self) -> int:
        """Return what the file needs, its log included; what is free in it is used again."""
        pages = self._db.execute("PRAGMA page_count").fetchone()[0]
        free = self._db.execute("PRAGMA freelist_count").fetchone()[0]
        return int(pages - free) * _PAGE_BYTES + WAL_BYTES

    def file_bytes(self) -> int:
        """Return how large the file is."""
        return int(self._db.execute("PRAGMA page_count").fetchone()[0]) * _PAGE_BYTES

    def shrink(self) -> None:
        """Give pages that are free back to the disk."""
        self._db.execute("PRAGMA incremental_vacuum").fetchall()

    def make_room_in_log(self) -> None:
        """Have the log used from its start again, which takes no more disk."""
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def insert(self, batches: Sequence[Spooled]) -> None:
        """Keep batches, all or none."""
        places = ", ".join("?" * 13)
        with self._transaction():
            self._db.executemany(
                f"INSERT INTO batch ({_COLUMNS}) VALUES ({places})",
                [_row(batch) for batch in batches],
            )

    def unsent(self, *, notice: bool) -> Spooled | None:
        """Return the oldest batch that was never sent, with a notice or without."""
        return self._one(f"{_UNSENT_NOTICE} ORDER BY id") if notice else self.unsent_other()

    def unsent_other(self, *, after: int = 0) -> Spooled | None:
        """Return the oldest batch without a notice that was never sent."""
        return self._one(f"{_UNSENT_OTHER} AND id > ? ORDER BY id", after)

    def sent_after(self, sequence: int) -> Spooled | None:
        """Return the first batch with a number after this one."""
        return self._one("sequence > ? ORDER BY sequence", sequence)

    def sent_as(self, sequence: int) -> Spooled | None:
        """Return the batch with this number."""
        return self._one("sequence = ?", sequence)

    def sent_up_to(self, sequence: int) -> list[tuple[int, int, int]]:
        """Return id, size and samples of batches with numbers up to this one."""
        return self._db.execute(
            "SELECT id, length(document), sample_count FROM batch WHERE sequence <= ?", (sequence,)
        ).fetchall()

    def number(self, batch: Spooled, *, joined: Sequence[int], pending_dropped: int) -> None:
        """Keep the number of a batch, which has taken in others, before it is sent."""
        with self._transaction():
            if joined:
                self.delete(joined)
            self._db.execute(
                "UPDATE batch SET sequence = ?, dropped = ?, document = ?, crc = ?, "
                "sample_count = ?, step_count = ?, first_ms = ?, last_ms = ? WHERE id = ?"
                if joined
                else "UPDATE batch SET sequence = ?, dropped = ? WHERE id = ?",
                (*_numbered(batch, joined=bool(joined)), batch.id),
            )
            self.set_meta(sequence=batch.sequence, pending_dropped=pending_dropped)

    def leave_numbers(self) -> int:
        """End the stream of these numbers; return the samples that are dropped with them.

        The daemon may have what was sent. A notice is told once more; telemetry is not counted
        twice.
        """
        with self._transaction():
            dropped_count = self._db.execute(
                "SELECT coalesce(sum(sample_count + dropped), 0) FROM batch "
                "WHERE sequence IS NOT NULL"
            ).fetchone()[0]
            self._db.execute("DELETE FROM batch WHERE sequence IS NOT NULL AND kind < 2")
            self._db.execute("UPDATE batch SET sequence = NULL, dropped = 0 WHERE sequence > 0")
        return int(dropped_count)

    def delete(self, ids: Sequence[int]) -> None:
        """Forget batches."""
        self._db.executemany("DELETE FROM batch WHERE id = ?", [(each,) for each in ids])

    def delete_and_count(self, ids: Sequence[int], *, pending_dropped: int) -> None:
        """Forget batches that were not sent, and keep the count of samples dropped so far."""
        with self._transaction():
            self.delete(ids)
            self.set_meta(pending_dropped=pending_dropped)

    def notice_ids(self) -> list[int]:
        """Return the notices that were never sent, oldest first."""
        rows = self._db.execute(f"SELECT id FROM batch WHERE {_UNSENT_NOTICE} ORDER BY id")
        return [row[0] for row in rows]

    def _one(self, where: str, *values: int) -> Spooled | None:
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM batch WHERE {where} LIMIT 1",
            values,
        ).fetchone()
        return None if row is None else _spooled(row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise


def _row(batch: Spooled) -> tuple[Any, ...]:
    parcel = batch.parcel
    return (
        batch.id, batch.sequence, batch.dropped_count, parcel.document,
        zlib.crc32(parcel.document), int(parcel.kind), *parcel.stamp, parcel.create_boot_ms,
        parcel.sample_count, parcel.step_count, parcel.first_ms, parcel.last_ms,
    )  # fmt: skip


def _numbered(batch: Spooled, *, joined: bool) -> tuple[Any, ...]:
    if not joined:
        return batch.sequence, batch.dropped_count
    parcel = batch.parcel
    return (
        batch.sequence, batch.dropped_count, parcel.document, zlib.crc32(parcel.document),
        parcel.sample_count, parcel.step_count, parcel.first_ms, parcel.last_ms,
    )  # fmt: skip


def _spooled(row: Sequence[Any]) -> Spooled:
    if zlib.crc32(row[3]) != row[4]:
        raise sqlite3.DatabaseError("database disk image is malformed: a batch is not as written")
    parcel = Parcel(
        document=row[3],
        kind=ParcelKind(row[5]),
        stamp=ClockStamp(row[6], row[7]),
        create_boot_ms=row[8],
        sample_count=row[9],
        step_count=row[10],
        first_ms=row[11],
        last_ms=row[12],
    )
    return Spooled(id=row[0], parcel=parcel, sequence=row[1], dropped_count=row[2])
