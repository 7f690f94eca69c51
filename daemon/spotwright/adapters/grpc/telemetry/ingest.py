"""Sessions from hello to their end, and what has to be done for all of them from time to time.

The event loop only reads, checks and hands over: batches go to the writer's thread; sessions are
opened and closed and commands fetched in one thread, so that an agent's sessions keep their order.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import grpc
from google.protobuf.message import DecodeError

from spotwright.adapters.grpc.access.callers import current_principal
from spotwright.adapters.grpc.errors import StatusError
from spotwright.adapters.grpc.messages.telemetry import facts_from_proto
from spotwright.adapters.grpc.telemetry.acknowledgements import AckPacer
from spotwright.adapters.grpc.telemetry.agent_sessions import (
    AgentSession,
    AgentSessions,
    idle_status,
    no_hello_status,
    refused_status,
    replaced_status,
    stopping_status,
)
from spotwright.adapters.grpc.telemetry.batch_reader import MAX_BATCH_BYTES, read_batch
from spotwright.domain.access import AccessRole
from spotwright.domain.errors import BadInputError, NotAllowedError, SpotwrightError
from spotwright.domain.telemetry import AgentFacts, AgentRecord, BatchKey, QueuedCommand
from spotwright.usecases.record_telemetry import TelemetryWriter
from spotwright.usecases.store_ports import TelemetryStore
from spotwright.v1 import telemetry_pb2 as v1

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_COMMANDS_S = 0.5
_LAST_ACKS_S = 2.0


class SessionTimes(NamedTuple):
    """How often agents send, and what is done about those that do not."""

    interval_s: float = 1.0  # between samples
    batch_s: float = 5.0
    silent_batches: int = 3  # a session ends after so many that did not come
    silent_extra_s: float = 60.0  # and this
    sweep_s: float = 3.0  # between looks for silent and replaced sessions
    hello_s: float = 30.0  # a call without hello ends after this
    close_s: float = 10.0  # how long sessions may take to end when the daemon does


class TelemetryIngest:
    """Holds the sessions of the agents that are connected to this replica."""

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
        self._store, self._writer, self._replica, self._clock = store, writer, replica, clock
        self._times, self._job_changed = times, job_changed
        self._sessions = AgentSessions()
        self._held: set[AgentSession] = set()  # those that are opening or closing, too
        self._sampling: dict[str, v1.Sampling] = {}  # what agents were told, until the daemon ends
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="telemetry-sessions")
        self._unclosed: dict[str, str] = {}  # agent by session, where the store could not write
        self._tasks: list[asyncio.Task[None]] = []
        self._command_waits = asyncio.Event()
        self._stopping = False
        self._pacer = AckPacer()

    @property
    def session_count(self) -> int:
        """Sessions open at this replica."""
        return len(self._sessions)

    @property
    def held_count(self) -> int:
        """Sessions open here, and those that are opening or closing."""
        return len(self._held)

    def holds(self, record: AgentRecord) -> bool:
        """Tell, to any thread, whether an agent's session is open at this replica."""
        session = self._sessions.get(record.facts.agent_id)
        return session is not None and session.session_id == record.session_id

    def start(self) -> None:
        """Begin to take batches."""
        loop = asyncio.get_running_loop()

        def on_stored(keys: Sequence[BatchKey]) -> None:
            with suppress(RuntimeError):  # the loop has ended; agents ask again when they return
                loop.call_soon_threadsafe(self._stored, keys)

        def on_refused(session_id: str, key: BatchKey) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._refused, session_id, key)

        self._writer.start(on_stored, on_refused)
        self._tasks = [
            asyncio.create_task(self._pacer.run()),
            asyncio.create_task(self._again_and_again(self._sweep, self._times.sweep_s)),
            asyncio.create_task(self._again_and_again(self._deliver_commands, 0.0)),
        ]

    async def close(self) -> None:
        """Store what was received, acknowledge it, and end all sessions; once is enough."""
        if self._stopping:
            return
        self._stopping = True
        await asyncio.to_thread(self._writer.stop)
        await asyncio.sleep(0)  # what the writer stored last has now been noted
        self._pacer.write_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        sessions = list(self._sessions)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ACKS_S):
                await asyncio.gather(*(session.written() for session in sessions))
        for session in sessions:
            session.end(stopping_status())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._times.close_s):
                for session in list(self._held):
                    await session.finished.wait()
                await self._in_thread(_nothing)  # sessions are closed in the store before it
        self._thread.shutdown(wait=False)

    def command_waits(self) -> None:
        """Say that a command was queued just now."""
        self._command_waits.set()

    async def hold(self, context: grpc.aio.ServicerContext) -> None:
        """Hold one agent's session, from hello to its end."""
        if self._stopping:
            raise StatusError(stopping_status())
        facts = await self._hello(context)
        if self._stopping:
            raise StatusError(stopping_status())
        usual = v1.Sampling(interval_s=self._times.interval_s, batch_s=self._times.batch_s)
        sampling = self._sampling.get(facts.agent_id, usual)
        session = AgentSession(facts, context, sampling=sampling)
        self._held.add(session)
        try:
            await self._open(session)
            await self._follow(session)
        finally:  # without a wait, in which the call could be cancelled once more
            self._writer.drop(session.session_id)
            self._close(session)
            session.stop_writing()
            self._held.discard(session)
            session.finished.set()

    async def _hello(self, context: grpc.aio.ServicerContext) -> AgentFacts:
        try:
            async with asyncio.timeout(self._times.hello_s):
                return await _hello(context)
        except TimeoutError:
            raise StatusError(no_hello_status(self._times.hello_s)) from None

    async def _open(self, session: AgentSession) -> None:
        await session.begin()
        start = await self._in_thread(
            lambda: self._store.open_session(
                session.facts, session_id=session.session_id, replica=self._replica
            )
        )
        if self._stopping:
            raise StatusError(stopping_status())
        older = self._sessions.add(session)
        if older is not None:
            self._writer.drop(older.session_id)
        session.welcome(
            start.last_sequence, max_batch_bytes=MAX_BATCH_BYTES, unix_ms=self._unix_ms()
        )

    async def _follow(self, session: AgentSession) -> None:
        """Read batches until the agent has said everything or somebody ends the session."""
        reading = asyncio.create_task(self._read_all(session))
        try:
            await session.ended
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_all(self, session: AgentSession) -> None:
        try:
            while (request := await _next_request(session)) is not None:
                if self._stopping or session.ended.done():  # what it has in the queue is dropped
                    return
                self._take(session, request)
            session.half_close()
        except Exception as problem:  # told, or logged, where the call ends
            session.fail(problem)

    def _take(self, session: AgentSession, request: v1.SessionRequest) -> None:
        if not request.HasField("batch"):
            raise BadInputError("a session says hello once, and then sends batches only")
        batch = request.batch
        if batch.sequence < 1:
            raise BadInputError(f"batch.sequence must be at least 1, got {batch.sequence}")
        if session.is_duplicate(batch.sequence):
            session.repeat_ack()
            self._pacer.add([session])
            return
        session.check_room()
        received = read_batch(batch, sender=session.sender, receive_unix_ms=self._unix_ms())
        self._writer.put(received, session_id=session.session_id)
        urgent = bool(received.notices or received.probes)
        session.received(received.key.sequence, urgent=urgent)

    def _stored(self, keys: Sequence[BatchKey]) -> None:
        sessions = self._sessions.stored(keys)
        self._pacer.add(sessions)
        for job_id in {session.facts.job_id for session in sessions if session.is_urgent}:
            self._job_changed(job_id)  # a notice is an event of the job, which somebody may watch

    def _refused(self, session_id: str, key: BatchKey) -> None:
        session = self._sessions.get(key.agent_id)
        if session is not None and session.session_id == session_id:
            session.end(refused_status(key))
        self._writer.drop(session_id)

    def _close(self, session: AgentSession) -> None:
        """Mark the agent as not connected, after whatever the thread has to do before."""
        self._sessions.remove(session)
        agent_id, session_id = session.facts.agent_id, session.session_id
        self._unclosed[session_id] = agent_id
        with suppress(RuntimeError):  # closing did not wait for it; agents look gone after a while
            self._thread.submit(self._close_in_store, session_id)

    def _close_in_store(self, session_id: str) -> None:
        agent_id = self._unclosed.get(session_id)
        if agent_id is None:
            return
        try:
            self._store.close_session(agent_id, session_id)
        except SpotwrightError as problem:  # tried again with the next sweep
            _log.warning("a session could not be closed", extra={"problem": str(problem)})
        else:
            self._unclosed.pop(session_id, None)

    async def _again_and_again(self, work: Callable[[], Awaitable[None]], pause_s: float) -> None:
        """Do something from time to time, whatever goes wrong with the store."""
        while not self._stopping:
            try:
                await work()
            except SpotwrightError as problem:
                _log.warning("the store does not answer", extra={"problem": str(problem)})
                await asyncio.sleep(_COMMANDS_S)
            except Exception:
                _log.exception("work on sessions failed")
                await asyncio.sleep(_COMMANDS_S)
            await asyncio.sleep(pause_s)

    async def _sweep(self) -> None:
        """End sessions that are silent or have been replaced elsewhere; close those left open."""
        for session_id in list(self._unclosed):
            self._thread.submit(self._close_in_store, session_id)
        self._end_idle_sessions()
        mine = {session.facts.agent_id: session for session in self._sessions}
        if not mine:
            return
        newest = await self._in_thread(lambda: self._store.session_ids(list(mine)))
        for agent_id, session in mine.items():
            if newest.get(agent_id) != session.session_id:
                self._writer.drop(session.session_id)
                session.end(replaced_status(agent_id))

    def _end_idle_sessions(self) -> None:
        now_s, times = time.monotonic(), self._times
        for session in self._sessions:
            idle_s = now_s - session.last_heard_s
            if idle_s > times.silent_batches * session.sampling.batch_s + times.silent_extra_s:
                session.end(idle_status(session.facts.agent_id, idle_s=idle_s))

    async def _deliver_commands(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_COMMANDS_S):
                await self._command_waits.wait()
        self._command_waits.clear()
        agent_ids = [session.facts.agent_id for session in self._sessions]
        if agent_ids:  # what was taken is handed over even if the daemon begins to stop
            await asyncio.shield(self._hand_over(agent_ids))

    async def _hand_over(self, agent_ids: Collection[str]) -> None:
        taken = await self._in_thread(lambda: self._store.take_commands(agent_ids))
        left = [queued for queued in taken if not self._deliver(queued)]
        if left:
            await self._in_thread(lambda: self._queue_again(left))

    def _queue_again(self, left: Sequence[QueuedCommand]) -> None:
        """Have commands wait until their agents are back, here or at another replica."""
        for queued in left:
            # One name is queued once; the agent is told the first, which is in the document.
            self._store.queue_command(replace(queued, command_id=uuid4().hex))
            _log.info("a command waits for its agent", extra={"agent_id": queued.agent_id})

    def _deliver(self, queued: QueuedCommand) -> bool:
        """Hand a command over; False where the agent left before it came."""
        session = self._sessions.get(queued.agent_id)
        if session is None or session.ended.done():
            return False
        command = v1.Command.FromString(queued.document)
        if command.WhichOneof("action") == "set_sampling":
            self._sampling[queued.agent_id] = command.set_sampling
        session.send_command(command)
        return True

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _unix_ms(self) -> int:
        return int(self._clock() * 1000)


def _nothing() -> None:
    """Do nothing, after whatever a thread has to do before."""


async def _hello(context: grpc.aio.ServicerContext) -> AgentFacts:
    """Return who opens the session, if it may say so."""
    request = await _readable(context.read())
    if request is grpc.aio.EOF or not request.HasField("hello"):
        raise BadInputError("a session must begin with hello")
    facts = facts_from_proto(request.hello)
    principal = current_principal.get()
    if principal.role is AccessRole.AGENT and principal.name != facts.agent_id:
        raise NotAllowedError(
            f"hello.agent_id is {facts.agent_id!r}, the certificate is of {principal.name!r}; "
            "use that name, or issue a certificate for this one"
        )
    return facts


async def _next_request(session: AgentSession) -> v1.SessionRequest | None:
    request: v1.SessionRequest | None = await _readable(session.read())
    return request


async def _readable(reading: Awaitable[Any]) -> Any:
    try:
        return await reading
    except DecodeError as problem:
        raise BadInputError(f"the message is not a SessionRequest: {problem}") from problem
