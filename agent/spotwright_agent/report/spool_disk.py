"""The spool's file, whatever becomes of the disk that it is on."""

import logging
import os
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from spotwright_agent.report.spool_file import Spooled, SpoolFile

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
SEQUENCE_GAP = 2**20  # more batches than are sent while a disk is full
_SHRINK_BYTES = 8 * 2**20
_ROOM_BYTES = 2**19  # for the largest batch, below what the file may never exceed
MIN_BYTES = 3 * 2**20  # with less, the log would leave no room for batches
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(slots=True)
class StreamState:
    """What numbers were given, and what is still to be told."""

    boot_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    sequence: int = 0  # the last number given
    pending_dropped: int = 0  # samples dropped, told with the next batch
    dropped_total: int = 0  # since this process began

    def count_dropped(self, count: int) -> None:
        """Note samples that the daemon will never have."""
        self.pending_dropped += count
        self.dropped_total += count


class Disk:
    """Batches in the file. What fails is told in `problem` and never raised."""

    def __init__(self, path: Path, state: StreamState, *, max_bytes: int) -> None:
        self.path, self._state = path, state
        self._max_bytes = max(max_bytes, MIN_BYTES)
        self.problem = ""  # why batches are not on disk; empty: they are
        self.count = self.document_bytes = self.last_id = 0
        self._samples = 0
        self._file: SpoolFile | None = None
        self.open()

    @property
    def is_open(self) -> bool:
        """There is a file."""
        return self._file is not None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self, work: Callable[[SpoolFile], _T]) -> _T | None:
        """Ask the file; None where it cannot answer."""
        for is_last in (False, True):
            if self._file is None:
                return None
            try:
                return work(self._file)
            except sqlite3.Error as error:
                full = _code(error) == sqlite3.SQLITE_FULL
                if is_last or not full or not self._made_room():
                    self._failed(error)
                    return None
        return None

    def write(self, work: Callable[[SpoolFile], None]) -> bool:
        """Change the file; False where it stays as it was."""

        def worked(file: SpoolFile) -> bool:
            work(file)
            return True

        return self.read(worked) is True

    def insert(self, batches: Sequence[Spooled], *, keep_free_bytes: int) -> bool:
        """Keep batches on the disk, if it has room; False: none of them."""
        if self._file is None or not self._has_free(keep_free_bytes):
            return False
        if not self.write(lambda file: file.insert(batches)):
            return False
        self.count += len(batches)
        self.document_bytes += sum(len(batch.parcel.document) for batch in batches)
        self._samples += sum(batch.parcel.sample_count for batch in batches)
        if self.problem:
            _log.info("the spool is on disk again")
        self.problem = ""
        return True

    def drop(self, batch: Spooled) -> bool:
        """Drop a batch and count its samples, both or neither."""
        dropped = batch.parcel.sample_count + batch.dropped_count
        pending = self._state.pending_dropped + dropped
        if not self.write(lambda file: file.delete_and_count([batch.id], pending_dropped=pending)):
            return False
        self._state.count_dropped(dropped)
        self._uncount([(batch.id, len(batch.parcel.document), batch.parcel.sample_count)])
        return True

    def forget_up_to(self, sequence: int) -> int:
        """Forget batches with numbers up to this one; return how many there were."""
        rows = self.read(lambda file: file.sent_up_to(sequence))
        if not rows or not self.write(lambda file: file.delete([row[0] for row in rows])):
            return 0
        self._uncount(rows)
        return len(rows)

    def keep_newest_notices(self, most: int) -> None:
        """Forget the oldest notices that were never sent."""
        ids = (self.read(SpoolFile.notice_ids) or []) if self.count > most else []
        too_many = ids[: max(0, len(ids) - most)]
        if too_many and self.write(lambda file: file.delete(too_many)):
            self._read_totals()

    def is_over(self) -> bool:
        """Tell whether the files leave no room for another batch."""
        return (self.read(SpoolFile.used_bytes) or 0) > self._max_bytes - _ROOM_BYTES

    def open(self) -> None:
        """Open the file; a damaged one is moved aside."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open_file()
        except OSError as error:
            self._tell(f"{self.path} cannot be made: {error.strerror}; batches are kept in memory")
        except sqlite3.Error as error:
            self._failed(error)
            if _is_damage(error):
                with suppress(sqlite3.Error):
                    self._open_file()

    def _open_file(self) -> None:
        file = SpoolFile(self.path, max_bytes=self._max_bytes)
        try:
            self._adopt(file)
        except sqlite3.Error:
            file.close()
            raise
        self._file = file
        self._read_totals()

    def _adopt(self, file: SpoolFile) -> None:
        """Go on where the last process ended, or note where this one is."""
        meta, state = file.meta(), self._state
        if "boot_id" in meta and not state.sequence:
            state.boot_id = str(meta["boot_id"])
            state.sequence = int(meta["sequence"]) + SEQUENCE_GAP
            state.pending_dropped += int(meta["pending_dropped"])
        elif meta.get("boot_id") not in (None, state.boot_id):
            state.pending_dropped += int(meta["pending_dropped"])
            state.count_dropped(file.leave_numbers())  # those of another stream
        file.set_meta(
            boot_id=state.boot_id, sequence=state.sequence, pending_dropped=state.pending_dropped
        )

    def _read_totals(self) -> None:
        totals = self.read(SpoolFile.totals)
        if totals is not None:
            self.count, self.document_bytes = totals.count, totals.document_bytes
            self._samples = totals.sample_count
            self.last_id = totals.last_id

    def _uncount(self, rows: Sequence[tuple[int, int, int]]) -> None:
        self.count -= len(rows)
        self.document_bytes -= sum(row[1] for row in rows)
        self._samples -= sum(row[2] for row in rows)
        if not self.count and rows and (self.read(SpoolFile.file_bytes) or 0) > _SHRINK_BYTES:
            self.write(SpoolFile.shrink)

    def _has_free(self, keep_free_bytes: int) -> bool:
        try:
            disk = os.statvfs(self.path.parent)
        except OSError as error:
            self._tell(f"{self.path.parent} cannot be read: {error.strerror}")
            return False
        free_bytes = disk.f_bavail * disk.f_frsize
        if free_bytes >= keep_free_bytes:
            return True
        self._tell(
            f"{self.path.parent} has less than {keep_free_bytes / 2**20:,.0f} MiB left, which are "
            "for others; batches are kept in memory"
        )
        # With nothing in the log that the file lacks, numbers and ends go into it from its start
        # and need no more disk, even when others take the rest.
        self._made_room()
        return False

    def _made_room(self) -> bool:
        """Use the log from its start again: on a full disk numbers and ends still go in there."""
        if self._file is None:
            return False
        try:
            self._file.make_room_in_log()
        except sqlite3.Error:
            return False
        return True

    def _failed(self, error: sqlite3.Error) -> None:
        if _is_damage(error):
            self._move_aside(error)
        else:
            self._tell(f"{self.path} cannot be written: {error}; batches are kept in memory")

    def _move_aside(self, error: sqlite3.Error) -> None:
        """Make way for a new file; numbers go on where this process knows the last one."""
        if self._file is not None:
            with suppress(sqlite3.Error):
                self._file.close()
            self._file = None
        self._state.count_dropped(self._samples)
        self.count = self.document_bytes = self._samples = 0
        aside = self.path.with_name(self.path.name + ".damaged")
        with suppress(OSError):
            self.path.replace(aside)
        for end in ("-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + end).unlink()
        self._tell(f"{self.path} was damaged: {error}; it is now {aside.name}, a new one begins")

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            _log.warning("spool: %s", problem)
        self.problem = problem


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code of an error; 0: it has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _is_damage(error: sqlite3.Error) -> bool:
    return _code(error) in _DAMAGED or "malformed" in str(error)
