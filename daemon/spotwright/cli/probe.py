"""`spotwright probe`: have an agent measure the network to another host."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from spotwright.cli.daemon_access import daemon_access
from spotwright.cli.options import AsJson, Daemon, TlsDir
from spotwright.cli.terminal import note, print_json, print_table
from spotwright.domain.errors import BadInputError, NotFoundError, OutsideWorldError
from spotwright.domain.telemetry import NetworkProbe
from spotwright.domain.units import format_duration

if TYPE_CHECKING:
    from spotwright.client import Client
    from spotwright.client.agent_calls import AgentStatus

_PATIENCE_S, _ASK_EVERY_S = 30.0, 0.5
_PAGE = 1000


def probe(
    agent_id: Annotated[str, typer.Argument(metavar="AGENT_ID", help="Who measures.")],
    peer: Annotated[str, typer.Argument(help="Address of the other agent, HOST[:PORT].")],
    *,
    seconds: Annotated[float, typer.Option(min=0.5, max=10.0, help="For how long.")] = 3.0,
    max_mbps: Annotated[
        float, typer.Option(min=1.0, max=400_000.0, help="No faster than this, 10^6 bit/s.")
    ] = 100_000.0,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure the network between two hosts, and wait for the result.

    It fills the network for a few seconds, which training on these hosts feels.
    """
    with daemon_access(daemon, tls_dir).open() as client:
        agent = _agent(client, agent_id)
        if not agent.connected:
            raise BadInputError(f"agent {agent_id} is not connected, and cannot measure now")
        command_id = client.send_probe(agent_id, peer, duration_s=seconds, max_mbps=max_mbps)
        note(f"{agent_id} measures the network to {peer} ...")
        found = _result(client, agent, command_id, patience_s=_PATIENCE_S + seconds)
    if as_json:
        print_json(asdict(found) | {"agent_id": agent_id, "time": found.time.isoformat()})
        return
    print_table(("figure", "value>"), _rows(found))


def _agent(client: "Client", agent_id: str) -> "AgentStatus":
    token = ""
    while True:
        page = client.list_agents(page_size=_PAGE, page_token=token)
        for agent in page.agents:
            if agent.agent_id == agent_id:
                return agent
        token = page.next_page_token
        if not token:
            raise NotFoundError("agent", agent_id)


def _result(
    client: "Client", agent: "AgentStatus", command_id: str, *, patience_s: float
) -> NetworkProbe:
    """Wait for the result of a command; a job's log also tells when there is none to come."""
    end_s, last = time.monotonic() + patience_s, 0
    while time.monotonic() < end_s:
        found = _agent(client, agent.agent_id).latest_probe
        if found is not None and found.command_id == command_id:
            return found
        if agent.job_id:
            last = _check_failed(client, agent.job_id, command_id, after_sequence=last)
        time.sleep(_ASK_EVERY_S)
    raise OutsideWorldError(
        f"agent {agent.agent_id} sent no result within {format_duration(patience_s)}; its own log "
        "says why, and `spotwright-agent probe` measures on the host itself"
    )


def _check_failed(client: "Client", job_id: str, command_id: str, *, after_sequence: int) -> int:
    """Raise OutsideWorldError where the log says that a measurement failed."""
    try:
        events = client.list_job_events(job_id, after_sequence=after_sequence, page_size=_PAGE)
    except NotFoundError:  # agents may name a job that nobody knows
        return after_sequence
    for event in events:
        if event.kind == "network-probe-failed" and event.facts.get("command_id") == command_id:
            raise OutsideWorldError(event.text)
    return events[-1].sequence if events else after_sequence


def _rows(found: NetworkProbe) -> list[tuple[str, str]]:
    trip = found.round_trip_s
    return [
        ("peer", found.peer),
        ("sent", _rate(found.sent_mbps)),
        ("received", _rate(found.received_mbps)),
        ("there and back", "-" if trip is None else f"{trip * 1000:.3g} ms"),
        ("held down by", found.limited_by or "the network"),
    ]


def _rate(mbps: float | None) -> str:
    return "-" if mbps is None else f"{mbps / 1000:.3g} Gbit/s"
