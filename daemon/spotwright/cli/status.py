"""`spotwright status`: a daemon, its agents and its jobs, right now."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from spotwright.cli.agent_view import AGENT_COLUMNS, agent_json, agent_row, fault_lines
from spotwright.cli.daemon_access import daemon_access
from spotwright.cli.job_view import JOB_COLUMNS, findings, job_json, job_row
from spotwright.cli.jobs import read_jobs
from spotwright.cli.options import AsJson, Daemon, TlsDir
from spotwright.cli.terminal import console, print_json, print_table
from spotwright.domain.errors import DaemonUnavailableError
from spotwright.domain.job_run import JobRun, JobState

if TYPE_CHECKING:
    from spotwright.client import Client
    from spotwright.client.agent_calls import AgentStatus

_SERVICES = ("CatalogService", "PlannerService", "JobService", "TelemetryService")
_OPEN_STATES = tuple(state for state in JobState if not state.has_ended)
_PAGE = 1000
_ALL = 1_000_000
_MOST_REPORTS = 50  # each reads what its agents sent of late


def status(
    *,
    job: Annotated[str | None, typer.Option(metavar="JOB_ID", help="Only this job.")] = None,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the daemon's health, its agents with their latest figures, and jobs under way."""
    access = daemon_access(daemon, tls_dir)
    with access.open() as client:
        services = _health(client)
        jobs = [client.get_job(job)] if job else _open_jobs(client)
        agents = _agents(client, job or "")
        found = _findings(client, jobs, agents)
    if as_json:
        print_json(
            {
                "daemon": access.address,
                "services": services,
                "agents": [agent_json(agent) for agent in agents],
                "jobs": [job_json(job) | {"findings": found.get(job.job_id, [])} for job in jobs],
            }
        )
        return
    _print_status(access.address, services, agents, jobs)
    for job_id, texts in found.items():
        for text in texts:
            console().print(f"{job_id}: {text}")


def _health(client: "Client") -> dict[str, str]:
    """Return how each service is; a daemon that does not answer at all is an error."""
    client.check_health()
    return {name: _service_health(client, name) for name in _SERVICES}


def _service_health(client: "Client", name: str) -> str:
    try:
        return "serving" if client.check_health(f"spotwright.v1.{name}") else "not serving"
    except DaemonUnavailableError:  # it answers, but has no such service
        return "absent"


def _open_jobs(client: "Client") -> list[JobRun]:
    jobs, _ = read_jobs(client, states=_OPEN_STATES, limit=_ALL)
    return jobs


def _agents(client: "Client", job_id: str) -> "list[AgentStatus]":
    agents: list[AgentStatus] = []
    token = ""
    while True:
        page = client.list_agents(job_id=job_id, page_size=_PAGE, page_token=token)
        agents += page.agents
        token = page.next_page_token
        if not token:
            return agents


def _findings(
    client: "Client", jobs: list[JobRun], agents: "list[AgentStatus]"
) -> dict[str, list[str]]:
    """Return what is wrong with the steps of the newest jobs that have agents."""
    stepping = {agent.job_id for agent in agents if agent.step_s is not None}
    asked = [job.job_id for job in jobs if job.job_id in stepping][:_MOST_REPORTS]
    found = {job_id: findings(client.get_job_report(job_id)) for job_id in asked}
    return {job_id: texts for job_id, texts in found.items() if texts}


def _print_status(
    address: str, services: dict[str, str], agents: "list[AgentStatus]", jobs: list[JobRun]
) -> None:
    out, now = console(), datetime.now(UTC)
    told = ", ".join(
        f"{name.removesuffix('Service').lower()} {how}" for name, how in services.items()
    )
    out.print(f"daemon {address}: {told}")
    out.print()
    if agents:
        print_table(AGENT_COLUMNS, [agent_row(agent, now) for agent in agents])
    else:
        out.print("no agents")
    for line in (line for agent in agents for line in fault_lines(agent)):
        print(line)
    out.print()
    if jobs:
        print_table(JOB_COLUMNS, [job_row(job, now) for job in jobs])
    else:
        out.print("no jobs under way")
