"""Telemetry when things break: a daemon that dies, a connection that is half open."""

import asyncio
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence, Set
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest

from spotwright.adapters.grpc.messages.telemetry import corrected_samples
from spotwright.adapters.store.sql_store import open_store
from spotwright.domain.telemetry import BatchKey, QueuedCommand, ReceivedBatch
from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from tests.adapters.grpc.telemetry.telemetry_daemon import (
    SOON_S,
    TalkingAgent,
    batch,
    connected,
    telemetry_daemon,
    until,
)
from tests.fakes.memory_telemetry_store import MemoryTelemetryStore

_AGENTS = 20
_MAIN = "from spotwright.cli.entry import main; main()"


class Served(NamedTuple):
    """A daemon in a process of its own."""

    process: asyncio.subprocess.Process
    port: int


async def serve(store_file: Path) -> Served:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _MAIN, "serve", "--listen", "127.0.0.1:0"),
        *("--store", f"sqlite:///{store_file}", "--metrics", "off", "--history", "off", "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 30)
    return Served(process, int(json.loads(line)["listen"].rpartition(":")[2]))


async def end(served: Served, number: int) -> None:
    os.killpg(served.process.pid, number)  # its worker processes, too
    await served.process.communicate()


class ReplayingAgent:
    """Sends a batch every few milliseconds, and again what was not acknowledged."""

    def __init__(self, agent_id: str) -> None:
        self.agent_id, self.acked = agent_id, 0

    async def run(self, port: int) -> None:
        """Send until the connection is lost."""
        options = (("grpc.use_local_subchannel_pool", 1),)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            agent = TalkingAgent(TelemetryServiceStub(channel))
            try:
                self.acked = max(self.acked, (await agent.hello(self.agent_id)).last_sequence)
                while True:
                    for ahead in (1, 2):
                        await agent.send(batch(self.acked + ahead))
                    self.acked = max(self.acked, (await agent.hear()).ack.sequence)
            except (grpc.aio.AioRpcError, AssertionError, asyncio.InvalidStateError):
                return


@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.soak)])
def test_a_daemon_killed_under_load_loses_nothing_acknowledged_and_doubles_nothing(
    tmp_path: Path, kills: int
) -> None:
    agents = [ReplayingAgent(f"agent-{number:02}") for number in range(_AGENTS)]

    async def run() -> None:
        for kill in range(kills):
            before = sum(agent.acked for agent in agents)
            served = await serve(tmp_path / "daemon.db")
            sending = [asyncio.create_task(agent.run(served.port)) for agent in agents]
            try:
                async with asyncio.timeout(30):
                    while sum(agent.acked for agent in agents) < before + (5 + kill) * _AGENTS:
                        await asyncio.sleep(0.01)
            finally:
                await end(served, signal.SIGKILL)
                await asyncio.gather(*sending)

    asyncio.run(run())

    store = open_store(f"sqlite:///{tmp_path / 'daemon.db'}")
    try:
        for agent in agents:
            _check_what_is_stored(store, agent)
    finally:
        store.close()


def _check_what_is_stored(store: Any, agent: ReplayingAgent) -> None:
    window = {"start_unix_ms": 0, "end_unix_ms": 2**60}
    stored = [row for _, row in store.batches(agent.agent_id, **window, limit=100_000)]
    counts = Counter(row.key.sequence for row in stored)
    assert set(range(1, agent.acked + 1)) <= counts.keys()
    assert set(counts.values()) == {1}
    values = [
        gpu.utilization_fraction
        for row in stored
        for sample in corrected_samples(row)
        for gpu in sample.gpus
    ]
    for resolution_s in (10, 60):
        parts = store.rollups(
            agent.agent_id,
            resolution_s=resolution_s,
            start_unix_s=0,
            end_unix_s=2**40,
            limit=10_000,
        )
        assert sum(part.gpu_sample_count for part in parts) == len(values)
        sums = [part.statistics["utilization_fraction"] for part in parts]
        assert sum(statistic.value_count for statistic in sums) == len(values)
        assert sum(statistic.total for statistic in sums) == pytest.approx(sum(values))


class SwallowingProxy:
    """Passes bytes on until it is told to swallow them, as a network does that lost a route."""

    def __init__(self, port: int) -> None:
        self._target, self.swallows = port, False
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["SwallowingProxy"]:
        pumps: list[asyncio.Task[None]] = []

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there = await asyncio.open_connection("127.0.0.1", self._target)
            pumps.append(asyncio.create_task(self._pump(reader, there[1])))
            pumps.append(asyncio.create_task(self._pump(there[0], writer)))

        server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                if not self.swallows:
                    writer.write(data)
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


def test_a_half_open_connection_is_noticed_and_the_agent_can_come_back() -> None:
    # The second is what counts: with grpc.keepalive_timeout_ms alone a ping may take a minute.
    keepalive = (("grpc.keepalive_time_ms", 500), ("grpc.http2.ping_timeout_ms", 500))
    store = MemoryTelemetryStore()

    async def run() -> None:
        async with (
            telemetry_daemon(store, options=keepalive) as daemon,
            SwallowingProxy(daemon.port).running() as proxy,
            connected(proxy.port) as stub,
        ):
            agent = TalkingAgent(stub)
            await agent.hello()
            await agent.send(batch(1))
            await agent.acked_up_to(1)
            proxy.swallows = True
            await until(lambda: store.agent("a").session_id == "")
            assert daemon.service.ingest.session_count == 0
            async with connected(daemon.port) as direct:
                assert (await TalkingAgent(direct).hello()).last_sequence == 1

    asyncio.run(run())


def test_two_agents_under_one_name_end_each_other_and_store_every_batch_once() -> None:
    store = MemoryTelemetryStore()

    async def run() -> None:
        async with telemetry_daemon(store) as daemon:
            for turn in range(5):
                async with connected(daemon.port) as first, connected(daemon.port) as second:
                    older, newer = TalkingAgent(first), TalkingAgent(second)
                    welcome = await older.hello(boot_id=f"b{turn}")
                    await older.send(batch(welcome.last_sequence + 1))
                    await newer.hello(boot_id=f"b{turn}")
                    await newer.send(batch(1))
                    assert (await older.end())[1] == "SESSION_REPLACED"
                    await newer.acked_up_to(1)

    asyncio.run(run())

    assert sorted(row.key.boot_id for row in store.rows) == [f"b{turn}" for turn in range(5)]


def test_a_clock_of_the_daemon_that_jumps_ends_no_session() -> None:
    store, hours = MemoryTelemetryStore(), [0]
    start_s = 1_790_000_000.0

    def clock() -> float:
        return start_s + 3600.0 * hours[0]

    def sent(sequence: int) -> v1.Batch:
        return batch(sequence, time_unix_ms=int(start_s * 1000))

    async def run() -> None:
        async with telemetry_daemon(store, clock=clock) as daemon, connected(daemon.port) as stub:
            agent = TalkingAgent(stub)
            await agent.hello()
            for sequence, jump in enumerate((0, 5, -5, 0), start=1):
                hours[0] = jump
                await agent.send(sent(sequence))
                await agent.acked_up_to(sequence)

    asyncio.run(asyncio.wait_for(run(), SOON_S * 2))

    assert [row.clock_skew_s for row in store.rows] == [0.0, -18_000.0, 18_000.0, 0.0]


class HesitantStore(MemoryTelemetryStore):
    """Takes a while to return the commands that it has forgotten already."""

    def __init__(self) -> None:
        super().__init__()
        self.taken, self.returns = threading.Event(), threading.Event()

    def take_commands(self, agent_ids: Collection[str]) -> Sequence[QueuedCommand]:
        taken = super().take_commands(agent_ids)
        if taken:
            self.taken.set()
            self.returns.wait(SOON_S)
        return taken


def test_a_command_whose_agent_left_meanwhile_waits_until_it_is_back() -> None:
    store = HesitantStore()

    async def run() -> None:
        async with telemetry_daemon(store) as daemon, connected(daemon.port) as stub:
            agent = TalkingAgent(stub)
            await agent.hello()
            command = v1.Command(drain=v1.Drain(reconnect_after_s=3))
            sent = await stub.SendCommand(v1.SendCommandRequest(agent_id="a", command=command))
            await until(store.taken.is_set)
            agent.hang_up()
            await until(lambda: daemon.service.ingest.session_count == 0)
            store.returns.set()
            back = TalkingAgent(stub)
            await back.hello()
            assert (await back.hear()).command.command_id == sent.command_id

    asyncio.run(run())


class ChokingStore(MemoryTelemetryStore):
    """Cannot keep batch 2."""

    def commit_batches(self, batches: Sequence[ReceivedBatch]) -> Set[BatchKey]:
        if any(batch.key.sequence == 2 for batch in batches):
            raise ZeroDivisionError("a fault of the store")
        return super().commit_batches(batches)


def test_a_batch_that_cannot_be_stored_ends_its_session_and_is_never_acknowledged() -> None:
    store = ChokingStore()

    async def run() -> None:
        async with telemetry_daemon(store) as daemon, connected(daemon.port) as stub:
            agent, other = TalkingAgent(stub), TalkingAgent(stub)
            await agent.hello()
            await other.hello("z")
            store.gate.clear()
            await agent.send(batch(1))
            await until(lambda: store.commit_count == 1)
            for sequence in (2, 3, 4):
                await agent.send(batch(sequence))
            await other.send(batch(1))
            await until(lambda: daemon.writer.figures().queue_length == 4)
            store.gate.set()
            with suppress(grpc.aio.AioRpcError):
                while True:
                    assert (await agent.hear()).ack.sequence == 1
            code, reason, message = await agent.end()
            assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "BATCH_REFUSED")
            assert "batch 2 of agent a" in message
            await other.acked_up_to(1)
            again = TalkingAgent(stub)
            assert (await again.hello()).last_sequence == 1
            await again.send(batch(3))
            await again.acked_up_to(3)

    asyncio.run(run())

    assert [row.key.sequence for row in store.rows if row.key.agent_id == "a"] == [1, 3]
