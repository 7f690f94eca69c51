"""Measurements of the network: the latest of each agent, and how they are logged."""

import json
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import Connection, update

from spotwright.adapters.store.tables import agents
from spotwright.domain.job_run import NewEvent
from spotwright.domain.telemetry import NetworkProbe, ReceivedBatch


def replace_probe(connection: Connection, batch: ReceivedBatch) -> None:
    """Keep the last result and the last failure of a batch; neither takes the other's place."""
    last = {
        "latest_probe" if probe.has_result else "failed_probe": json.dumps(
            asdict(probe), default=datetime.isoformat, sort_keys=True
        )
        for probe in batch.probes
    }
    mine = agents.c.agent_id == batch.key.agent_id
    connection.execute(update(agents).where(mine).values(**last))


def kept_probe(document: str | None) -> NetworkProbe | None:
    """Read a result back."""
    if document is None:
        return None
    figures = json.loads(document)
    return NetworkProbe(**figures | {"time": datetime.fromisoformat(figures["time"])})


def probe_event(agent_id: str, probe: NetworkProbe) -> NewEvent:
    """Return a measurement as it stands in the log of a job."""
    facts = {"agent_id": agent_id, "peer": probe.peer, "command_id": probe.command_id}
    if not probe.has_result:
        return NewEvent(
            time=probe.time,
            kind="network-probe-failed",
            text=f"the network from {agent_id} to {probe.peer} was not measured: {probe.problem}",
            facts=facts | {"problem": probe.problem},
        )
    figures = ("sent_mbps", "received_mbps", "round_trip_s")
    measured = {name: getattr(probe, name) for name in figures}
    facts |= {name: f"{value:g}" for name, value in measured.items() if value is not None}
    if probe.limited_by:
        facts["limited_by"] = probe.limited_by
    return NewEvent(
        time=probe.time,
        kind="network-probed",
        text=f"the network from {agent_id} to {probe.peer}: {_figures_text(probe)}",
        facts=facts,
    )


def _figures_text(probe: NetworkProbe) -> str:
    told = []
    if probe.sent_mbps is not None:
        told.append(f"{probe.sent_mbps / 1000:.3g} Gbit/s out")
    if probe.received_mbps is not None:
        told.append(f"{probe.received_mbps / 1000:.3g} Gbit/s back")
    if probe.round_trip_s is not None:
        told.append(f"{probe.round_trip_s * 1000:.3g} ms there and back")
    if probe.limited_by:
        told.append(f"held down by {probe.limited_by}")
    return ", ".join(told) or "nothing measured"
