"""Parameters as workers are sent them: lent, not copied.

A worker is sent the server's own memory. An update that comes while somebody is being sent it
leaves that memory as it is and goes on in a copy; what nobody is sent any more is the room for the
next. So there is one copy at most for each update, and none where workers do not overlap.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition

from spotwright.train.layout import FlatBuffer
from spotwright.train.served_shard import ServedShard


@dataclass(eq=False)
class _Room:
    flat: FlatBuffer
    readers: int = 0


class Publication:
    """Memory of a shard, lent under the server's lock and sent without it."""

    def __init__(self, shard: ServedShard, lock: Condition) -> None:
        self._shard, self._lock = shard, lock
        self._current = _Room(shard.flat)
        self._free: list[_Room] = []
        shard.before_change = self._leave_what_is_lent

    @contextmanager
    def lent(self) -> Iterator[tuple[int, memoryview]]:
        """Lend the parameters of now and their version, for as long as it takes to send them."""
        with self._lock:
            room, version = self._current, self._shard.version
            room.readers += 1
        try:
            yield version, room.flat.bytes
        finally:
            with self._lock:
                room.readers -= 1
                if room is not self._current and not room.readers:
                    self._free.append(room)

    def _leave_what_is_lent(self) -> None:
        """Have the shard go on elsewhere if its memory is being sent. Under the lock."""
        if not self._current.readers:
            return
        size_bytes = self._shard.shard.size_bytes
        self._current = self._free.pop() if self._free else _Room(FlatBuffer(size_bytes))
        self._shard.move_to(self._current.flat)
