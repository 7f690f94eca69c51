"""Batches on their way into the store: many agents', committed together by one thread.

A batch waits at most `commit_interval_s`, one with a notice not at all. While the store cannot
write, batches wait and nothing is acknowledged; agents then stop by themselves.

An acknowledgement covers everything before it. Of a session with a batch that the store cannot
keep, nothing that came after that batch is therefore stored.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spotwright.domain.errors import BusyError, StoreUnavailableError
from spotwright.domain.telemetry import BatchKey, ReceivedBatch
from spotwright.usecases.store_ports import TelemetryStore

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_RETRY_AFTER_S = 2.0
_PART_BYTES = 2_700  # of sums by time with every figure
_RECENT_MS = 5_000  # history waits longer before it writes a window
COMMIT_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

OnStored = Callable[[Sequence[BatchKey]], None]
OnRefused = Callable[[str, BatchKey], None]  # the session, and its batch that cannot be kept


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterFigures:
    """What a writer has done so far."""

    batches_stored: int = 0
    rows_stored: int = 0  # one for each GPU sample, and for each host sample without GPUs
    duplicates: int = 0
    refused: int = 0  # batches that the store cannot keep, whatever is tried
    commits: int = 0
    commit_total_s: float = 0.0
    commit_last_s: float = 0.0
    commit_counts: tuple[int, ...] = field(default=(0,) * (len(COMMIT_BUCKETS_S) + 1))
    queue_length: int = 0
    queue_bytes: int = 0
    store_failing: bool = False


class _Waiting(NamedTuple):
    session_id: str
    batch: ReceivedBatch


class TelemetryWriter:
    """Takes batches from one thread and commits them in another."""

    def __init__(
        self,
        store: TelemetryStore,
        *,
        commit_interval_s: float = 0.25,
        max_queue_bytes: int = 64 * 1024 * 1024,
        max_commit_batches: int = 1_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._store, self._commit_interval_s = store, commit_interval_s
        self._max_queue_bytes, self._max_commit_batches = max_queue_bytes, max_commit_batches
        self._changed = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._queue_bytes = 0
        self._dropped: set[str] = set()  # sessions whose batches in the queue are left
        self._refused: set[str] = set()  # sessions that nothing more is taken of
        self._urgent = self._stopping = False
        self._give_up = threading.Event()
        self._figures = WriterFigures()
        self._on_stored: OnStored = _nobody
        self._on_refused: OnRefused = _nobody
        self._thread = threading.Thread(target=self._run, name="telemetry-writer", daemon=True)

    def start(self, on_stored: OnStored, on_refused: OnRefused) -> None:
        """Begin; both are told, in the writer's thread, what became of batches.

        Whoever is told of a refused batch ends its session, and drops it here.
        """
        self._on_stored, self._on_refused = on_stored, on_refused
        self._thread.start()

    def put(self, batch: ReceivedBatch, *, session_id: str) -> None:
        """Hand a batch over; BusyError where too much waits already."""
        with self._changed:
            if self._queue_bytes >= self._max_queue_bytes or self._stopping:
                raise BusyError(
                    f"{len(self._queue)} batches wait for the store", retry_after_s=_RETRY_AFTER_S
                )
            if session_id in self._refused:  # it ends as soon as it learns why
                return
            self._queue.append(_Waiting(session_id, batch))
            self._queue_bytes += _size_bytes(batch)
            self._urgent = self._urgent or bool(batch.notices)
            if self._urgent or len(self._queue) in (1, self._max_commit_batches):
                self._changed.notify()

    def drop(self, session_id: str) -> None:
        """Forget a session that has ended, and its batches that are not being committed yet."""
        with self._changed:
            self._refused.discard(session_id)
            if self._queue:
                self._dropped.add(session_id)

    def figures(self) -> WriterFigures:
        """Return what has been done so far."""
        with self._changed:
            return replace(
                self._figures, queue_length=len(self._queue), queue_bytes=self._queue_bytes
            )

    def stop(self, *, flush_s: float = 10.0) -> None:
        """Commit what waits, and end; give up after `flush_s` where the store cannot write."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(flush_s)
            self._give_up.set()
            self._thread.join()

    def _run(self) -> None:
        while waiting := self._next_batches():
            self._commit(waiting)

    def _next_batches(self) -> list[_Waiting]:
        """Wait for batches worth a commit; none: the writer ends."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping)
                self._changed.wait_for(self._cannot_wait, self._commit_interval_s)
                batches = self._taken()
                if batches or (self._stopping and not self._queue):
                    return batches

    def _cannot_wait(self) -> bool:
        return self._urgent or self._stopping or len(self._queue) >= self._max_commit_batches

    def _taken(self) -> list[_Waiting]:
        count = min(len(self._queue), self._max_commit_batches)
        taken = [self._queue.popleft() for _ in range(count)]
        self._queue_bytes -= sum(_size_bytes(batch) for _, batch in taken)
        kept = [waiting for waiting in taken if waiting.session_id not in self._dropped]
        if not self._queue:
            self._dropped.clear()
            self._urgent = False
        return kept

    def _commit(self, waiting: Sequence[_Waiting]) -> set[str]:
        """Store batches, however long it takes; return the sessions of those that are refused."""
        pause_s, batches = _FIRST_PAUSE_S, [batch for _, batch in waiting]
        while not self._give_up.is_set():
            try:
                self._commit_once(batches)
            except StoreUnavailableError as problem:
                self._failing(problem)
                self._give_up.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            except Exception:
                _log.exception("a commit failed", extra={"batch_count": len(batches)})
                break
            else:
                return set()
        return set() if self._give_up.is_set() else self._commit_apart(waiting)

    def _stamped(self, batches: Sequence[ReceivedBatch]) -> Sequence[ReceivedBatch]:
        """Have batches that waited long count as received now that the store may take them.

        History is written by time of receipt, and what were to appear in a window that is written
        already would not be in it.
        """
        now_ms = int(self._clock() * 1000)
        oldest_ms = now_ms - _RECENT_MS
        if all(batch.receive_unix_ms >= oldest_ms for batch in batches):
            return batches
        return [
            replace(batch, receive_unix_ms=now_ms) if batch.receive_unix_ms < oldest_ms else batch
            for batch in batches
        ]

    def _commit_once(self, batches: Sequence[ReceivedBatch]) -> None:
        started_s = time.monotonic()
        new = self._store.commit_batches(self._stamped(batches))
        self._count(batches, new, time.monotonic() - started_s)
        self._on_stored([batch.key for batch in batches])

    def _commit_apart(self, waiting: Sequence[_Waiting]) -> set[str]:
        """Keep what can be kept: the batches of others, and those before one that is refused."""
        if len(waiting) == 1:
            self._refuse(*waiting[0])
            return {waiting[0].session_id}
        half = len(waiting) // 2
        refused = self._commit(waiting[:half])
        rest = [each for each in waiting[half:] if each.session_id not in refused]
        return refused | self._commit(rest) if rest else refused

    def _refuse(self, session_id: str, batch: ReceivedBatch) -> None:
        with self._changed:
            self._refused.add(session_id)
            self._dropped.add(session_id)
            self._figures = replace(  # a store that refuses answers
                self._figures, refused=self._figures.refused + 1, store_failing=False
            )
        self._on_refused(session_id, batch.key)

    def _failing(self, problem: StoreUnavailableError) -> None:
        if not self._figures.store_failing:
            _log.warning("the store cannot write, batches wait", extra={"problem": str(problem)})
        with self._changed:
            self._figures = replace(self._figures, store_failing=True)

    def _count(
        self, batches: Sequence[ReceivedBatch], new: Collection[BatchKey], seconds: float
    ) -> None:
        counts = list(self._figures.commit_counts)
        counts[sum(seconds > bound_s for bound_s in COMMIT_BUCKETS_S)] += 1
        rows = sum(_row_count(batch) for batch in batches if batch.key in new)
        with self._changed:
            before = self._figures
            self._figures = WriterFigures(
                batches_stored=before.batches_stored + len(new),
                rows_stored=before.rows_stored + rows,
                duplicates=before.duplicates + len(batches) - len(new),
                refused=before.refused,
                commits=before.commits + 1,
                commit_total_s=before.commit_total_s + seconds,
                commit_last_s=seconds,
                commit_counts=tuple(counts),
            )


def _size_bytes(batch: ReceivedBatch) -> int:
    """Return about how much memory a batch takes while it waits."""
    return len(batch.document) + _PART_BYTES * len(batch.parts)


def _row_count(batch: ReceivedBatch) -> int:
    return sum(part.gpu_sample_count or part.host_sample_count for part in batch.parts)


def _nobody(*_: object) -> None:
    """Tell nobody."""
