"""Checkpoints taken while training goes on, so that no more than one interval is ever unsaved.

A copy is taken every half interval and written beside training. An update that would be one more
than the interval beyond what is safely written waits for the writing to end: on a place that is too
slow training is slower, and never loses more than was asked for.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from spotwright.domain.errors import OutsideWorldError, SpotwrightError, TrainingError
from spotwright.train.checkpoint import Checkpoint, to_parts
from spotwright.train.checkpoint_places import CheckpointPlace
from spotwright.train.updates import Progress

_GIVES_UP_S = 120.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingRules:
    """Where checkpoints go, under which name, and how many updates may be lost."""

    place: CheckpointPlace
    name: str
    every: int


class Saver:
    """Writes checkpoints of one server from a thread of its own."""

    def __init__(
        self, progress: Progress, rules: SavingRules, snapshot: Callable[[], Checkpoint]
    ) -> None:
        """Begin with what the server holds now as saved.

        Args:
            progress: of the server; its lock is held when `snapshot` is called.
            rules: where to, and how often.
            snapshot: copies what there is to save.
        """
        self._progress, self._rules, self._snapshot = progress, rules, snapshot
        self._saved = self._copied = progress.shard.version
        self._copied_end = progress.is_over
        self._stopping = False
        self._failure: TrainingError | None = None
        self._thread = threading.Thread(target=self._run, name="saver", daemon=True)
        progress.before_update = self._before_update

    @property
    def saved_version(self) -> int:
        """The latest version that is safe."""
        return self._saved

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """Write what is not saved yet, and end.

        Raises:
            TrainingError: that cannot be written.
        """
        with self._progress.lock:
            self._stopping = True
            self._progress.lock.notify_all()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @property
    def _half(self) -> int:
        return max(1, self._rules.every // 2)

    def _before_update(self) -> None:
        """Wake the thread when the update makes a copy due; wait while too much is unsaved."""
        progress = self._progress
        if progress.shard.version + 1 - self._copied >= self._half:
            progress.lock.notify_all()
        while (
            progress.shard.version + 1 - self._saved > self._rules.every and progress.takes_updates
        ):
            progress.lock.wait()

    def _run(self) -> None:
        try:
            while (copy := self._next_copy()) is not None:
                self._write(copy)
                with self._progress.lock:
                    self._saved = copy.version
                    self._progress.lock.notify_all()
        except Exception as error:  # whatever it is: nobody else would tell, and updates would wait
            self._failure = TrainingError(f"training cannot be saved: {_told(error)}")
            self._progress.fail(self._failure)

    def _next_copy(self) -> Checkpoint | None:
        """Wait until half an interval has passed, or all has ended; None: nothing is left."""
        progress = self._progress
        with progress.lock:
            while not self._stopping and progress.shard.version - self._copied < self._half:
                progress.lock.wait()
            if self._stopping and self._is_all_copied:
                return None
            copy = self._snapshot()
            self._copied, self._copied_end = copy.version, copy.is_over
            return copy

    @property
    def _is_all_copied(self) -> bool:
        """Whether the latest copy has the last update, and the end, which may come after it."""
        progress = self._progress
        return (progress.shard.version, progress.is_over) == (self._copied, self._copied_end)

    def _write(self, copy: Checkpoint) -> None:
        parts, until_s, pause_s = to_parts(copy), time.monotonic() + _GIVES_UP_S, _FIRST_PAUSE_S
        while True:
            try:
                self._rules.place.write(self._rules.name, parts)
                return
            except OutsideWorldError:
                if time.monotonic() >= until_s or self._stopping:
                    raise
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, SpotwrightError) else repr(error)
