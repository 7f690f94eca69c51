"""Threads that come back: what fails in one of them is told, and tried again after a pause."""

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0

Work = Callable[[threading.Event], None]  # goes on until the event is set


def start_thread(
    name: str, work: Work, *, stopping: threading.Event, on_problem: Callable[[str], None]
) -> threading.Thread:
    """Do work in a thread of its own, again and again should it fail."""

    def run() -> None:
        pause_s = _FIRST_PAUSE_S
        while not stopping.is_set():
            try:
                work(stopping)
            except Exception as problem:  # a mistake of ours must not take the others along
                _log.exception("%s failed", name)
                on_problem(f"failed: {type(problem).__name__}: {problem}"[:200])
            stopping.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
