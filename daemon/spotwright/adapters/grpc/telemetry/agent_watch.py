"""Agents whose figures changed, from one look at the store each second for everyone who watches.

Whether an agent is connected depends on the time, too, and is asked at every look.

Only the latest figures are kept, with the number of the look at which they changed; a watcher that
is slow finds the newest when it comes back, and nothing piles up for it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import NamedTuple

from spotwright.adapters.grpc.errors import StatusError
from spotwright.adapters.grpc.messages.telemetry import agent_to_proto
from spotwright.adapters.grpc.telemetry.agent_sessions import stopping_status
from spotwright.domain.telemetry import AgentRecord
from spotwright.v1 import telemetry_pb2 as v1

_LOOK_S = 1.0
_CHUNK = 100  # agents in a message


class _Latest(NamedTuple):
    record: AgentRecord
    agent: v1.Agent
    look: int  # at which it changed


class AgentWatch:
    """The latest figures of all agents, looked at only while somebody watches."""

    def __init__(
        self,
        records: Callable[[], Sequence[AgentRecord]],
        is_connected: Callable[[AgentRecord], bool],
        executor: Executor,
    ) -> None:
        """Prepare to watch; `records` and `is_connected` run in the executor."""
        self._records, self._is_connected, self._executor = records, is_connected, executor
        self._latest: dict[str, _Latest] = {}
        self._look, self._looked_s = 0, -_LOOK_S
        self._looking: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End everybody's watch."""
        self._closing.set()

    async def changes(self, *, job_id: str, interval_s: float) -> AsyncIterator[list[v1.Agent]]:
        """Yield all agents, then again and again those that changed."""
        seen = -1
        while not self._closing.is_set():
            await self._look_again()
            changed = [
                agent_id
                for agent_id, latest in self._latest.items()
                if latest.look > seen and job_id in ("", latest.record.facts.job_id)
            ]
            first, seen = seen < 0, self._look
            for start in range(0, len(changed) or first, _CHUNK):
                chunk = changed[start : start + _CHUNK]
                yield [self._latest[agent_id].agent for agent_id in chunk]
            with suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await self._closing.wait()
        raise StatusError(stopping_status())

    async def _look_again(self) -> None:
        """Look at the store, or wait for the look that somebody else began."""
        if time.monotonic() - self._looked_s < _LOOK_S:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_now())
        await asyncio.shield(self._looking)

    async def _look_now(self) -> None:
        loop = asyncio.get_running_loop()
        changed = await loop.run_in_executor(self._executor, self._changed, self._look + 1)
        self._look += 1
        self._looked_s = time.monotonic()
        for latest in changed:
            self._latest[latest.record.facts.agent_id] = latest

    def _changed(self, look: int) -> list[_Latest]:
        changed = []
        for record in self._records():
            before = self._latest.get(record.facts.agent_id)
            connected = self._is_connected(record)
            if before is None or before.record != record or before.agent.connected != connected:
                agent = agent_to_proto(record, connected=connected)
                changed.append(_Latest(record, agent, look))
        return changed
