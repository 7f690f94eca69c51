"""Parameters as workers are sent them: one copy of a version, for all who ask for that version.

What is being sent to a slow worker stays as it was while others change the parameters; a copy that
nobody is sent any more is the room for the next.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition

from spotwright.train.layout import FlatBuffer
from spotwright.train.served_shard import ServedShard


@dataclass
class _Copy:
    flat: FlatBuffer
    version: int
    readers: int = 0


class Publication:
    """Copies of a shard, made under the server's lock and sent without it."""

    def __init__(self, shard: ServedShard, lock: Condition) -> None:
        self._shard, self._lock = shard, lock
        self._latest: _Copy | None = None
        self._free: list[FlatBuffer] = []

    @contextmanager
    def lent(self) -> Iterator[tuple[int, memoryview]]:
        """Lend the parameters of now and their version, for as long as it takes to send them."""
        with self._lock:
            copy = self._take()
        try:
            yield copy.version, copy.flat.bytes
        finally:
            with self._lock:
                copy.readers -= 1
                self._recycle(copy)

    def _take(self) -> _Copy:
        if self._latest is None or self._latest.version != self._shard.version:
            self._latest = self._newer(self._latest)
        self._latest.readers += 1
        return self._latest

    def _newer(self, former: _Copy | None) -> _Copy:
        self._latest = None
        if former is not None:
            self._recycle(former)
        flat = self._free.pop() if self._free else FlatBuffer(self._shard.shard.size_bytes)
        flat.raw.copy_(self._shard.flat.raw)
        return _Copy(flat, self._shard.version)

    def _recycle(self, copy: _Copy) -> None:
        if copy.readers == 0 and copy is not self._latest:
            self._free.append(copy.flat)
