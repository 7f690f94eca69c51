"""What the daemon expected of a job while it ran, and how far off that was."""

import threading
import time
from types import TracebackType
from typing import NamedTuple, Self

from lab.followed_job import FollowedJob

_EVERY_S = 1.0


class Told(NamedTuple):
    """One forecast."""

    at_s: float  # by the clock that all processes share
    end_s: float  # when the goal will be reached, by the same clock
    low_s: float
    high_s: float


class ToldForecasts:
    """Asks the daemon from time to time, as somebody who waits for the job would."""

    def __init__(self, job: FollowedJob) -> None:
        """Ask about a job."""
        self._job, self._stopping = job, threading.Event()
        self._told: list[Told] = []
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def at(self, at_s: float) -> Told | None:
        """Return what was told at a moment; None where nothing was yet."""
        return next((told for told in reversed(self._told) if told.at_s <= at_s), None)

    def _ask(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            run = self._job.run
            if run.course.forecast is None or run.start_time is None:
                continue
            # Monotonic seconds since the job began, by the clock of the daemon.
            began_s = time.monotonic() - (time.time() - run.start_time.timestamp())
            expected = run.course.forecast.duration_s
            low_s, end_s, high_s = (
                began_s + seconds for seconds in (expected.low, expected.mid, expected.high)
            )
            self._told.append(Told(time.monotonic(), end_s, low_s, high_s))
