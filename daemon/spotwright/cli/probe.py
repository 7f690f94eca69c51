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
    seconds: Annotated[float, typer.Option(min=0.2, max=10.0, help="For how long.")] = 3.0,
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
        if not _agent(client, agent_id).connected:
            raise BadInputError(f"agent {agent_id} is not connected, and cannot measure now")
        command_id = client.send_probe(agent_id, peer, duration_s=seconds, max_mbps=max_mbps)
        note(f"{agent_id} measures the network to {peer} ...")
        found = _result(client, agent_id, command_id, patience_s=_PATIENCE_S + seconds)
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


def _result(client: "Client", agent_id: str, command_id: str, *, patience_s: float) -> NetworkProbe:
    """Wait for the result of a command, or raise OutsideWorldError."""
    end_s = time.monotonic() + patience_s
    while time.monotonic() < end_s:
        agent = _agent(client, agent_id)
        for found in filter(None, (agent.latest_probe, agent.failed_probe)):
            if found.command_id == command_id:
                return _measured(agent_id, found)
        time.sleep(_ASK_EVERY_S)
    raise OutsideWorldError(
        f"agent {agent_id} sent no result within {format_duration(patience_s)}; its own log "
        "says why, and `spotwright-agent probe` measures on the host itself"
    )


def _measured(agent_id: str, found: NetworkProbe) -> NetworkProbe:
    if not found.has_result:
        raise OutsideWorldError(
            f"the network from {agent_id} to {found.peer} was not measured: {found.problem}"
        )
    return found


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
