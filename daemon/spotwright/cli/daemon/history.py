"""Wiring of history: segments are written in a process of its own, when one is due."""

import signal
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from spotwright.adapters.grpc.messages.telemetry import rows_of
from spotwright.adapters.history.write import WINDOW_S, write_due_segments
from spotwright.adapters.store.sql_store import open_store
from spotwright.domain.errors import OutsideWorldError
from spotwright.usecases.history_ports import Archived
from spotwright.usecases.keep_house import GoOn

_LOOK_S = 0.5  # between two looks at whether to go on


class HistoryWriting:
    """Writes what is due; between two windows it only remembers how far history has come."""

    def __init__(self, store_url: str, folder: Path, *, clock: Callable[[], float]) -> None:
        self._store_url, self._folder, self._clock = store_url, folder, clock
        self._last_unix_s = self._next_unix_s = 0.0
        self._archived = Archived(until_unix_s=0.0, segment_count=0, row_count=0)

    def __call__(self, go_on: GoOn) -> Archived:
        """Return how far history has come. Blocks while it is written, or until told to stop."""
        now_unix_s, nothing_new = (
            self._clock(),
            self._archived._replace(segment_count=0, row_count=0),
        )
        if self._last_unix_s <= now_unix_s < self._next_unix_s:  # else the clock was set back
            return nothing_new
        write = partial(
            write_due_segments,
            self._store_url,
            str(self._folder),
            open_source=open_store,
            rows_of=rows_of,
            now_unix_s=now_unix_s,
        )
        archived = _in_process(write, go_on)
        if archived is None:
            return nothing_new._replace(until_unix_s=min(nothing_new.until_unix_s, now_unix_s))
        self._archived = archived
        self._last_unix_s, self._next_unix_s = now_unix_s, now_unix_s + WINDOW_S / 2
        return archived


def _in_process(write: Callable[[], Archived], go_on: GoOn) -> Archived | None:
    """Run it in a process that is made for it: pyarrow's memory is given back between windows.

    Returns:
        None where it was told to stop: the process is killed, which leaves whole segments only.
    """
    spawn = get_context("spawn")
    answer, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_answer, args=(theirs, write), name="history", daemon=True)
    with answer:
        with theirs:
            process.start()
        try:
            while not answer.poll(_LOOK_S):
                if not go_on():
                    return None
            found = answer.recv()
        except EOFError as error:
            raise OutsideWorldError(
                "the process that writes history died; is there memory for it?"
            ) from error
        finally:
            process.kill()
            process.join()
            process.close()
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Archived)
    return found


def _answer(theirs: "Connection[object, object]", write: Callable[[], Archived]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the daemon, which ends this one
    try:
        found: Archived | Exception = write()
    except Exception as error:  # raised where it was asked for
        found = error
    theirs.send(found)
