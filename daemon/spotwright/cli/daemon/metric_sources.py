"""What the metrics endpoint reads, from the parts of a daemon."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from spotwright.adapters.grpc.messages.readings import latest_readings
from spotwright.adapters.metrics.figures import AgentFigures
from spotwright.adapters.tls.certificate_files import days_left
from spotwright.domain.job_run import JobState
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases.all_agents import all_agents
from spotwright.usecases.store_ports import Store

_MOST_JOBS = 10_000


def agent_figures(store: Store) -> Sequence[AgentFigures]:
    """Return every agent with the latest that it sent."""
    return [_figures(record) for record in all_agents(store)]


def job_counts(store: Store) -> Mapping[str, int]:
    """Return how many jobs are open, by state."""
    open_states = [state for state in JobState if not state.has_ended]
    jobs = store.jobs(states=open_states, limit=_MOST_JOBS)
    return {state: sum(job.state is state for job in jobs) for state in open_states}


def certificate_days_left(tls_dir: Path | None) -> Mapping[str, float]:
    """Return how long the server's certificate and the authority's are good for."""
    return {} if tls_dir is None else days_left(tls_dir, now=datetime.now(UTC))


def _figures(record: AgentRecord) -> AgentFigures:
    readings = latest_readings(record)
    return AgentFigures(
        facts=record.facts,
        connected=bool(record.session_id),
        last_seen=record.last_seen,
        clock_skew_s=record.clock_skew_s,
        dropped_sample_count=record.dropped_sample_count,
        notice_active=record.notice is not None,
        host=readings.host,
        gpus=readings.gpus,
        step=readings.step,
    )
