"""A job that a real daemon steers, on hosts whose cloud is a stand-in."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from spotwright.client import Client
from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job_run import Event, Progress, Steer
from spotwright.domain.questions import JobDocument, PlannedFleet
from tests.agent.agent_process import AgentProcess, running_agent
from tests.fakes.metadata_server import MetadataServer, metadata_server

T = TypeVar("T")
PATIENCE_S = 150.0  # an apply takes a minute where others use the machine


@dataclass
class RunningHost:
    """One rented host."""

    name: str
    agent: AgentProcess
    cloud: MetadataServer


def planned_job(client: Client, job: Path) -> PlannedFleet:
    """Plan a job."""
    planned = client.create_plan(JobDocument(text=job.read_text(encoding="utf-8")))
    assert isinstance(planned, PlannedFleet)
    return planned


def started_job(client: Client, planned: PlannedFleet, steer: Steer) -> str:
    """Start a job, a hundredth of which is done."""
    job_id = client.create_job(planned.plan_id, steer=steer).job_id
    steps = planned.plan.prediction.steps_to_goal
    client.report_progress(job_id, Progress(steps=0.01 * steps))
    return job_id


def rented_hosts(
    stack: ExitStack, folder: Path, planned: PlannedFleet, flags: list[str]
) -> list[RunningHost]:
    """Run an agent for each worker of a plan."""
    groups = planned.plan.prediction.fleet.workers
    nodes = [group for group in groups for _ in range(group.node_count)]
    return [_host(stack, folder, n, group, flags) for n, group in enumerate(nodes)]


def one_host(
    stack: ExitStack, folder: Path, planned: PlannedFleet, flags: list[str]
) -> RunningHost:
    """Run an agent for the first worker of a plan."""
    return _host(stack, folder, 0, planned.plan.prediction.fleet.workers[0], flags)


def _host(
    stack: ExitStack, folder: Path, number: int, group: NodeGroup, flags: list[str]
) -> RunningHost:
    assert group.offer is not None
    name = f"{folder.name}-{number}"
    cloud = stack.enter_context(metadata_server("aws"))
    cloud.facts |= {
        "instance-id": f"i-{number:017}",
        "instance-type": group.instance_type.name,
        "placement/availability-zone-id": group.offer.zone,
        "instance-life-cycle": str(group.offer.market),
    }
    where = ["--agent-id", name, "--cloud", "aws", "--metadata-url", cloud.url]
    agent = stack.enter_context(running_agent(folder / name, *where, *flags))
    return RunningHost(name, agent, cloud)


def until(what: Callable[[], T | None], *, patience_s: float = PATIENCE_S) -> T:
    """Wait for something."""
    end_s = time.monotonic() + patience_s
    while time.monotonic() < end_s:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def event_of(client: Client, job_id: str, kind: str, *, after: int = 0) -> Event | None:
    """Return the first event of a kind, if there is one."""
    events = client.list_job_events(job_id, after_sequence=after, page_size=1000)
    return next((event for event in events if event.kind == kind), None)
