"""Every agent that the store knows, page by page."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from spotwright.domain.telemetry import AgentRecord

_PAGE = 1000


class AgentPages(Protocol):
    """Agents by name, as TelemetryStore has them."""

    def agents(self, *, job_id: str = "", after_id: str = "", limit: int) -> Sequence[AgentRecord]:
        """Return agents by name, those after `after_id`."""


def all_agents(store: AgentPages) -> Iterator[AgentRecord]:
    """Return them by name."""
    last = ""
    while True:
        page = store.agents(after_id=last, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        last = page[-1].facts.agent_id
