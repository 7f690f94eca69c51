"""A cache of a dataset's items that never evicts.

Each item is used once an epoch, in an order that is drawn anew. A cache that evicts loses items
just before they are asked for again; one that keeps the first items that fit has, from the second
epoch on, exactly as many hits as it has items, which no other cache of its size beats.
"""

import threading
from collections.abc import Callable

from spotwright.domain.errors import BadInputError


class KeptItems:
    """Items of a slow source, as many as fit, kept for good. Safe to use from several threads."""

    def __init__(self, fetch: Callable[[int], bytes], *, capacity_bytes: int) -> None:
        """Begin with none.

        Args:
            fetch: reads an item from where all are stored.
            capacity_bytes: of all items that are kept.
        """
        if capacity_bytes < 0:
            raise BadInputError(f"capacity_bytes is {capacity_bytes}; it counts from 0")
        self._fetch, self._room_bytes = fetch, capacity_bytes
        self._kept: dict[int, bytes] = {}
        self._lock = threading.Lock()
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, index: int) -> bytes:
        """Return an item, and keep it where there is room."""
        with self._lock:
            item = self._kept.get(index)
            if item is not None:
                self.hits += 1
                return item
            self.misses += 1
        item = self._fetch(index)
        with self._lock:
            if index not in self._kept and len(item) <= self._room_bytes:
                self._kept[index] = item
                self._room_bytes -= len(item)
        return item
