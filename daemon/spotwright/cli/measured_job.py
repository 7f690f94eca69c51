"""Steps of a job that a daemon follows, as rows to calibrate from."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from spotwright.cli.config import read_config
from spotwright.cli.daemon_access import DaemonAccess
from spotwright.cli.sources import Catalogs, Jobs, OpenedJob
from spotwright.domain.errors import BadInputError
from spotwright.domain.telemetry import RESOLUTIONS_S, RollupPart

if TYPE_CHECKING:
    from spotwright.client import Client
    from spotwright.usecases.measure_job import MeasuredJob

_MOST_AGENTS = 1000  # the largest page
_MARGIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedJob:
    """A job that is followed: what it was planned from, and what was measured."""

    opened: OpenedJob
    measured: "MeasuredJob"


def read_measured_job(
    access: DaemonAccess, job_id: str, *, catalog_file: Path | None = None
) -> FollowedJob:
    """Ask a daemon for a job, its plan and its steps.

    Raises:
        BadInputError: no such job, no agents, or no steps yet.
    """
    from spotwright.usecases.measure_job import measure_job  # noqa: PLC0415 - needs numpy

    with access.open() as client:
        job = client.get_job(job_id)
        planned, document = client.get_plan(job.plan_id)
        agents = client.list_agents(job_id=job_id, page_size=_MOST_AGENTS).agents
        if not agents:
            raise BadInputError(
                f"job {job_id} has no agents; start them with its id, so that there is something "
                "to measure by"
            )
        end = (job.end_time or datetime.now(UTC)) + _MARGIN
        steps = {
            agent.agent_id: list(_rollups(client, agent.agent_id, job.create_time, end))
            for agent in agents
        }
    opened = Jobs(Catalogs(read_config(), file=catalog_file).of).open(document)
    measured = measure_job(
        planned.plan.prediction,
        opened.job,
        types={agent.agent_id: agent.instance_type for agent in agents},
        steps=steps,
        resolution_s=RESOLUTIONS_S[0],
    )
    return FollowedJob(opened=opened, measured=measured)


def _rollups(
    client: "Client", agent_id: str, start: datetime, end: datetime
) -> Iterator[RollupPart]:
    token = ""
    while True:
        page = client.list_rollups(agent_id, start=start, end=end, page_token=token)
        yield from page.rollups
        token = page.next_page_token
        if not token:
            return
