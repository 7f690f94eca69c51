"""Look at the steps of jobs from time to time, at a cost that has a limit."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from spotwright.domain.live_term import LiveTerm
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.telemetry import RESOLUTIONS_S, AgentRecord, RollupPart
from spotwright.usecases.find_shrunk import Sizes, find_shrunk
from spotwright.usecases.follow_job import Memory
from spotwright.usecases.host_steps import HostSteps, host_steps
from spotwright.usecases.job_ports import AgentReader
from spotwright.usecases.live_terms import live_terms

WINDOW_S = 300
MOST_AGENTS = 64  # of a job: enough to tell what its pools do
_RESOLUTION_S = RESOLUTIONS_S[0]
_LOOK_EVERY = timedelta(seconds=30)
_AGENTS_A_ROUND = 256  # their sums are read one after another, in about a millisecond each


_Recent = tuple[AgentRecord, Sequence[RollupPart]]


class StepLook(NamedTuple):
    """What came of a look."""

    terms: tuple[LiveTerm, ...] = ()
    sizes: Sizes = Sizes()


class TermWatch:
    """Remembers when each job was looked at. One thread uses it."""

    def __init__(self, store: AgentReader) -> None:
        self._store = store
        self._looked: dict[str, datetime] = {}
        self._left = _AGENTS_A_ROUND

    def start_round(self, job_ids: Collection[str]) -> None:
        """Begin another round over these jobs; others are forgotten."""
        self._left = _AGENTS_A_ROUND
        self._looked = {job_id: t for job_id, t in self._looked.items() if job_id in job_ids}

    def look(
        self,
        job_id: str,
        planned: PlannedRun,
        agents: Sequence[AgentRecord],
        *,
        now: datetime,
        memory: Memory,
    ) -> StepLook:
        """Look at the steps of a job; nothing is told where it is too early to look again."""
        due = self._looked.get(job_id, now - _LOOK_EVERY) + _LOOK_EVERY
        if not planned.pools or now < due or self._left <= 0:
            return StepLook()
        since = now - timedelta(seconds=WINDOW_S)
        recent = [agent for agent in agents if agent.last_seen and agent.last_seen >= since]
        if not recent:
            return StepLook()
        self._looked[job_id] = now
        self._left -= min(len(recent), MOST_AGENTS)
        hosts = _recent(recent[:MOST_AGENTS], self._store, end=now)
        return StepLook(
            live_terms(planned, _steps(hosts, end=now), known=memory.bottlenecks),
            find_shrunk([(agent.facts.agent_id, parts) for agent, parts in hosts], memory.shrunk),
        )


def recent_steps(
    agents: Sequence[AgentRecord], store: AgentReader, *, end: datetime
) -> list[HostSteps]:
    """Return what hosts of a job tell about the minutes up to `end`."""
    return _steps(_recent(agents, store, end=end), end=end)


def _recent(agents: Sequence[AgentRecord], store: AgentReader, *, end: datetime) -> list[_Recent]:
    end_unix_s = int(end.timestamp()) + 1
    return [
        (
            agent,
            store.rollups(
                agent.facts.agent_id,
                resolution_s=_RESOLUTION_S,
                start_unix_s=end_unix_s - WINDOW_S,
                end_unix_s=end_unix_s,
                limit=WINDOW_S // _RESOLUTION_S + 1,
            ),
        )
        for agent in agents
    ]


def _steps(hosts: Sequence[_Recent], *, end: datetime) -> list[HostSteps]:
    found = (
        host_steps(agent, parts, resolution_s=_RESOLUTION_S, end=end) for agent, parts in hosts
    )
    return [steps for steps in found if steps is not None]
