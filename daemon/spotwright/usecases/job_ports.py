"""What following jobs needs of the store, each part no more than it uses."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from spotwright.domain.telemetry import AgentRecord, RollupPart
from spotwright.usecases.store_ports import (
    JobStore,
    LeaseStore,
    LedgerStore,
    PlanStore,
    StepStore,
)


class AgentReader(Protocol):
    """Agents and their figures, as TelemetryStore has them."""

    def agents(
        self,
        *,
        job_id: str = "",
        after_id: str = "",
        seen_since: datetime | None = None,
        limit: int,
    ) -> Sequence[AgentRecord]:
        """Return agents by name, those after `after_id`; no job_id: of all jobs and of none.

        With `seen_since` only those that have sent something since.
        """

    def agent(self, agent_id: str) -> AgentRecord:
        """Return an agent, or raise NotFoundError."""

    def rollups(
        self, agent_id: str, *, resolution_s: int, start_unix_s: int, end_unix_s: int, limit: int
    ) -> Sequence[RollupPart]:
        """Return whole intervals that start within [start, end), oldest first."""


class ReportStore(JobStore, LedgerStore, AgentReader, Protocol):
    """What a report is made from."""


class ControlStore(JobStore, LedgerStore, LeaseStore, AgentReader, StepStore, Protocol):
    """What a controller works with."""


class JobServiceStore(PlanStore, JobStore, LedgerStore, AgentReader, Protocol):
    """What the service of jobs works with."""
