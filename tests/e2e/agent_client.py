"""Agents that know what they sent and what was acknowledged, whatever becomes of the daemon.

Batch n holds one host sample whose memory_used_bytes is n, so that what is stored can be told from
what ListSamples answers.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub

PATIENCE_S = 60.0  # far longer than anything here takes
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)
_PAUSE_S = 0.1  # before an agent comes back


def plain_channel(address: str) -> grpc.aio.Channel:
    """Return a channel that shares its connection with no other."""
    return grpc.aio.insecure_channel(address, options=OWN_CONNECTION)


class SendingAgent:
    """Sends batches one after another and comes back after every end."""

    def __init__(
        self, agent_id: str, address: str, *, period_s: float = 0.05, clock_off_s: float = 0.0
    ) -> None:
        self.agent_id, self.address = agent_id, address
        self.made = self.acked = self.session_count = 0
        self.forgotten: list[tuple[int, int]] = []  # acknowledged before, known afterwards
        self.ends: list[tuple[str, str]] = []  # status and message of each session that ended
        self._period_s, self._clock_off_s = period_s, clock_off_s
        self._times_ms: dict[int, int] = {}
        self._finishing = self._hung_up = False
        self._acked_more = asyncio.Event()

    async def run(self) -> None:
        """Send until told to finish and everything is acknowledged."""
        while not self._is_done:
            async with plain_channel(self.address) as channel:
                self._hung_up = False
                call = TelemetryServiceStub(channel).Session()
                with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await self._session(call)
                if call.done():
                    self.ends.append(((await call.code()).name, await call.details()))
                call.cancel()
            await asyncio.sleep(_PAUSE_S)

    @property
    def _is_done(self) -> bool:
        return self._finishing and self.acked >= self.made

    def finish(self) -> None:
        """Make no more batches."""
        self._finishing = True

    def hang_up(self) -> None:
        """Drop the session, as when the network goes away, and come back."""
        self._hung_up = True

    async def until_acked(self, sequence: int) -> None:
        """Wait until a batch is acknowledged."""
        async with asyncio.timeout(PATIENCE_S):
            while self.acked < sequence:
                self._acked_more.clear()
                await self._acked_more.wait()

    async def _session(self, call: Any) -> None:
        facts = v1.AgentFacts(agent_id=self.agent_id, boot_id="boot-1", agent_version="test")
        await call.write(v1.SessionRequest(hello=facts))
        first = await call.read()
        if first is grpc.aio.EOF:
            return
        known = first.welcome.last_sequence
        if known < self.acked:
            self.forgotten.append((self.acked, known))
        self.session_count += 1
        self._note_acked(known)
        hearing = asyncio.create_task(self._hear(call))
        try:
            await self._send(call, known + 1, hearing)
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _send(self, call: Any, sequence: int, hearing: "asyncio.Task[None]") -> None:
        while not (hearing.done() or self._hung_up or self._is_done):
            due = sequence <= self.made or not self._finishing
            if due and sequence - self.acked <= 4:
                if sequence > self.made:
                    await asyncio.sleep(self._period_s)
                    self.made = sequence
                await call.write(v1.SessionRequest(batch=self._batch(sequence)))
                sequence += 1
            else:
                await asyncio.sleep(0.01)
        if hearing.done():
            await hearing

    async def _hear(self, call: Any) -> None:
        while (response := await call.read()) is not grpc.aio.EOF:
            if response.HasField("ack"):
                self._note_acked(response.ack.sequence)

    def _note_acked(self, sequence: int) -> None:
        self.acked = max(self.acked, sequence)
        self._acked_more.set()

    def _batch(self, sequence: int) -> v1.Batch:
        now_ms = int((time.time() + self._clock_off_s) * 1000)
        made_ms = self._times_ms.setdefault(sequence, now_ms)
        sample = v1.HostSample(time_unix_ms=made_ms, interval_s=1, memory_used_bytes=sequence)
        return v1.Batch(sequence=sequence, send_time_unix_ms=now_ms, samples=[sample])


class Fleet:
    """Agents that send at the same time."""

    def __init__(self, agents: Sequence[SendingAgent]) -> None:
        self.agents = agents

    @property
    def acked_count(self) -> int:
        """Batches acknowledged so far."""
        return sum(agent.acked for agent in self.agents)

    async def until_each_acked(self, more: int) -> None:
        """Wait until every agent has so many more batches acknowledged."""
        await asyncio.gather(*(agent.until_acked(agent.acked + more) for agent in self.agents))

    def move(self, address: str) -> None:
        """Have the agents come back elsewhere."""
        for agent in self.agents:
            agent.address = address
            agent.hang_up()


@asynccontextmanager
async def sending_fleet(
    addresses: Sequence[str], agent_count: int, *, period_s: float = 0.05
) -> AsyncIterator[Fleet]:
    """Have agents send during the block, then wait until all they sent is acknowledged."""
    agents = [
        SendingAgent(f"gpu-{i}", addresses[i % len(addresses)], period_s=period_s)
        for i in range(agent_count)
    ]
    runs = [asyncio.create_task(agent.run()) for agent in agents]
    try:
        yield Fleet(agents)
        for agent in agents:
            agent.finish()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*runs)
    finally:
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)


async def stored_sequences(
    stub: TelemetryServiceStub, agent_id: str, *, within_s: float | None = None
) -> list[int]:
    """Return the batches of an agent that are stored, as often as they are; or those of late."""
    found: list[int] = []
    request = v1.ListSamplesRequest(agent_id=agent_id, page_size=10_000)
    if within_s is not None:
        request.start_time.FromSeconds(int(time.time() - within_s))
        request.end_time.FromSeconds(int(time.time() + within_s))
    while True:
        page = await stub.ListSamples(request)
        found += [sample.memory_used_bytes for sample in page.samples]
        request.page_token = page.next_page_token
        if not request.page_token:
            return sorted(found)


async def summed_counts(stub: TelemetryServiceStub, agent_id: str) -> Mapping[int, int]:
    """Return how many host samples the rollups of an agent count, by resolution in seconds."""
    counts = {}
    for seconds, resolution in (
        (10, v1.ROLLUP_RESOLUTION_TEN_SECONDS),
        (60, v1.ROLLUP_RESOLUTION_MINUTE),
    ):
        request = v1.ListRollupsRequest(agent_id=agent_id, resolution=resolution)
        counts[seconds] = 0
        while True:
            answer = await stub.ListRollups(request)
            counts[seconds] += sum(rollup.host_sample_count for rollup in answer.rollups)
            if not answer.next_page_token:
                break
            request.page_token = answer.next_page_token
    return counts


async def assert_all_stored_once(address: str, agents: Sequence[SendingAgent]) -> int:
    """Check that what agents sent is stored, each batch once; return how many there are."""
    async with plain_channel(address) as channel:
        stub = TelemetryServiceStub(channel)
        for agent in agents:
            assert agent.forgotten == [], f"{agent.agent_id} was acknowledged what is not there"
            stored = await stored_sequences(stub, agent.agent_id)
            assert stored == list(range(1, agent.made + 1)), agent.agent_id
            counts = await summed_counts(stub, agent.agent_id)
            assert counts == {10: agent.made, 60: agent.made}, agent.agent_id
    return sum(agent.made for agent in agents)
