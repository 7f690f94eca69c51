"""What batches tell beside figures: notices and probes, kept with the agent and logged."""

from collections.abc import Iterable

from sqlalchemy import Connection

from spotwright.adapters.store.jobs import append_events
from spotwright.adapters.store.notices import notice_event, replace_notice
from spotwright.adapters.store.probes import probe_event, replace_probe
from spotwright.domain.job_run import NewEvent
from spotwright.domain.telemetry import ReceivedBatch


def store_news(connection: Connection, batches: Iterable[ReceivedBatch]) -> None:
    """Keep what holds after these batches, and log each piece with the job it concerns."""
    # By job, then agent: two replicas that lock the same rows lock them in the same order.
    for batch in sorted(batches, key=lambda batch: (batch.job_id, batch.key)):
        if batch.notices:
            replace_notice(connection, batch)
        if batch.probes:
            replace_probe(connection, batch)
        events = _events(batch)
        if batch.job_id and events:
            append_events(connection, batch.job_id, events)


def _events(batch: ReceivedBatch) -> list[NewEvent]:
    agent_id = batch.key.agent_id
    return [
        *(notice_event(agent_id, notice) for notice in batch.notices),
        *(probe_event(agent_id, probe) for probe in batch.probes),
    ]
