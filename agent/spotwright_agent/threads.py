"""Threads that come back: what fails in one of them is told, and tried again after a pause."""

import logging
import threading
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_STEADY_S = 60.0

Work = Callable[[threading.Event], None]  # goes on until the event is set


class Worker:
    """Does work in a thread of its own, again and again should it fail."""

    def __init__(
        self, name: str, work: Work, *, stopping: threading.Event, steady_s: float = _STEADY_S
    ) -> None:
        """Begin; work that goes on for `steady_s` has overcome its failures."""
        self.name, self._work, self._stopping = name, work, stopping
        self._steady_s = steady_s
        self._begin_s: float | None = None  # None: it pauses
        self._problem = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """Why it failed; empty: it did not, or goes on well since."""
        return "" if self._is_steady() else self._problem

    def has_ended(self, *, wait_s: float) -> bool:
        """Wait for its end, after `stopping` was set; tell whether it came."""
        self._thread.join(max(0.0, wait_s))
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            self._begin_s = time.monotonic()
            try:
                self._work(self._stopping)
            except Exception as error:  # a mistake of ours must not take the others along
                self._failed(error)
            if self._is_steady():
                pause_s = _FIRST_PAUSE_S
            self._begin_s = None
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _is_steady(self) -> bool:
        begin_s = self._begin_s
        return begin_s is not None and time.monotonic() - begin_s >= self._steady_s

    def _failed(self, error: Exception) -> None:
        problem = f"failed: {type(error).__name__}: {error}"[:200]
        # What the system refuses, as a port that is taken, is no mistake in the code.
        is_news = problem != self.problem and not isinstance(error, OSError)
        _log.error("%s %s", self.name, problem, exc_info=error if is_news else None)
        self._problem = problem
