"""Batches that the disk does not take, kept in memory until it does or the daemon has them."""

from collections.abc import Iterable

from spotwright_agent.report.spool_file import Spooled

_OVERHEAD_BYTES = 1_000


class MemoryShelf:
    """A few batches in memory, by the order in which they were cut."""

    def __init__(self) -> None:
        self._batches: dict[int, Spooled] = {}
        self.document_bytes = 0

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def held_bytes(self) -> int:
        """Memory taken, with what Python needs for each batch."""
        return self.document_bytes + _OVERHEAD_BYTES * len(self._batches)

    def all(self) -> list[Spooled]:
        """Return all batches, oldest first."""
        return [self._batches[each] for each in sorted(self._batches)]

    def put(self, batch: Spooled) -> None:
        """Keep a batch."""
        self._batches[batch.id] = batch
        self.document_bytes += len(batch.parcel.document)

    def remove(self, batches: Iterable[Spooled]) -> None:
        """Forget batches."""
        for batch in batches:
            if self._batches.pop(batch.id, None) is not None:
                self.document_bytes -= len(batch.parcel.document)

    def renumber(self, *, after: int) -> int:
        """Put the batches behind those up to an id, in their order; return the last id."""
        batches = self.all()
        for last, batch in enumerate(batches, after + 1):
            batch.id = last
        self._batches = {batch.id: batch for batch in batches}
        return after + len(batches)

    def unsent(self, *, notice: bool) -> Spooled | None:
        """Return the oldest batch that was never sent, with a notice or without."""
        found = [b for b in self._batches.values() if b.sequence is None and b.is_notice == notice]
        return min(found, key=lambda batch: batch.id, default=None)

    def numbered(self, *, first: int = 1, last: int | None = None) -> list[Spooled]:
        """Return batches with numbers from `first` to `last`, by number."""
        found = [
            (batch.sequence, batch)
            for batch in self._batches.values()
            if batch.sequence is not None
            and first <= batch.sequence
            and (last is None or batch.sequence <= last)
        ]
        return [batch for _, batch in sorted(found, key=lambda each: each[0])]

    def notices(self) -> list[Spooled]:
        """Return notices that were never sent, oldest first."""
        return [batch for batch in self.all() if batch.is_notice and batch.sequence is None]
