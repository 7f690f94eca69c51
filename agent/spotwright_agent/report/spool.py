"""What the daemon has not acknowledged: on disk, bounded, and in memory where the disk fails.

A batch gets its number when it is first sent, and the number is on disk before that. So a notice
overtakes what waits, although the daemon takes rising numbers only, and a process that is killed
sends a batch again under the number that it had: the daemon has it once.

Numbers go on after a restart, with a gap: while the disk is full batches are sent whose numbers
were not written, and none of these may be given to another batch.

The oldest telemetry is dropped first, and counted; notices are kept, the newest 1,000.
"""

import fcntl
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spotwright_agent.report.clock import Clock, HostClock
from spotwright_agent.report.memory_shelf import MemoryShelf
from spotwright_agent.report.packing import Joining
from spotwright_agent.report.parcels import Parcel
from spotwright_agent.report.spool_disk import Disk, StreamState
from spotwright_agent.report.spool_file import Spooled, SpoolFile

MAX_NOTICES = 1_000
_MAX_JOINED = 200
_RETRY_MS = 10_000  # between looks whether a disk that failed works again
_MAX_DROPPED = 10**12  # what the daemon takes at once


class SpoolLockedError(Exception):
    """Another agent uses the same folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolLimits:
    """How much is kept, and for how long."""

    max_bytes: int = 256 * 2**20
    max_age_s: float = 7 * 86_400.0
    keep_free_bytes: int = 2**30  # of the disk, for others
    memory_bytes: int = 8 * 2**20


class Spool:
    """Batches on their way to the daemon. One thread at a time uses it."""

    def __init__(
        self, path: Path, *, limits: SpoolLimits | None = None, clock: Clock | None = None
    ) -> None:
        """Open the spool, with what an earlier process left.

        Raises:
            SpoolLockedError: another agent has it.
        """
        self.limits, self.clock = limits or SpoolLimits(), clock or HostClock()
        self._lock = _locked(path)
        self._state = StreamState()
        self._memory = MemoryShelf()
        self._disk = Disk(path, self._state, max_bytes=self.limits.max_bytes)
        self._last_id = self._disk.last_id
        self._retry_ms = 0

    def close(self) -> None:
        """Close the file; what is in it is sent by the next process."""
        if len(self._memory):
            self._move_to_disk()
        self._disk.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def boot_id(self) -> str:
        """Whose numbers these are."""
        return self._state.boot_id

    @property
    def problem(self) -> str:
        """Why batches are not on disk; empty: they are."""
        return self._disk.problem

    @property
    def dropped_total(self) -> int:
        """Samples and steps dropped since this process began."""
        return self._state.dropped_total

    @property
    def batch_count(self) -> int:
        """Batches that are not acknowledged."""
        return self._disk.count + len(self._memory)

    @property
    def document_bytes(self) -> int:
        """What they hold."""
        return self._disk.document_bytes + self._memory.document_bytes

    def put(self, parcel: Parcel) -> None:
        """Keep a parcel until the daemon has it."""
        self._last_id += 1
        self._memory.put(Spooled(id=self._last_id, parcel=parcel))
        if not self.problem or self.clock.boot_ms() >= self._retry_ms:
            self._move_to_disk()
        self._keep_bounds()

    def count_dropped(self, count: int) -> None:
        """Have samples that were dropped elsewhere told with the next batch."""
        self._state.count_dropped(count)

    def number_next(self, *, notice: bool) -> Spooled | None:
        """Give a number to the oldest notice, or to the oldest batch without; None: none waits."""
        on_disk = self._disk.read(lambda file: file.unsent(notice=notice))
        in_memory = self._memory.unsent(notice=notice)
        if on_disk is not None and (in_memory is None or on_disk.id < in_memory.id):
            numbered = self._number_on_disk(on_disk)
            if numbered is not None:
                return numbered
        if in_memory is not None:
            self._give_number(in_memory)
        return in_memory

    def numbered_after(self, sequence: int) -> Spooled | None:
        """Return the first batch that was given a number after this one."""
        found = self._memory.numbered(first=sequence + 1)[:1]
        on_disk = self._disk.read(lambda file: file.sent_after(sequence))
        if on_disk is not None:
            found.append(on_disk)
        return min(found, key=lambda batch: batch.sequence or 0, default=None)

    def forget_up_to(self, sequence: int) -> int:
        """Forget batches that the daemon has; return how many there were."""
        acknowledged = self._memory.numbered(last=sequence)
        self._memory.remove(acknowledged)
        return len(acknowledged) + self._disk.forget_up_to(sequence)

    def discard(self, sequence: int) -> bool:
        """Drop a batch that the daemon does not take, and count its samples."""
        for refused in self._memory.numbered(first=sequence, last=sequence):
            self._memory.remove([refused])
            self.count_dropped(refused.parcel.sample_count + refused.dropped_count)
            return True
        found = self._disk.read(lambda file: file.sent_as(sequence))
        return found is not None and self._disk.drop(found)

    def skip_numbers_to(self, sequence: int) -> None:
        """Give no number up to this one, which the daemon knows already."""
        self._state.sequence = max(self._state.sequence, sequence)

    def _give_number(self, batch: Spooled) -> None:
        state = self._state
        state.sequence += 1
        batch.sequence = state.sequence
        batch.dropped_count = min(state.pending_dropped, _MAX_DROPPED)
        state.pending_dropped -= batch.dropped_count

    def _number_on_disk(self, batch: Spooled) -> Spooled | None:
        """Number a batch of the file, with those after it that fit in; None: it must wait.

        Without its number on disk a batch is not sent: a process that is killed then would send
        it once more under another number.
        """
        state = self._state
        before = state.sequence, state.pending_dropped
        taken = [] if batch.is_notice else self._join(batch)
        self._give_number(batch)
        pending = state.pending_dropped
        if not self._disk.write(
            lambda file: file.number(batch, joined=taken, pending_dropped=pending)
        ):
            state.sequence, state.pending_dropped = before
            return None
        self._disk.count -= len(taken)
        return batch

    def _join(self, batch: Spooled) -> list[int]:
        """Have a batch take in those after it; after days away these are many and small."""
        taken: list[int] = []
        joining = Joining(batch.parcel)
        while len(taken) < _MAX_JOINED:
            after = taken[-1] if taken else batch.id
            following = self._disk.read(partial(SpoolFile.unsent_other, after=after))
            if following is None or not joining.take_in(following.parcel):
                break
            taken.append(following.id)
        batch.parcel = joining.whole()
        return taken

    def _move_to_disk(self) -> None:
        self._retry_ms = self.clock.boot_ms() + _RETRY_MS
        if not self._disk.is_open:
            self._disk.open()  # a file that has come back holds what was cut before
            self._last_id = self._memory.renumber(after=self._disk.last_id)
        waiting = self._memory.all()
        if self._disk.insert(waiting, keep_free_bytes=self.limits.keep_free_bytes):
            self._memory.remove(waiting)

    def _keep_bounds(self) -> None:
        disk, limits = self._disk, self.limits
        while (oldest := self._oldest_on_disk()) is not None:
            too_old = self._age_s(oldest.parcel) > limits.max_age_s
            if not (too_old or disk.is_over()) or not disk.drop(oldest):
                break
        while self._memory.held_bytes > limits.memory_bytes:
            in_memory = self._memory.unsent(notice=False)
            if in_memory is None:
                break
            self._memory.remove([in_memory])
            self.count_dropped(in_memory.parcel.sample_count)
        disk.keep_newest_notices(MAX_NOTICES)
        notices = self._memory.notices()
        self._memory.remove(notices[: max(0, len(notices) - MAX_NOTICES)])

    def _oldest_on_disk(self) -> Spooled | None:
        return self._disk.read(SpoolFile.unsent_other) if self._disk.count else None

    def _age_s(self, parcel: Parcel) -> float:
        """Return a batch's age; by the wall clock, which may have jumped, only after a reboot."""
        if parcel.stamp.kernel_boot == self.clock.kernel_boot:
            return (self.clock.boot_ms() - parcel.create_boot_ms) / 1000
        create_ms = parcel.create_boot_ms + parcel.stamp.offset_ms
        return (self.clock.wall_ms() - create_ms) / 1000


def _locked(path: Path) -> int | None:
    """Lock a spool; None: its folder cannot be written, so that nobody spools there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise SpoolLockedError(
            f"another agent uses {path.parent}; stop it, or name another folder with --state-dir"
        ) from None
    return lock
