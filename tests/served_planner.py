"""The services that plan, behind a real server in a thread of its own."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import grpc

from spotwright.adapters.grpc.interceptor import CallInterceptor
from spotwright.adapters.grpc.planning.catalog_service import CatalogService
from spotwright.adapters.grpc.planning.planner_service import PlannerService
from spotwright.adapters.grpc.planning.workers import QUICK, SEARCH
from spotwright.adapters.processes.pool import Lane, WorkerPool
from spotwright.adapters.store.sql_store import open_store
from spotwright.v1 import catalog_pb2_grpc, planner_pb2_grpc
from tests.adapters.grpc.jobs.job_daemon import OpenGuard

WORKER = "spotwright.cli.daemon.planning_worker:make_handler"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPlanner:
    """A server that runs."""

    address: str
    pool: WorkerPool
    loop: asyncio.AbstractEventLoop


@contextmanager
def served_planner(
    folder: Path, *, environment: Mapping[str, str] | None = None, max_waiting: int = 16
) -> Iterator[ServedPlanner]:
    """Serve with a store in a folder until the context ends."""
    started: list[ServedPlanner] = []
    ready, stopping = threading.Event(), threading.Event()

    async def serve() -> None:
        lanes = {
            QUICK: Lane(process_count=1, max_waiting=max_waiting),
            SEARCH: Lane(process_count=1, max_waiting=max_waiting),
        }
        pool = WorkerPool(WORKER, lanes=lanes, environment=environment)
        await pool.start()
        store = open_store(f"sqlite:///{folder / 'daemon.db'}")
        server = _server(pool, PlannerService(pool, store, clock=lambda: datetime.now(UTC)))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        await pool.ready()
        loop = asyncio.get_running_loop()
        started.append(ServedPlanner(address=f"127.0.0.1:{port}", pool=pool, loop=loop))
        ready.set()
        await asyncio.to_thread(stopping.wait)
        await server.stop(0)
        await pool.close()
        store.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        while not ready.wait(0.1):
            assert thread.is_alive(), "the server did not start"
        yield started[0]
    finally:
        stopping.set()
        thread.join()


def _server(pool: WorkerPool, planner: PlannerService) -> grpc.aio.Server:
    server = grpc.aio.server(interceptors=(CallInterceptor(OpenGuard(), lambda *_: None),))
    planner_pb2_grpc.add_PlannerServiceServicer_to_server(planner, server)
    catalog_pb2_grpc.add_CatalogServiceServicer_to_server(CatalogService(pool), server)
    return server
