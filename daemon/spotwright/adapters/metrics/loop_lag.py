"""How long the event loop is held up: by how much something is late that should run on time."""

import asyncio
import time
from collections.abc import Callable

_TICK_S = 0.05


class LoopLag:
    """The longest delay of the event loop within the last period or two."""

    def __init__(
        self, *, period_s: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._period_s, self._clock = period_s, clock
        self._began_s = clock()
        self._largest_s, self._before_s = 0.0, 0.0

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            due_s = self._clock() + _TICK_S
            await asyncio.sleep(_TICK_S)
            self.note(self._clock() - due_s)

    def note(self, lag_s: float) -> None:
        """Take one delay into account."""
        self._turn_over()
        self._largest_s = max(self._largest_s, lag_s)

    def largest_s(self) -> float:
        """Return the longest delay; any thread may ask."""
        return max(self._largest_s, self._before_s)

    def _turn_over(self) -> None:
        """Begin a period where one is over; the one before it still counts."""
        now_s = self._clock()
        if now_s - self._began_s >= self._period_s:
            self._before_s, self._largest_s, self._began_s = self._largest_s, 0.0, now_s
