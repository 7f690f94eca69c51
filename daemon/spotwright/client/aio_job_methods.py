"""Methods of the clients for jobs, agents and health; those of `AioClient`."""

from collections.abc import AsyncIterator, Collection
from datetime import datetime
from typing import Protocol, TypeVar

from spotwright.client import agent_calls, job_calls
from spotwright.client.agent_calls import AgentPage, AgentStatus, RollupPage
from spotwright.client.calls import Call, StreamCall
from spotwright.client.job_calls import JobPage
from spotwright.domain.job_run import Event, JobRun, JobState, Progress, Steer
from spotwright.usecases.job_report import JobReport

T = TypeVar("T")


class AioRuns(Protocol):
    """Who makes calls."""

    async def run(self, call: Call[T]) -> T:
        """Make a call and wait for its answer."""

    def stream(self, call: StreamCall[T]) -> AsyncIterator[T]:
        """Make a call and return its answers as they come."""


class AioJobMethods:
    """Jobs, agents and health. A request_id makes a call that is sent again count once."""

    async def create_job(
        self: AioRuns, plan_id: str, *, request_id: str | None = None, steer: Steer = Steer.OFF
    ) -> JobRun:
        """Start to follow a job that runs a plan."""
        return await self.run(job_calls.create_job(plan_id, request_id=request_id, steer=steer))

    async def get_job(self: AioRuns, job_id: str) -> JobRun:
        """Return one job."""
        return await self.run(job_calls.get_job(job_id))

    async def list_jobs(
        self: AioRuns,
        *,
        states: Collection[JobState] = (),
        page_size: int = 0,
        page_token: str = "",
    ) -> JobPage:
        """Return jobs, newest first."""
        return await self.run(
            job_calls.list_jobs(states=states, page_size=page_size, page_token=page_token)
        )

    async def list_job_events(
        self: AioRuns, job_id: str, *, after_sequence: int = 0, page_size: int = 0
    ) -> list[Event]:
        """Return what happened to a job, oldest first."""
        return await self.run(
            job_calls.list_job_events(job_id, after_sequence=after_sequence, page_size=page_size)
        )

    def watch_job(
        self: AioRuns, job_id: str, *, after_sequence: int = 0
    ) -> AsyncIterator[JobRun | Event]:
        """Return a job, then its events and changes until it has ended."""
        return self.stream(job_calls.watch_job(job_id, after_sequence=after_sequence))

    async def report_progress(
        self: AioRuns, job_id: str, progress: Progress, *, request_id: str | None = None
    ) -> JobRun:
        """Tell how far training has come."""
        return await self.run(job_calls.report_progress(job_id, progress, request_id=request_id))

    async def stop_job(
        self: AioRuns, job_id: str, *, reason: str = "", request_id: str | None = None
    ) -> JobRun:
        """End a job before its goal."""
        return await self.run(job_calls.stop_job(job_id, reason=reason, request_id=request_id))

    async def get_job_report(self: AioRuns, job_id: str) -> JobReport:
        """Return what was planned against what was measured."""
        return await self.run(job_calls.get_job_report(job_id))

    async def list_agents(
        self: AioRuns, *, job_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> AgentPage:
        """Return agents with their latest figures, by name."""
        return await self.run(
            agent_calls.list_agents(job_id=job_id, page_size=page_size, page_token=page_token)
        )

    def watch_agents(
        self: AioRuns, *, job_id: str = "", interval_s: float | None = None
    ) -> AsyncIterator[list[AgentStatus]]:
        """Return all agents, then again and again those that changed."""
        return self.stream(agent_calls.watch_agents(job_id=job_id, interval_s=interval_s))

    async def list_rollups(
        self: AioRuns, agent_id: str, *, start: datetime, end: datetime, page_token: str = ""
    ) -> RollupPage:
        """Return what an agent sent, summed up by 10 s, oldest first."""
        call = agent_calls.list_rollups(agent_id, start=start, end=end, page_token=page_token)
        return await self.run(call)

    async def send_probe(
        self: AioRuns,
        agent_id: str,
        peer: str,
        *,
        duration_s: float = 3.0,
        max_mbps: float = 100_000.0,
    ) -> str:
        """Have an agent measure the network to another host; return the command's name."""
        call = agent_calls.send_probe(agent_id, peer, duration_s=duration_s, max_mbps=max_mbps)
        return await self.run(call)

    async def check_health(self: AioRuns, service: str = "") -> bool:
        """Tell whether a service answers, by its full name; empty: the daemon as a whole."""
        return await self.run(agent_calls.check_health(service))
