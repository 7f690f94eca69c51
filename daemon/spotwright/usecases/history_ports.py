"""What goes from the store into history files, and how far that has come."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from spotwright.domain.telemetry import SampleRow, StoredBatch
from spotwright.usecases.store_ports import HistorySource


class Archived(NamedTuple):
    """How far history has come."""

    until_unix_s: float  # everything received before is in it
    segment_count: int  # written just now
    row_count: int


class ClosableHistorySource(HistorySource, Protocol):
    """A source that was opened for this."""

    def close(self) -> None:
        """Let go of it."""


RowsOf = Callable[[StoredBatch], Iterable[SampleRow]]
OpenSource = Callable[[str], ClosableHistorySource]
