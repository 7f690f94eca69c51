"""A daemon with jobs in memory and agents that are made up, in a thread of the test."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Self

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from spotwright.adapters.grpc.interceptor import CallInterceptor
from spotwright.adapters.grpc.jobs.job_service import JobService
from spotwright.adapters.grpc.jobs.job_watch import JobWatches
from spotwright.adapters.grpc.messages.planned_run import read_planned_run
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.v1 import job_pb2_grpc, telemetry_pb2, telemetry_pb2_grpc
from tests.adapters.grpc.jobs.job_daemon import OpenGuard
from tests.adapters.grpc.planning.example_plan import kept_plan
from tests.fakes.memory_job_store import MemoryJobStore

SERVICES = ("JobService", "TelemetryService")


def busy_agent(agent_id: str = "gpu-1", *, job_id: str = "") -> telemetry_pb2.Agent:
    """Return an agent that told everything."""
    gpus = [
        telemetry_pb2.GpuSample(
            gpu_index=i,
            utilization_fraction=0.5 + 0.25 * i,
            memory_used_bytes=8_000_000_000,
            pcie_rx_mbps=4000.0,
            pcie_tx_mbps=2000.0,
        )
        for i in range(2)
    ]
    agent = telemetry_pb2.Agent(
        facts=telemetry_pb2.AgentFacts(
            agent_id=agent_id,
            hostname=f"host-{agent_id}",
            instance_type="g5.xlarge",
            job_id=job_id,
            gpu_names=["A10G", "A10G"],
        ),
        connected=True,
        clock_skew_s=-0.25,
        latest_sample=telemetry_pb2.HostSample(
            network_rx_mbps=1500.0, network_tx_mbps=500.0, gpus=gpus
        ),
        latest_step=telemetry_pb2.StepSample(step_s=0.5),
        notice=telemetry_pb2.Notice(kind=telemetry_pb2.NOTICE_KIND_HINT),
    )
    agent.last_seen_time.FromDatetime(datetime.now(UTC))
    return agent


def quiet_agent(agent_id: str = "gpu-2") -> telemetry_pb2.Agent:
    """Return an agent that told its name and nothing else."""
    return telemetry_pb2.Agent(facts=telemetry_pb2.AgentFacts(agent_id=agent_id))


class MadeUpAgents(telemetry_pb2_grpc.TelemetryServiceServicer):
    """Answers about agents with what it was given."""

    def __init__(self, agents: list[telemetry_pb2.Agent]) -> None:
        self.agents = agents

    async def ListAgents(  # noqa: N802
        self, request: telemetry_pb2.ListAgentsRequest, _context: grpc.aio.ServicerContext
    ) -> telemetry_pb2.ListAgentsResponse:
        """Return one agent a page, to see that all pages are asked for."""
        wanted = [a for a in self.agents if request.job_id in ("", a.facts.job_id)]
        place = int(request.page_token or 0)
        last = place + 1 >= len(wanted)
        return telemetry_pb2.ListAgentsResponse(
            agents=wanted[place : place + 1], next_page_token="" if last else str(place + 1)
        )

    async def WatchAgents(  # noqa: N802
        self, _request: telemetry_pb2.WatchAgentsRequest, _context: grpc.aio.ServicerContext
    ) -> AsyncIterator[telemetry_pb2.WatchAgentsResponse]:
        """Return all agents again and again."""
        while True:
            yield telemetry_pb2.WatchAgentsResponse(agents=self.agents)
            await asyncio.sleep(0.1)


class SmallDaemon:
    """A server that can be stopped and started again at the same port."""

    def __init__(self, *agents: telemetry_pb2.Agent) -> None:
        self.store = MemoryJobStore()
        self.store.add_plan(kept_plan())
        self.agents = list(agents)
        self.port = 0
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        ready: Future[int] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)))
        self._thread.start()
        self.port = ready.result(30)

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self, ready: "Future[int]") -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        watches = JobWatches(self.store, poll_s=0.05)
        planned = PlannedRuns(self.store, read_planned_run)
        server = grpc.aio.server(
            interceptors=(CallInterceptor(OpenGuard(), lambda *_: None),),
            options=(("grpc.so_reuseport", 0),),
        )
        service = JobService(self.store, planned, watches)
        job_pb2_grpc.add_JobServiceServicer_to_server(service, server)
        telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server(MadeUpAgents(self.agents), server)
        answers = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(answers, server)
        for name in ("", *(f"spotwright.v1.{name}" for name in SERVICES)):
            await answers.set(name, health_pb2.HealthCheckResponse.SERVING)
        port = server.add_insecure_port(f"127.0.0.1:{self.port}")
        await server.start()
        ready.set_result(port)
        await self._stop.wait()
        watches.close()
        await server.stop(0.1)
