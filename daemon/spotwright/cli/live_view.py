"""What is being watched, redrawn on the terminal about once a second."""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spotwright.cli.agent_view import AGENT_COLUMNS, agent_row
from spotwright.cli.job_view import JOB_COLUMNS, event_line, job_line, job_row
from spotwright.domain.job_run import Event, JobRun

if TYPE_CHECKING:
    from spotwright.client.agent_calls import AgentStatus

_DRAW_EVERY_S = 1.0
_EVENTS = 8
_OTHER_LINES = 12  # headings of two lines, the job, a word about the connection
_COLUMN_GAP, _EDGE = 3, 1
# What is left out first where the terminal is narrow; the rest is what one watches for.
_EXPENDABLE = (
    *("controller", "created (UTC)", "clock skew>", "job", "GPU memory>", "GPUs>", "last seen>"),
    "type",
)


class LiveSink:
    """Holds the latest of everything, and draws it."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._agents: dict[str, AgentStatus] = {}
        self._jobs: list[JobRun] = []
        self._job: JobRun | None = None
        self._events: deque[Event] = deque(maxlen=_EVENTS)
        self._word = ""

    def take_job(self, job: JobRun) -> None:
        """Keep the job."""
        self._job = job

    def take_event(self, event: Event) -> None:
        """Keep the latest events."""
        self._events.append(event)

    def take_jobs(self, jobs: list[JobRun]) -> None:
        """Keep all jobs that have not ended."""
        self._jobs = jobs

    def take_agents(self, agents: "list[AgentStatus]") -> None:
        """Keep the latest figures of agents."""
        self._agents.update({agent.agent_id: agent for agent in agents})

    def tell(self, text: str) -> None:
        """Keep a word about the connection, and when it was said."""
        self._word = f"{datetime.now(UTC):%H:%M:%S} {text}"

    async def draw(self) -> None:
        """Draw about once a second, and once more at the end."""
        with Live(console=self._console, auto_refresh=False) as live:
            try:
                while True:
                    live.update(self.picture(datetime.now(UTC)), refresh=True)
                    await asyncio.sleep(_DRAW_EVERY_S)
            finally:
                live.update(self.picture(datetime.now(UTC)), refresh=True)

    def picture(self, now: datetime) -> RenderableType:
        """Return everything as it is now."""
        parts: list[RenderableType] = []
        if self._job is not None:
            parts += [Text(job_line(self._job)), *(Text(event_line(e)) for e in self._events)]
        else:
            jobs = [job_row(job, now) for job in self._jobs]
            parts.append(self._table("jobs that have not ended", JOB_COLUMNS, jobs))
        agents = [agent_row(self._agents[name], now) for name in sorted(self._agents)]
        parts.append(self._table("agents", AGENT_COLUMNS, agents))
        words = (f"{now:%H:%M:%S} UTC, Ctrl-C ends", self._word)
        parts.append(Text("; ".join(word for word in words if word)))
        return Group(*parts)

    def _table(
        self, title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]
    ) -> RenderableType:
        room = max(3, (self._console.height - _OTHER_LINES) // 2)
        shown = rows if len(rows) <= room else rows[: room - 1]
        count = f"{len(rows)}, {len(shown)} of them here" if len(shown) < len(rows) else len(rows)
        columns, shown = _fitting(columns, shown, width=self._console.width - _EDGE)
        table = Table(title=f"{title}: {count}", title_justify="left", box=box.SIMPLE_HEAD)
        widths = _widths(columns, shown)
        for column, width in zip(columns, widths, strict=True):
            justify: JustifyMethod = "right" if column.endswith(">") else "left"
            table.add_column(column.removesuffix(">"), justify=justify, width=width)
        for row in shown:
            table.add_row(*row)
        return table


def _fitting(
    columns: Sequence[str], rows: Sequence[tuple[str, ...]], *, width: int
) -> tuple[Sequence[str], Sequence[tuple[str, ...]]]:
    """Leave columns out, those first that matter least, until the rest is readable."""
    kept, widths = list(range(len(columns))), _widths(columns, rows)
    for name in _EXPENDABLE:
        if sum(widths[i] + _COLUMN_GAP for i in kept) <= width:
            break
        kept = [i for i in kept if columns[i] != name or i == 0]
    return [columns[i] for i in kept], [tuple(row[i] for i in kept) for row in rows]


def _widths(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[int]:
    """Return what each column needs at least: its cells whole, its heading word by word."""
    headings = [name.removesuffix(">").split() for name in columns]
    return [max(map(len, [*words, *(row[i] for row in rows)])) for i, words in enumerate(headings)]
