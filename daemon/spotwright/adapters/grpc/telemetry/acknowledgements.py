"""Acknowledgements, spread out.

An acknowledgement costs as much as a batch (about 200 us). An agent that sends every second is
therefore told about two batches at once, and what a commit makes due is written a few at a time,
so that other calls do not wait behind a thousand of them.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable

from spotwright.adapters.grpc.telemetry.agent_sessions import AgentSession

_TICK_S = 0.02
_SPREAD_TICKS = 10  # what is due is written within about this many
_FEWEST = 4
_HOLD_S = 1.25  # how long an acknowledgement may wait for one more batch


class AckPacer:
    """Writes acknowledgements that are due."""

    def __init__(self) -> None:
        self._due: deque[AgentSession] = deque()
        self._held: deque[tuple[float, AgentSession]] = deque()  # by time
        self._some = asyncio.Event()

    def add(self, sessions: Iterable[AgentSession]) -> None:
        """Have sessions acknowledge what is stored."""
        due_s = time.monotonic() + _HOLD_S
        for session in sessions:
            if session.hurries:
                self._make_due(session)
            else:
                self._held.append((due_s, session))
        self._some.set()

    async def run(self) -> None:
        """Write what is due, for as long as the daemon runs."""
        while True:
            await self._some.wait()
            self.write_some()
            if not self._due and not self._held:
                self._some.clear()
            await asyncio.sleep(_TICK_S)

    def write_some(self) -> None:
        """Write a share of what is due now."""
        now_s = time.monotonic()
        while self._held and self._held[0][0] <= now_s:
            self._make_due(self._held.popleft()[1])
        for _ in range(min(len(self._due), max(_FEWEST, len(self._due) // _SPREAD_TICKS))):
            self._acknowledge(self._due.popleft())

    def write_all(self) -> None:
        """Write everything now."""
        for _, session in self._held:
            self._make_due(session)
        self._held.clear()
        while self._due:
            self._acknowledge(self._due.popleft())

    def _make_due(self, session: AgentSession) -> None:
        if session.has_ack and not session.ack_queued:
            session.ack_queued = True
            self._due.append(session)

    @staticmethod
    def _acknowledge(session: AgentSession) -> None:
        session.ack_queued = False
        session.send_ack()
