"""Sessions of agents that do not read, and of those that say nothing, or too late."""

import asyncio
from typing import Any, cast

import grpc
import pytest

from spotwright.adapters.grpc.errors import StatusError
from spotwright.adapters.grpc.telemetry.ingest import SessionTimes, TelemetryIngest
from spotwright.usecases.record_telemetry import TelemetryWriter
from spotwright.v1 import telemetry_pb2 as v1
from tests.adapters.grpc.telemetry.telemetry_daemon import (
    TalkingAgent,
    connected,
    telemetry_daemon,
    until,
)
from tests.fakes.memory_telemetry_store import MemoryTelemetryStore

HELLO = v1.SessionRequest(hello=v1.AgentFacts(agent_id="a", boot_id="b"))


class DeafCall:
    """A call whose other end takes no bytes, as one with an HTTP/2 window of 0."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[v1.SessionRequest] = asyncio.Queue()
        self.written = asyncio.Event()  # somebody tried

    async def read(self) -> v1.SessionRequest:
        return await self.said.get()

    async def send_initial_metadata(self, _: object) -> None:
        """Headers go through whatever the window."""

    async def write(self, _: v1.SessionResponse) -> None:
        self.written.set()
        await asyncio.Event().wait()


def started(store: MemoryTelemetryStore, times: SessionTimes) -> TelemetryIngest:
    writer = TelemetryWriter(store, commit_interval_s=0.02)
    ingest = TelemetryIngest(store, writer, replica="here", times=times)
    ingest.start()
    return ingest


async def reason_of_end(holding: "asyncio.Task[None]") -> str:
    with pytest.raises(StatusError) as end:
        await asyncio.wait_for(holding, 10.0)
    return str(end.value)


def held(ingest: TelemetryIngest, call: DeafCall) -> "asyncio.Task[None]":
    return asyncio.create_task(ingest.hold(cast(grpc.aio.ServicerContext, cast(Any, call))))


def test_a_welcome_that_nobody_reads_does_not_keep_a_daemon_from_stopping() -> None:
    store = MemoryTelemetryStore()

    async def run() -> None:
        ingest, call = started(store, SessionTimes(close_s=600.0)), DeafCall()
        call.said.put_nowait(HELLO)
        holding = held(ingest, call)
        await asyncio.wait_for(call.written.wait(), 10.0)

        await asyncio.wait_for(ingest.close(), 10.0)

        assert "the daemon stops" in await reason_of_end(holding)
        assert ingest.held_count == 0

    asyncio.run(run())

    assert store.agent("a").session_id == ""


def test_a_session_that_cannot_end_does_not_keep_a_daemon_from_stopping() -> None:
    store = MemoryTelemetryStore()

    async def run() -> None:
        ingest, call = started(store, SessionTimes(close_s=0.1)), DeafCall()
        with store.held():
            call.said.put_nowait(HELLO)
            holding = held(ingest, call)
            await until(lambda: ingest.held_count == 1)
            await asyncio.wait_for(ingest.close(), 10.0)
        assert "the daemon stops" in await reason_of_end(holding)
        assert ingest.held_count == 0

    asyncio.run(run())


def test_a_hello_after_the_daemon_began_to_stop_is_told_so() -> None:
    store = MemoryTelemetryStore()

    async def run() -> None:
        ingest, call = started(store, SessionTimes()), DeafCall()
        holding = held(ingest, call)
        await asyncio.sleep(0)  # it waits for hello now
        await ingest.close()
        call.said.put_nowait(HELLO)

        assert "the daemon stops" in await reason_of_end(holding)
        assert ingest.held_count == 0

    asyncio.run(run())


def test_a_call_on_which_nobody_says_hello_ends() -> None:
    async def run() -> None:
        times = SessionTimes(hello_s=0.05)
        async with (
            telemetry_daemon(MemoryTelemetryStore(), times=times) as daemon,
            connected(daemon.port) as stub,
        ):
            code, reason, message = await TalkingAgent(stub).end()
            assert (code, reason) == (grpc.StatusCode.ABORTED, "SESSION_IDLE")
            assert "none came within 0.05 s" in message

    asyncio.run(run())
