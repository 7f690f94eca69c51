"""A ledger of rent in memory, with the promises of LedgerStore."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock

from spotwright.domain.ledger import LedgerEntry, ProgressMark


class MemoryLedger:
    """Keeps everything until the test ends."""

    def __init__(self) -> None:
        self._ledger_lock = Lock()
        self._entries: dict[tuple[str, datetime, str], LedgerEntry] = {}
        self._marks: dict[tuple[str, datetime], ProgressMark] = {}
        self.written_counts: list[int] = []  # rows of each write

    def write_ledger(
        self, entries: Sequence[LedgerEntry], marks: Sequence[ProgressMark] = ()
    ) -> None:
        with self._ledger_lock:
            self.written_counts.append(len(entries))
            for entry in entries:
                key = (entry.job_id, entry.start_time, entry.agent_id)
                kept = self._entries.get(key, entry)
                if entry.end_time > kept.end_time and kept.price_usd_per_hour is None:
                    kept = replace(kept, price_usd_per_hour=entry.price_usd_per_hour)
                self._entries[key] = replace(kept, end_time=max(kept.end_time, entry.end_time))
            for mark in marks:
                self._marks.setdefault((mark.job_id, mark.time), mark)

    def ledger(self, job_id: str, *, seen_since: datetime | None = None) -> Sequence[LedgerEntry]:
        with self._ledger_lock:
            mine = [entry for key, entry in sorted(self._entries.items()) if key[0] == job_id]
        return [entry for entry in mine if seen_since is None or entry.end_time >= seen_since]

    def progress_marks(self, job_id: str) -> Sequence[ProgressMark]:
        with self._ledger_lock:
            return [mark for key, mark in sorted(self._marks.items()) if key[0] == job_id]
