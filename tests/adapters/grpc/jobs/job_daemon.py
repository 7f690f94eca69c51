"""JobService behind a real server on loopback."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc

from spotwright.adapters.grpc.access.callers import LOOPBACK
from spotwright.adapters.grpc.interceptor import CallInterceptor
from spotwright.adapters.grpc.jobs.job_service import JobService
from spotwright.adapters.grpc.jobs.job_watch import JobWatches
from spotwright.adapters.grpc.messages.planned_run import read_planned_run
from spotwright.client.aio import AioClient
from spotwright.domain.access import Principal
from spotwright.usecases.job_ports import JobServiceStore
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.v1 import job_pb2_grpc


@dataclass(slots=True)
class OpenGuard:
    """Lets everybody in, as the caller that it is told."""

    caller: Principal = LOOPBACK

    async def admit(self, _method: str, _context: grpc.aio.ServicerContext) -> Principal:
        return self.caller


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDaemon:
    """What a test reaches of a server."""

    port: int
    guard: OpenGuard
    watches: JobWatches
    client: AioClient
    statuses: list[tuple[str, str]]  # method and status of each call that ended


@asynccontextmanager
async def job_daemon(
    store: JobServiceStore, *, port: int = 0, poll_s: float = 0.05
) -> AsyncIterator[JobDaemon]:
    guard, statuses = OpenGuard(), list[tuple[str, str]]()

    def observe(method: str, status: str, _seconds: float) -> None:
        statuses.append((method.rpartition("/")[2], status))

    watches = JobWatches(store, poll_s=poll_s)
    service = JobService(store, PlannedRuns(store, read_planned_run), watches)
    server = grpc.aio.server(
        interceptors=(CallInterceptor(guard, observe),), options=(("grpc.so_reuseport", 0),)
    )
    job_pb2_grpc.add_JobServiceServicer_to_server(service, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        async with AioClient(f"127.0.0.1:{port}") as client:
            yield JobDaemon(
                port=port, guard=guard, watches=watches, client=client, statuses=statuses
            )
    finally:
        watches.close()
        await server.stop(0.2)
