"""TelemetryService: sessions of agents, and questions about what they sent."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import uuid4

import grpc

from spotwright.adapters.grpc.errors import StatusError
from spotwright.adapters.grpc.messages.telemetry import (
    agent_to_proto,
    command_from_proto,
    rollup_to_proto,
    unix_ms_of,
)
from spotwright.adapters.grpc.pages import bad_token, page_size_of, place_of, token_of
from spotwright.adapters.grpc.telemetry.agent_sessions import stopping_status
from spotwright.adapters.grpc.telemetry.agent_watch import AgentWatch
from spotwright.adapters.grpc.telemetry.ingest import SessionTimes, TelemetryIngest
from spotwright.adapters.grpc.telemetry.sample_pages import LONGEST_NUMBER, Window, sample_page
from spotwright.domain.errors import BadInputError
from spotwright.domain.telemetry import AgentRecord, QueuedCommand
from spotwright.usecases.all_agents import all_agents
from spotwright.usecases.record_telemetry import TelemetryWriter
from spotwright.usecases.store_ports import TelemetryStore
from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceServicer

_T = TypeVar("_T")
_END_OF_TIME_UNIX_MS = 4_102_444_800_000
_MOST_ROLLUPS = 4_000  # with every figure 3 MB; clients take messages of 4 MiB
_GONE_AFTER_S = 300.0  # longer than a session may be silent: its replica has died
_RESOLUTIONS_S = {
    v1.ROLLUP_RESOLUTION_UNSPECIFIED: 10,
    v1.ROLLUP_RESOLUTION_TEN_SECONDS: 10,
    v1.ROLLUP_RESOLUTION_MINUTE: 60,
}


class TelemetryService(TelemetryServiceServicer):
    """Telemetry in, commands out, and questions about what was measured."""

    def __init__(
        self,
        store: TelemetryStore,
        writer: TelemetryWriter,
        *,
        replica: str,
        clock: Callable[[], float] = time.time,
        times: SessionTimes = SessionTimes(),  # noqa: B008
        job_changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Serve as `replica`; `job_changed` is told which job has news of a host."""
        self._store, self._clock = store, clock
        self.ingest = TelemetryIngest(
            store, writer, replica=replica, clock=clock, times=times, job_changed=job_changed
        )
        self._questions = ThreadPoolExecutor(2, thread_name_prefix="telemetry-questions")
        self._closed = False
        self._watch = AgentWatch(self._all_agents, self._is_connected, self._questions)

    async def start(self) -> None:
        """Begin to take batches."""
        self.ingest.start()

    async def close(self) -> None:
        """Store and acknowledge what was received, end all sessions, and take no more."""
        self._watch.close()
        await self.ingest.close()
        self._closed = True
        await asyncio.to_thread(self._questions.shutdown)

    async def Session(self, request_iterator: object, context: grpc.aio.ServicerContext) -> None:  # noqa: ARG002, N802
        """Hold one agent's connection."""
        await self.ingest.hold(context)

    async def ListAgents(  # noqa: N802
        self,
        request: v1.ListAgentsRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> v1.ListAgentsResponse:
        """List agents with their latest figures, by name."""
        size = page_size_of(request.page_size, usual=100)
        after = place_of(request.page_token)

        def listed() -> v1.ListAgentsResponse:
            records = self._store.agents(job_id=request.job_id, after_id=after, limit=size + 1)
            agents = [
                agent_to_proto(record, connected=self._is_connected(record))
                for record in records[:size]
            ]
            more = len(records) > size
            token = token_of(agents[-1].facts.agent_id) if more else ""
            return v1.ListAgentsResponse(agents=agents, next_page_token=token)

        return await self._asked(listed)

    async def WatchAgents(  # noqa: N802
        self,
        request: v1.WatchAgentsRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> AsyncIterator[v1.WatchAgentsResponse]:
        """Stream the agents whose figures changed, all of them first."""
        interval_s = request.interval_s if request.HasField("interval_s") else 1.0
        if not 0.1 <= interval_s <= 3600:
            raise BadInputError(f"interval_s must be from 0.1 to 3600, got {interval_s:g}")
        async for agents in self._watch.changes(job_id=request.job_id, interval_s=interval_s):
            yield v1.WatchAgentsResponse(agents=agents)

    async def ListSamples(  # noqa: N802
        self,
        request: v1.ListSamplesRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> v1.ListSamplesResponse:
        """List samples as they were sent, oldest first."""
        size = page_size_of(request.page_size, usual=1_000, most=10_000)
        window = _window(request)

        def listed() -> v1.ListSamplesResponse:
            self._store.agent(window.agent_id)
            return sample_page(self._store, window, page_token=request.page_token, page_size=size)

        return await self._asked(listed)

    async def ListRollups(  # noqa: N802
        self,
        request: v1.ListRollupsRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> v1.ListRollupsResponse:
        """List means and extremes of an agent's samples, oldest first."""
        resolution_s = _RESOLUTIONS_S.get(request.resolution)
        if resolution_s is None:
            raise BadInputError(f"resolution must be a RollupResolution, got {request.resolution}")
        size = page_size_of(request.page_size, usual=1_000, most=_MOST_ROLLUPS)
        window = _window(request)
        start_unix_s = max(-(-window.start_unix_ms // 1000), _rollup_place(request.page_token))

        def listed() -> v1.ListRollupsResponse:
            self._store.agent(window.agent_id)
            parts = self._store.rollups(
                window.agent_id,
                resolution_s=resolution_s,
                start_unix_s=start_unix_s,
                end_unix_s=-(-window.end_unix_ms // 1000),
                limit=size + 1,
            )
            token = token_of(str(parts[size].start_unix_s)) if len(parts) > size else ""
            rollups = [rollup_to_proto(part) for part in parts[:size]]
            return v1.ListRollupsResponse(rollups=rollups, next_page_token=token)

        return await self._asked(listed)

    async def SendCommand(  # noqa: N802
        self,
        request: v1.SendCommandRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> v1.SendCommandResponse:
        """Send a command to an agent that is connected to any replica."""
        command = command_from_proto(request.command, command_id=uuid4().hex)
        queued = QueuedCommand(
            command_id=command.command_id,
            agent_id=request.agent_id,
            document=command.SerializeToString(),
        )
        await self._asked(lambda: self._store.queue_command(queued))
        self.ingest.command_waits()
        return v1.SendCommandResponse(command_id=command.command_id)

    async def _asked(self, question: Callable[[], _T]) -> _T:
        if self._closed:
            raise StatusError(stopping_status())
        return await asyncio.get_running_loop().run_in_executor(self._questions, question)

    def _all_agents(self) -> Sequence[AgentRecord]:
        return list(all_agents(self._store))

    def _is_connected(self, record: AgentRecord) -> bool:
        """Tell whether a session is open; one elsewhere may have died with its replica."""
        if not record.session_id or self.ingest.holds(record):
            return bool(record.session_id)
        last_seen = record.last_seen
        return last_seen is not None and self._clock() - last_seen.timestamp() < _GONE_AFTER_S


def _rollup_place(page_token: str) -> int:
    """Return the start of the first interval of a page."""
    if not page_token:
        return 0
    place = place_of(page_token)
    if not place.isdecimal() or len(place) > LONGEST_NUMBER:
        raise bad_token(page_token)
    return int(place)


def _window(request: v1.ListSamplesRequest | v1.ListRollupsRequest) -> Window:
    start = unix_ms_of(request.start_time, absent=0)
    end = unix_ms_of(request.end_time, absent=_END_OF_TIME_UNIX_MS)
    if start > end:
        raise BadInputError("start_time must not be after end_time")
    return Window(request.agent_id, start, end)
