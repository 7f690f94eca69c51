"""Open sessions of agents: one each, the newest.

A session knows what it has received, what is stored and what it has acknowledged; it writes one
message at a time, because a stream takes no second one before.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from math import inf
from uuid import uuid4

import grpc
from google.rpc import status_pb2

from spotwright.adapters.grpc.errors import StatusError, make_status
from spotwright.adapters.grpc.telemetry.batch_reader import Sender
from spotwright.domain.errors import BusyError
from spotwright.domain.telemetry import AgentFacts, BatchKey
from spotwright.v1 import telemetry_pb2 as v1

MAX_UNACKED_BATCHES = 4
_HURRY_BATCHES = 2  # stored and not acknowledged: do not wait for more
_SOON_S = 1.2  # an agent that sends this often will have more to acknowledge shortly
_RETRY_AFTER_S = 1.0


class AgentSession:
    """One agent's connection."""

    def __init__(
        self, facts: AgentFacts, context: grpc.aio.ServicerContext, *, sampling: v1.Sampling
    ) -> None:
        self.facts, self.sampling = facts, sampling
        self.session_id = uuid4().hex
        self.sender = Sender(facts.agent_id, facts.boot_id, facts.job_id)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.finished = asyncio.Event()  # nothing of it is left
        self.ack_queued = False
        self.last_heard_s = time.monotonic()
        self._context = context
        self._gap_s, self._last_batch_s = inf, -inf
        self._received = self._stored = self._acked = 0
        self._unacked: deque[int] = deque()  # sequences, rising
        self._half_closed = self._urgent = False
        self._to_say: deque[v1.SessionResponse] = deque()  # besides acknowledgements
        self._writing: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Send the call's headers by themselves.

        They would go with the first response; where the writing of that is broken off, gRPC sends
        them again with the status, refuses that, and the call never ends.
        """
        await self._context.send_initial_metadata(())

    def welcome(self, last_sequence: int, *, max_batch_bytes: int, unix_ms: int) -> None:
        """Answer hello, without waiting for an agent that does not read."""
        self._received = self._stored = self._acked = last_sequence
        welcome = v1.Welcome(
            last_sequence=last_sequence,
            max_unacked_batches=MAX_UNACKED_BATCHES,
            max_batch_bytes=max_batch_bytes,
            server_time_unix_ms=unix_ms,
            sampling=self.sampling,
        )
        self._say(v1.SessionResponse(welcome=welcome))

    async def read(self) -> v1.SessionRequest | None:
        """Return what the agent says next; None: it has said everything."""
        request = await self._context.read()
        if request is grpc.aio.EOF:
            return None
        self.last_heard_s = time.monotonic()
        assert isinstance(request, v1.SessionRequest)
        return request

    def is_duplicate(self, sequence: int) -> bool:
        """Tell whether a batch, or one after it, came before."""
        return sequence <= self._received

    def check_room(self) -> None:
        """Raise BusyError where one more batch would be more than may be on their way."""
        if len(self._unacked) >= MAX_UNACKED_BATCHES:
            raise BusyError(
                f"agent {self.facts.agent_id} sent more than {MAX_UNACKED_BATCHES} batches that "
                "are not acknowledged",
                retry_after_s=_RETRY_AFTER_S,
            )

    def received(self, sequence: int, *, urgent: bool) -> None:
        """Note that a batch is on its way into the store."""
        self._gap_s, self._last_batch_s = self.last_heard_s - self._last_batch_s, self.last_heard_s
        self._received = sequence
        self._unacked.append(sequence)
        self._urgent = self._urgent or urgent

    def stored(self, sequence: int) -> None:
        """Note that a batch and every one before it are stored for good."""
        self._stored = max(self._stored, sequence)

    def repeat_ack(self) -> None:
        """Have the latest acknowledgement sent again at once, for an agent that missed it."""
        self._acked = min(self._acked, self._stored - 1)
        self._urgent = True

    @property
    def has_ack(self) -> bool:
        """Something is stored that was not acknowledged."""
        return self._stored > self._acked

    @property
    def is_urgent(self) -> bool:
        """Something that hurries is not acknowledged yet."""
        return self._urgent

    @property
    def hurries(self) -> bool:
        """The acknowledgement should not wait for more to acknowledge."""
        return (
            self._urgent
            or self._half_closed
            or len(self._unacked) >= _HURRY_BATCHES
            or self._gap_s > _SOON_S
        )

    def half_close(self) -> None:
        """Note that the agent sends nothing more; the session ends after its last ack."""
        self._half_closed = True
        self._end_when_done()

    def send_ack(self) -> None:
        """Acknowledge everything that is stored."""
        self._write()

    def send_command(self, command: v1.Command) -> None:
        """Give the agent something to do."""
        if command.WhichOneof("action") == "set_sampling":
            self.sampling = command.set_sampling
        self._say(v1.SessionResponse(command=command))

    def end(self, status: status_pb2.Status) -> None:
        """End the session with a status."""
        self.fail(StatusError(status))

    def fail(self, problem: Exception) -> None:
        """End the session with what went wrong."""
        if not self.ended.done():
            self.ended.set_exception(problem)

    async def written(self) -> None:
        """Wait until everything that is to be written is."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def stop_writing(self) -> None:
        """Leave what is still to be written."""
        if self._writing is not None:
            self._writing.cancel()

    def _say(self, response: v1.SessionResponse) -> None:
        self._to_say.append(response)
        self._write()

    def _write(self) -> None:
        if (self._writing is None or self._writing.done()) and not self.ended.done():
            self._writing = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._to_say or self.has_ack:
                await self._context.write(self._next_response())
        except (asyncio.InvalidStateError, grpc.aio.UsageError, grpc.aio.BaseError):
            return  # the stream is gone, and whoever reads from it learns so
        self._end_when_done()

    def _next_response(self) -> v1.SessionResponse:
        if self._to_say:
            return self._to_say.popleft()
        self._acked = self._stored
        while self._unacked and self._unacked[0] <= self._acked:
            self._unacked.popleft()
        self._urgent = self._urgent and bool(self._unacked)
        return v1.SessionResponse(ack=v1.Ack(sequence=self._acked))

    def _end_when_done(self) -> None:
        left = self._unacked or self._to_say or self.has_ack
        if self._half_closed and not left and not self.ended.done():
            self.ended.set_result(None)


class AgentSessions:
    """The sessions that are open at this replica."""

    def __init__(self) -> None:
        self._by_agent: dict[str, AgentSession] = {}

    def __len__(self) -> int:
        return len(self._by_agent)

    def __iter__(self) -> Iterator[AgentSession]:
        return iter(tuple(self._by_agent.values()))

    def get(self, agent_id: str) -> AgentSession | None:
        """Return an agent's session."""
        return self._by_agent.get(agent_id)

    def add(self, session: AgentSession) -> AgentSession | None:
        """Make this the agent's session; return the one it had, which ends."""
        older = self._by_agent.get(session.facts.agent_id)
        self._by_agent[session.facts.agent_id] = session
        if older is not None:
            older.end(replaced_status(session.facts.agent_id))
        return older

    def remove(self, session: AgentSession) -> bool:
        """Forget a session; False where it is not the agent's any more."""
        if self._by_agent.get(session.facts.agent_id) is not session:
            return False
        del self._by_agent[session.facts.agent_id]
        return True

    def stored(self, keys: Iterable[BatchKey]) -> list[AgentSession]:
        """Note what is stored; return the sessions that have something to acknowledge."""
        touched: dict[str, AgentSession] = {}
        for agent_id, boot_id, sequence in keys:
            session = self._by_agent.get(agent_id)
            if session is not None and session.facts.boot_id == boot_id:
                session.stored(sequence)
                touched[agent_id] = session
        return list(touched.values())


def replaced_status(agent_id: str) -> status_pb2.Status:
    """Return how a session ends that is not the newest."""
    return make_status(
        grpc.StatusCode.ABORTED,
        f"agent {agent_id} opened a newer session; two agents must not share a name",
        reason="SESSION_REPLACED",
    )


def idle_status(agent_id: str, *, idle_s: float) -> status_pb2.Status:
    """Return how a session ends on which nothing is said."""
    return make_status(
        grpc.StatusCode.ABORTED,
        f"agent {agent_id} said nothing for {idle_s:.0f} s",
        reason="SESSION_IDLE",
    )


def no_hello_status(hello_s: float) -> status_pb2.Status:
    """Return how a call ends on which nobody says who it is."""
    return make_status(
        grpc.StatusCode.ABORTED,
        f"a session must begin with hello, and none came within {hello_s:g} s",
        reason="SESSION_IDLE",
    )


def refused_status(key: BatchKey) -> status_pb2.Status:
    """Return how a session ends with a batch that the store cannot keep."""
    return make_status(
        grpc.StatusCode.INVALID_ARGUMENT,
        f"batch {key.sequence} of agent {key.agent_id} cannot be stored, and neither can what came "
        "after it; leave this batch out and send the others again",
        reason="BATCH_REFUSED",
        facts={"sequence": str(key.sequence)},
    )


def stopping_status() -> status_pb2.Status:
    """Return how sessions end when the daemon does."""
    return make_status(
        grpc.StatusCode.UNAVAILABLE,
        "the daemon stops; come back shortly",
        reason="STOPPING",
        retry_after_s=_RETRY_AFTER_S,
    )
