"""One agent of many: it samples, sends, keeps what is not acknowledged, and comes back."""

import asyncio
import random
import time
from collections import deque
from typing import Any, NamedTuple

import grpc

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub

_MAX_UNACKED = 4
_PATIENCE_S = 30.0  # for the last acknowledgements
_OPEN_TIMEOUT_S = 20.0


class LoadShape(NamedTuple):
    """What each agent sends."""

    gpus: int
    hz: float
    batch_s: float

    @property
    def samples_per_batch(self) -> int:
        """Host samples in a batch."""
        return max(1, round(self.hz * self.batch_s))

    @property
    def rows_per_batch(self) -> int:
        """GPU samples in a batch."""
        return self.samples_per_batch * self.gpus


class SimulatedAgent:
    """An agent and what became of its batches."""

    def __init__(
        self, agent_id: str, channel: grpc.aio.Channel, shape: LoadShape, *, draw: random.Random
    ) -> None:
        self.agent_id, self._shape, self._draw = agent_id, shape, draw
        self.made = self.acked = self.ack_count = self.session_count = self.late_count = 0
        self.welcome_unix_s = 0.0
        self.ack_latencies_s: list[float] = []
        self.problems: list[str] = []
        self._stub = TelemetryServiceStub(channel)
        self._boot_id = f"boot-{draw.getrandbits(64):016x}"
        self._spool: deque[int] = deque()  # sequences
        self._sent_s: dict[int, float] = {}  # when each was sent last
        self._sent = 0
        self._more = asyncio.Event()
        self._request = v1.SessionRequest(batch=sample_batch(shape))

    async def run(self, *, delay_s: float, end_s: float) -> None:
        """Connect after a delay, send until the end, then wait for the last acknowledgement."""
        await asyncio.sleep(delay_s)
        making = asyncio.create_task(self._make(end_s))
        while not (making.done() and not self._spool):
            if time.monotonic() > end_s + _PATIENCE_S:
                self.problems.append("gave up")
                break
            try:
                await self._session(making)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError) as problem:
                code = problem.code().name if isinstance(problem, grpc.aio.AioRpcError) else "LOST"
                self.problems.append(code)
                await asyncio.sleep(self._draw.uniform(0.2, 1.0))
        await making

    async def _make(self, end_s: float) -> None:
        """Make a batch for every interval; what cannot be sent yet is spooled."""
        next_s = time.monotonic() + self._draw.uniform(0, self._shape.batch_s)
        while next_s < end_s:
            await asyncio.sleep(next_s - time.monotonic())
            next_s += self._shape.batch_s
            self.made += 1
            if len(self._spool) >= _MAX_UNACKED:
                self.late_count += 1
            self._spool.append(self.made)
            self._more.set()
        self._more.set()

    async def _session(self, making: "asyncio.Task[None]") -> None:
        call = self._stub.Session()
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                await self._open(call)
            listening = asyncio.create_task(self._listen(call))
            try:
                await self._send(call, making, listening)
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
        finally:
            call.cancel()

    async def _open(self, call: Any) -> None:
        facts = v1.AgentFacts(
            agent_id=self.agent_id, boot_id=self._boot_id, gpu_names=["H100"] * self._shape.gpus
        )
        await call.write(v1.SessionRequest(hello=facts))
        response = await call.read()
        if response is grpc.aio.EOF:
            await _raise_end(call)
        self.session_count += 1
        self.welcome_unix_s = time.time()
        self._note_acked(response.welcome.last_sequence)
        self._sent = response.welcome.last_sequence

    async def _send(
        self, call: Any, making: "asyncio.Task[None]", listening: "asyncio.Task[None]"
    ) -> None:
        while not (making.done() and not self._spool):
            for sequence in self._sendable():
                self._fill(sequence)
                await call.write(self._request)
                self._sent = sequence
            self._more.clear()
            if listening.done():
                await listening
                await _raise_end(call)
            if not self._sendable() and not (making.done() and not self._spool):
                await self._more.wait()
        await call.done_writing()

    def _sendable(self) -> list[int]:
        allowed = list(self._spool)[:_MAX_UNACKED]
        return [sequence for sequence in allowed if sequence > self._sent]

    async def _listen(self, call: Any) -> None:
        try:
            while (response := await call.read()) is not grpc.aio.EOF:
                if response.HasField("ack"):
                    self.ack_count += 1
                    self._note_acked(response.ack.sequence)
                    self._more.set()
        finally:
            self._more.set()

    def _note_acked(self, sequence: int) -> None:
        now_s = time.monotonic()
        while self._spool and self._spool[0] <= sequence:
            sent_s = self._sent_s.pop(self._spool.popleft())
            self.ack_latencies_s.append(now_s - sent_s)
        self.acked = max(self.acked, sequence)

    def _fill(self, sequence: int) -> None:
        self._sent_s[sequence] = time.monotonic()
        now_ms = time.time_ns() // 1_000_000
        batch = self._request.batch
        batch.sequence, batch.send_time_unix_ms = sequence, now_ms
        period_ms = 1000 / self._shape.hz
        for number, sample in enumerate(reversed(batch.samples)):
            sample.time_unix_ms = now_ms - int(number * period_ms)


def sample_batch(shape: LoadShape) -> v1.Batch:
    batch = v1.Batch()
    for _ in range(shape.samples_per_batch):
        sample = batch.samples.add(
            interval_s=1 / shape.hz,
            cpu_fraction=0.35,
            cpu_steal_fraction=0.0,
            memory_used_bytes=180 * 2**30,
            network_rx_mbps=8_000.5,
            network_tx_mbps=7_900.25,
            disk_read_mbps=120.0,
        )
        for index in range(shape.gpus):
            sample.gpus.add(
                gpu_index=index,
                utilization_fraction=(index + 1) / 8,
                memory_used_bytes=60 * 2**30 + index,
                pcie_rx_mbps=9_000.0 + index,
                pcie_tx_mbps=4_000.0 + index,
                pcie_source=v1.PCIE_SOURCE_COUNTER,
                nvlink_rx_mbps=100_000.0,
                nvlink_tx_mbps=100_000.0,
                sm_clock_mhz=1_980.0,
                throttle_reasons=0,
                uncorrected_error_count=0,
                power_w=640.0,
                temperature_c=61.0,
            )
    return batch


async def _raise_end(call: Any) -> None:
    """Raise how a call ended."""
    code = await call.code()
    raise grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=await call.details()
    )
