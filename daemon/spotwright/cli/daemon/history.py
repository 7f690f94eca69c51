"""Wiring of history: segments are written in a process of its own, when one is due."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from spotwright.adapters.grpc.messages.telemetry import rows_of
from spotwright.adapters.history.write import WINDOW_S, write_due_segments
from spotwright.adapters.store.sql_store import open_store
from spotwright.usecases.history_ports import Archived


class HistoryWriting:
    """Writes what is due; between two windows it only remembers how far history has come."""

    def __init__(self, store_url: str, folder: Path, *, clock: Callable[[], float]) -> None:
        self._store_url, self._folder, self._clock = store_url, folder, clock
        self._last_unix_s = self._next_unix_s = 0.0
        self._archived = Archived(until_unix_s=0.0, segment_count=0, row_count=0)

    def __call__(self) -> Archived:
        """Return how far history has come. Blocks while it is written."""
        now_unix_s = self._clock()
        if self._last_unix_s <= now_unix_s < self._next_unix_s:  # else the clock was set back
            return self._archived._replace(segment_count=0, row_count=0)
        write = partial(
            write_due_segments,
            self._store_url,
            str(self._folder),
            open_source=open_store,
            rows_of=rows_of,
            now_unix_s=now_unix_s,
        )
        # A process for each time: pyarrow's memory is given back between windows.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            self._archived = process.submit(write).result()
        self._last_unix_s, self._next_unix_s = now_unix_s, now_unix_s + WINDOW_S / 2
        return self._archived
