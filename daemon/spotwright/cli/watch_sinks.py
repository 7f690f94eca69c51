"""What is being watched as lines: for people where there is no terminal, and as JSON."""

import asyncio
import json
from typing import TYPE_CHECKING, Any

from spotwright.cli.agent_view import agent_json
from spotwright.cli.job_view import event_json, event_line, job_json, job_line
from spotwright.cli.terminal import note
from spotwright.domain.job_run import Event, JobRun

if TYPE_CHECKING:
    from spotwright.client.agent_calls import AgentStatus


class LineSink:
    """One line for each change; of agents, for each that comes, goes or gets a notice."""

    def __init__(self, *, only_events: bool = False) -> None:
        self._only_events = only_events
        self._jobs: dict[str, str] = {}
        self._agents: dict[str, str] = {}

    def take_job(self, job: JobRun) -> None:
        """Print where the job stands."""
        if not self._only_events:
            self._print_news(self._jobs, job.job_id, job_line(job))

    def take_event(self, event: Event) -> None:
        """Print an event."""
        print(event_line(event), flush=True)

    def take_jobs(self, jobs: list[JobRun]) -> None:
        """Print where each job stands that changed."""
        for job in jobs:
            self.take_job(job)

    def take_agents(self, agents: "list[AgentStatus]") -> None:
        """Print agents that came, went or got a notice."""
        for agent in agents:
            state = "connected" if agent.connected else "away"
            notice = f", {agent.notice} notice" if agent.notice else ""
            work = f", works for {agent.job_id}" if agent.job_id else ""
            kind = f" ({agent.instance_type})" if agent.instance_type else ""
            line = f"agent {agent.agent_id}{kind} {state}{work}{notice}"
            self._print_news(self._agents, agent.agent_id, line)

    def tell(self, text: str) -> None:
        """Say on stderr how the connection is."""
        note(text)

    async def draw(self) -> None:
        """Do nothing: lines are printed as they come."""
        await asyncio.Event().wait()

    def _print_news(self, known: dict[str, str], name: str, line: str) -> None:
        if known.get(name) != line:
            known[name] = line
            print(line, flush=True)


class JsonSink:
    """One JSON document in a line for each change."""

    def __init__(self, *, only_events: bool = False) -> None:
        self._only_events = only_events

    def take_job(self, job: JobRun) -> None:
        """Print the job."""
        if not self._only_events:
            _print_line({"job": job_json(job)})

    def take_event(self, event: Event) -> None:
        """Print an event; by itself where there is nothing else."""
        found = event_json(event)
        _print_line(found if self._only_events else {"event": found})

    def take_jobs(self, jobs: list[JobRun]) -> None:
        """Print all jobs that have not ended."""
        _print_line({"jobs": [job_json(job) for job in jobs]})

    def take_agents(self, agents: "list[AgentStatus]") -> None:
        """Print agents that changed."""
        _print_line({"agents": [agent_json(agent) for agent in agents]})

    def tell(self, text: str) -> None:
        """Say on stderr how the connection is."""
        note(text)

    async def draw(self) -> None:
        """Do nothing: lines are printed as they come."""
        await asyncio.Event().wait()


def _print_line(value: dict[str, Any]) -> None:
    print(json.dumps(value, allow_nan=False), flush=True)
