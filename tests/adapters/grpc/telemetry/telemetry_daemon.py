"""A daemon with telemetry alone on loopback, and an agent that talks to it word by word."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from spotwright.adapters.grpc.access.callers import LOOPBACK
from spotwright.adapters.grpc.interceptor import CallInterceptor
from spotwright.adapters.grpc.telemetry.ingest import SessionTimes
from spotwright.adapters.grpc.telemetry.service import TelemetryService
from spotwright.domain.access import Principal
from spotwright.usecases.record_telemetry import TelemetryWriter
from spotwright.usecases.store_ports import TelemetryStore
from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import (
    TelemetryServiceStub,
    add_TelemetryServiceServicer_to_server,
)

SOON_S = 10.0  # far longer than anything here takes


class Admits:
    """Takes everybody for the same one."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    async def admit(self, method: str, context: grpc.aio.ServicerContext) -> Principal:
        return self._principal


class TelemetryDaemon(NamedTuple):
    """What runs."""

    port: int
    service: TelemetryService
    writer: TelemetryWriter
    statuses: list[str]  # how calls ended
    changed_jobs: list[str]  # those that had news of a host


@asynccontextmanager
async def telemetry_daemon(
    store: TelemetryStore,
    *,
    principal: Principal = LOOPBACK,
    replica: str = "here",
    times: SessionTimes = SessionTimes(),  # noqa: B008
    clock: Callable[[], float] = time.time,
    options: tuple[tuple[str, Any], ...] = (),
) -> AsyncIterator[TelemetryDaemon]:
    """Serve telemetry from a store until the block ends."""
    writer = TelemetryWriter(store, commit_interval_s=0.02)
    statuses: list[str] = []
    changed_jobs: list[str] = []
    service = TelemetryService(
        store, writer, replica=replica, clock=clock, times=times, job_changed=changed_jobs.append
    )
    interceptor = CallInterceptor(
        Admits(principal), lambda _method, status, _s: statuses.append(status)
    )
    server = grpc.aio.server(interceptors=(interceptor,), options=options)
    add_TelemetryServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await service.start()
    await server.start()
    try:
        yield TelemetryDaemon(port, service, writer, statuses, changed_jobs)
    finally:
        await service.close()
        await server.stop(0)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[TelemetryServiceStub]:
    """Yield a stub over a connection of its own."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield TelemetryServiceStub(channel)


class TalkingAgent:
    """One session, spoken step by step."""

    def __init__(self, stub: TelemetryServiceStub) -> None:
        self._call = stub.Session()

    async def hello(self, agent_id: str = "a", boot_id: str = "b", **facts: Any) -> v1.Welcome:
        await self.say(
            v1.SessionRequest(hello=v1.AgentFacts(agent_id=agent_id, boot_id=boot_id, **facts))
        )
        return (await self.hear()).welcome

    async def send(self, batch: v1.Batch) -> None:
        await self.say(v1.SessionRequest(batch=batch))

    async def say(self, request: v1.SessionRequest) -> None:
        await self._call.write(request)

    async def hear(self) -> v1.SessionResponse:
        response = await asyncio.wait_for(self._call.read(), SOON_S)
        if response is grpc.aio.EOF:
            raise AssertionError(f"the session ended: {await self.end()}")
        assert isinstance(response, v1.SessionResponse)
        return response

    async def acked_up_to(self, sequence: int) -> None:
        """Wait until a batch is acknowledged."""
        while (await self.hear()).ack.sequence < sequence:
            pass

    async def finish(self) -> None:
        await self._call.done_writing()

    async def end(self) -> tuple[grpc.StatusCode, str, str]:
        """Wait for the end, and return code, reason and message."""
        code = await asyncio.wait_for(self._call.code(), SOON_S)
        return code, await reason_of(self._call), await self._call.details()

    def hang_up(self) -> None:
        self._call.cancel()


async def reason_of(call: Any) -> str:
    """Return the reason that a call's status carries."""
    status = await rpc_status.aio.from_call(call)
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return str(info.reason)
    return ""


def batch(sequence: int, *, time_unix_ms: int | None = None, **more: Any) -> v1.Batch:
    """Return a batch with one sample of two GPUs."""
    now_ms = time.time_ns() // 1_000_000 if time_unix_ms is None else time_unix_ms
    gpus = [v1.GpuSample(gpu_index=i, utilization_fraction=(i + 1) / 4) for i in range(2)]
    sample = v1.HostSample(time_unix_ms=now_ms, interval_s=1.0, cpu_fraction=0.5, gpus=gpus)
    fields: dict[str, Any] = {"send_time_unix_ms": now_ms, "samples": [sample]} | more
    return v1.Batch(sequence=sequence, **fields)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that no event tells."""
    async with asyncio.timeout(SOON_S):
        while not condition():
            await asyncio.sleep(0.01)
