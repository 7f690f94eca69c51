"""Sessions of agents over real connections."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest

from spotwright.adapters.grpc.telemetry.ingest import SessionTimes
from spotwright.domain.access import AccessRole, Principal
from spotwright.v1 import telemetry_pb2 as v1
from tests.adapters.grpc.telemetry.telemetry_daemon import (
    TalkingAgent,
    TelemetryDaemon,
    batch,
    connected,
    telemetry_daemon,
    until,
)
from tests.fakes.memory_telemetry_store import MemoryTelemetryStore

Spoken = Callable[[TelemetryDaemon, TalkingAgent], Awaitable[None]]


def talk(spoken: Spoken, store: MemoryTelemetryStore | None = None, **daemon: Any) -> list[str]:
    """Run one session against a daemon; return how calls ended."""

    async def run() -> list[str]:
        async with (
            telemetry_daemon(store or MemoryTelemetryStore(), **daemon) as here,
            connected(here.port) as stub,
        ):
            await spoken(here, TalkingAgent(stub))
        return here.statuses

    return asyncio.run(run())


def stored_sequences(store: MemoryTelemetryStore) -> list[int]:
    return [row.key.sequence for row in store.rows]


def test_a_batch_is_acknowledged_only_after_it_is_stored() -> None:
    store = MemoryTelemetryStore()
    store.gate.clear()

    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        await agent.send(batch(1))
        hearing = asyncio.create_task(agent.acked_up_to(1))
        await asyncio.wait([hearing], timeout=0.5)
        assert not hearing.done()
        assert not store.rows
        store.gate.set()
        await hearing
        assert stored_sequences(store) == [1]

    talk(spoken, store)


def test_welcome_tells_limits_and_what_is_stored_of_the_boot() -> None:
    async def spoken(here: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        await agent.send(batch(1))
        await agent.send(batch(7))
        await agent.acked_up_to(7)
        async with connected(here.port) as stub:
            same_boot = await TalkingAgent(stub).hello()
            other_boot = await TalkingAgent(stub).hello(boot_id="c")
        assert (same_boot.last_sequence, other_boot.last_sequence) == (7, 0)
        assert (same_boot.max_unacked_batches, same_boot.max_batch_bytes) == (4, 256 * 1024)
        assert abs(same_boot.server_time_unix_ms / 1000 - time.time()) < 10

    talk(spoken)


@pytest.mark.parametrize("again", [2, 1])
def test_a_batch_sent_again_is_acknowledged_again_and_stored_once(again: int) -> None:
    store = MemoryTelemetryStore()

    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        await agent.send(batch(1))
        await agent.send(batch(2))
        await agent.acked_up_to(2)
        await agent.send(batch(again))
        await agent.acked_up_to(2)

    talk(spoken, store)

    assert stored_sequences(store) == [1, 2]


def test_a_fifth_batch_without_an_acknowledgement_ends_the_session() -> None:
    store = MemoryTelemetryStore()
    store.gate.clear()

    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        for sequence in range(1, 6):
            await agent.send(batch(sequence))
        code, reason, message = await agent.end()
        assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "BUSY")
        assert "more than 4 batches" in message
        store.gate.set()

    assert talk(spoken, store) == ["RESOURCE_EXHAUSTED"]


def test_a_session_that_ends_in_good_order_is_acknowledged_completely() -> None:
    store = MemoryTelemetryStore()

    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        for sequence in (1, 2, 3):
            await agent.send(batch(sequence))
        await agent.finish()
        await agent.acked_up_to(3)
        assert (await agent.end())[0] is grpc.StatusCode.OK
        await until(lambda: store.agent("a").session_id == "")

    assert talk(spoken, store) == ["OK"]


def test_a_daemon_that_stops_stores_and_acknowledges_what_it_received() -> None:
    store = MemoryTelemetryStore()

    async def run() -> None:
        async with telemetry_daemon(store) as here, connected(here.port) as stub:
            agent = TalkingAgent(stub)
            await agent.hello()
            store.gate.clear()
            await agent.send(batch(1))
            await until(lambda: store.commit_count == 1)
            closing = asyncio.create_task(here.service.close())
            store.gate.set()
            await agent.acked_up_to(1)
            assert (await agent.end())[:2] == (grpc.StatusCode.UNAVAILABLE, "STOPPING")
            await closing

    asyncio.run(run())

    assert stored_sequences(store) == [1]
    assert store.agent("a").session_id == ""


def test_a_session_that_opens_while_the_daemon_stops_is_closed_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryTelemetryStore()

    async def run() -> None:
        async with telemetry_daemon(store) as here, connected(here.port) as stub:
            with store.held():
                agent = TalkingAgent(stub)
                await agent.say(v1.SessionRequest(hello=v1.AgentFacts(agent_id="a", boot_id="b")))
                await until(lambda: here.service.ingest.held_count == 1)
                closing = asyncio.create_task(here.service.close())
                await asyncio.sleep(0)
            assert (await agent.end())[1] == "STOPPING"
            await closing

    asyncio.run(run())

    assert store.agent("a").session_id == ""
    assert not [record for record in caplog.records if record.exc_info]


def test_the_newest_session_of_an_agent_wins_and_the_older_loses_what_is_not_stored() -> None:
    store = MemoryTelemetryStore()

    async def spoken(here: TelemetryDaemon, older: TalkingAgent) -> None:
        await older.hello()
        store.gate.clear()
        await older.send(batch(1))
        await until(lambda: store.commit_count == 1)
        await older.send(batch(2))
        await until(lambda: here.writer.figures().queue_length == 1)
        async with connected(here.port) as stub:
            newer = TalkingAgent(stub)
            await newer.hello()
            code, reason, _ = await older.end()
            assert (code, reason) == (grpc.StatusCode.ABORTED, "SESSION_REPLACED")
            store.gate.set()
            await until(lambda: here.writer.figures().queue_length == 0)
            await newer.send(batch(1))
            await newer.send(batch(2, dropped_sample_count=5))
            await newer.acked_up_to(2)
        assert store.agent("a").dropped_sample_count == 5

    talk(spoken, store)

    assert stored_sequences(store) == [1, 2]


def test_a_session_replaced_at_another_replica_ends_here() -> None:
    store = MemoryTelemetryStore()
    times = SessionTimes(sweep_s=0.05)

    async def spoken(_: TelemetryDaemon, older: TalkingAgent) -> None:
        await older.hello()
        async with telemetry_daemon(store, replica="there") as there, connected(there.port) as stub:
            newer = TalkingAgent(stub)
            await newer.hello()
            assert (await older.end())[1] == "SESSION_REPLACED"
            assert store.agent("a").replica == "there"
            assert store.agent("a").session_id

    talk(spoken, store, times=times)


def test_a_silent_session_ends() -> None:
    times = SessionTimes(batch_s=0.05, silent_extra_s=0.05, sweep_s=0.05)

    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        assert (await agent.end())[:2] == (grpc.StatusCode.ABORTED, "SESSION_IDLE")

    talk(spoken, times=times)


def test_an_agent_that_hangs_up_is_not_connected_any_more() -> None:
    store = MemoryTelemetryStore()

    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        assert store.agent("a").session_id
        agent.hang_up()
        await until(lambda: store.agent("a").session_id == "")

    # The end of what it says may be noticed before the call is.
    assert talk(spoken, store) in (["CANCELLED"], ["OK"])


def test_agents_that_hang_up_while_their_sessions_end_leave_nothing_behind() -> None:
    store = MemoryTelemetryStore()

    async def hasty(here: TelemetryDaemon, number: int) -> None:
        async with connected(here.port) as stub:
            agent = TalkingAgent(stub)
            await agent.hello(f"agent-{number}")
            await agent.send(batch(1))
            await agent.acked_up_to(1)
            await agent.finish()
            await asyncio.sleep(number / 20_000)  # some before the end, some in it, some after
            agent.hang_up()

    async def run() -> None:
        async with telemetry_daemon(store) as here:
            await asyncio.gather(*(hasty(here, number) for number in range(60)))
            await until(lambda: here.service.ingest.held_count == 0)
            await asyncio.wait_for(here.service.close(), 10.0)

    asyncio.run(run())

    assert not [agent for agent in store.agents(limit=100) if agent.session_id]


def test_an_agent_certificate_opens_sessions_of_its_own_name_only() -> None:
    principal = Principal(name="a", role=AccessRole.AGENT)

    async def spoken(here: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello("a")
        async with connected(here.port) as stub:
            other = TalkingAgent(stub)
            await other.say(v1.SessionRequest(hello=v1.AgentFacts(agent_id="z", boot_id="b")))
            code, _, message = await other.end()
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert "'z'" in message
        assert "'a'" in message

    talk(spoken, principal=principal)


@pytest.mark.parametrize(
    "request_",
    [
        v1.SessionRequest(),
        v1.SessionRequest(batch=batch(1)),
        v1.SessionRequest(hello=v1.AgentFacts(agent_id="a")),
        v1.SessionRequest(hello=v1.AgentFacts(agent_id="../a", boot_id="b")),
        v1.SessionRequest(hello=v1.AgentFacts(agent_id="a" * 129, boot_id="b")),
        v1.SessionRequest(hello=v1.AgentFacts(agent_id="a", boot_id="b", zone="z" * 300)),
        v1.SessionRequest(hello=v1.AgentFacts(agent_id="a", boot_id="b", zone="\0")),
        v1.SessionRequest(hello=v1.AgentFacts(agent_id="a", boot_id="b", gpu_names=["T4"] * 65)),
    ],
)
def test_a_session_that_does_not_begin_with_a_proper_hello_is_refused(
    request_: v1.SessionRequest,
) -> None:
    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.say(request_)
        code, _reason, told = await agent.end()
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "hello" in told

    assert talk(spoken) == ["INVALID_ARGUMENT"]


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (v1.SessionRequest(hello=v1.AgentFacts(agent_id="a", boot_id="b")), "hello once"),
        (v1.SessionRequest(), "hello once"),
        (v1.SessionRequest(batch=batch(0)), "batch.sequence"),
        (v1.SessionRequest(batch=batch(1, time_unix_ms=5)), "batch.send_time_unix_ms"),
    ],
)
def test_what_is_no_batch_ends_the_session_and_names_the_field(
    request_: v1.SessionRequest, named: str
) -> None:
    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        await agent.say(request_)
        code, _reason, message = await agent.end()
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert named in message

    assert talk(spoken) == ["INVALID_ARGUMENT"]


def test_bytes_that_are_no_message_are_refused_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        async with (
            telemetry_daemon(MemoryTelemetryStore()) as here,
            grpc.aio.insecure_channel(f"127.0.0.1:{here.port}") as channel,
        ):
            call = channel.stream_stream("/spotwright.v1.TelemetryService/Session")()
            await call.write(b"\xff\xff\xff")
            assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(run())

    assert not [record for record in caplog.records if record.exc_info]


def test_while_the_store_is_away_sessions_are_refused_and_batches_wait() -> None:
    store = MemoryTelemetryStore()

    async def spoken(here: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        store.fails = True
        await agent.send(batch(1))
        await until(lambda: here.writer.figures().store_failing)
        async with connected(here.port) as stub:
            refused = TalkingAgent(stub)
            await refused.say(v1.SessionRequest(hello=v1.AgentFacts(agent_id="z", boot_id="b")))
            code, reason, _ = await refused.end()
            assert (code, reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        store.fails = False
        await agent.acked_up_to(1)
        assert not here.writer.figures().store_failing

    talk(spoken, store)


def test_a_notice_is_stored_and_acknowledged_within_a_second() -> None:
    store = MemoryTelemetryStore()
    now_ms = time.time_ns() // 1_000_000
    notice = v1.Notice(kind=v1.NOTICE_KIND_INTERRUPTION, time_unix_ms=now_ms, source="aws")

    async def spoken(_: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello()
        await agent.send(batch(1))  # makes the next one come soon after another
        started_s = time.monotonic()
        await agent.send(batch(2, notices=[notice]))
        await agent.acked_up_to(2)
        assert time.monotonic() - started_s < 1.0

    talk(spoken, store)

    kept = store.agent("a").notice
    assert kept is not None
    assert (kept.kind, kept.source) == ("interruption", "aws")


def test_whoever_watches_a_job_need_not_wait_for_a_notice_of_its_host() -> None:
    async def spoken(here: TelemetryDaemon, agent: TalkingAgent) -> None:
        await agent.hello(job_id="job-1")
        await agent.send(batch(1))
        await agent.acked_up_to(1)
        assert here.changed_jobs == []
        notice = v1.Notice(
            kind=v1.NOTICE_KIND_INTERRUPTION, time_unix_ms=time.time_ns() // 1_000_000, source="aws"
        )
        await agent.send(batch(2, notices=[notice]))
        await agent.acked_up_to(2)
        assert set(here.changed_jobs) == {"job-1"}

    talk(spoken)
