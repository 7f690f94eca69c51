"""A daemon looked on for as long as one likes, over its restarts.

What never answered is an error at once; what answered before is asked again, with growing pauses,
from where it left off.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from spotwright.cli.daemon_access import DaemonAccess
from spotwright.domain.errors import BusyError, OutsideWorldError
from spotwright.domain.job_run import Event, JobRun, JobState

if TYPE_CHECKING:
    from spotwright.client import AioClient
    from spotwright.client.agent_calls import AgentStatus

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_JOBS_EVERY_S = 2.0
_OPEN_STATES = tuple(state for state in JobState if not state.has_ended)
_MOST_JOBS = 1000  # the largest page


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to look at: one job until it has ended, or all of them for ever."""

    job_id: str | None = None
    agents: bool = True


class Sink(Protocol):
    """Where news go."""

    def take_job(self, job: JobRun) -> None:
        """Take the state of the job that is watched."""

    def take_event(self, event: Event) -> None:
        """Take an event of that job."""

    def take_jobs(self, jobs: list[JobRun]) -> None:
        """Take all jobs that have not ended."""

    def take_agents(self, agents: "list[AgentStatus]") -> None:
        """Take agents whose figures changed."""

    def tell(self, text: str) -> None:
        """Take a word about the connection."""

    async def draw(self) -> None:
        """Show what was taken, until cancelled."""


def follow_daemon(access: DaemonAccess, wanted: Wanted, sink: Sink) -> None:
    """Hand news to a sink until the job has ended or Ctrl-C is pressed.

    Raises:
        SpotwrightError: the daemon never answered, or refuses.
    """
    asyncio.run(_follow(access, wanted, sink))


async def _follow(access: DaemonAccess, wanted: Wanted, sink: Sink) -> None:
    async with AsyncExitStack() as ends:
        stopping = ends.enter_context(_interrupts())
        client = await ends.enter_async_context(access.open_aio())
        looking = _Looking(client, sink, address=access.address)
        parts: list[Coroutine[Any, Any, object]] = [stopping.wait(), sink.draw()]
        if wanted.agents:
            parts.append(looking.at_agents(wanted.job_id or ""))
        parts.append(looking.at_job(wanted.job_id) if wanted.job_id else looking.at_jobs())
        await _first_of(parts)


async def _first_of(parts: list[Coroutine[Any, Any, object]]) -> None:
    """Run all, until one ends or fails."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _interrupts() -> Iterator[asyncio.Event]:
    """Yield an event that Ctrl-C sets."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.SIG_IGN:  # set by nohup, and by shells for what runs behind
        yield stopping
        return
    loop.add_signal_handler(signal.SIGINT, stopping.set)
    try:
        yield stopping
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, usual)


class _Looking:
    """Everything that is being looked at over one connection."""

    def __init__(self, client: "AioClient", sink: Sink, *, address: str) -> None:
        self._client, self._sink, self._address = client, sink, address
        self._answered_once = False
        self._lost_parts: set[str] = set()
        self._last_sequence = 0

    async def at_job(self, job_id: str) -> None:
        """Look at one job until it has ended."""
        await self._keep_on(
            "job",
            lambda: self._client.watch_job(job_id, after_sequence=self._last_sequence),
            self._take,
        )

    async def at_jobs(self) -> None:
        """Look at all jobs that have not ended."""
        await self._keep_on("jobs", self._jobs, self._sink.take_jobs)

    async def at_agents(self, job_id: str) -> None:
        """Look at agents; there is no end to them."""
        while True:
            await self._keep_on(
                "agents",
                lambda: self._client.watch_agents(job_id=job_id),
                self._sink.take_agents,
            )
            await asyncio.sleep(_FIRST_PAUSE_S)

    async def _jobs(self) -> AsyncIterator[list[JobRun]]:
        while True:
            page = await self._client.list_jobs(states=_OPEN_STATES, page_size=_MOST_JOBS)
            yield page.jobs
            await asyncio.sleep(_JOBS_EVERY_S)

    def _take(self, update: JobRun | Event) -> None:
        if isinstance(update, Event):
            self._last_sequence = update.sequence
            self._sink.take_event(update)
        else:
            self._sink.take_job(update)

    async def _keep_on(
        self, part: str, updates: Callable[[], AsyncIterator[T]], take: Callable[[T], None]
    ) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                async for update in updates():
                    pause_s = _FIRST_PAUSE_S
                    self._answered(part)
                    take(update)
                return
            except (OutsideWorldError, BusyError) as error:
                if not self._answered_once:
                    raise
                self._lost(part, error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _answered(self, part: str) -> None:
        self._answered_once = True
        if part in self._lost_parts:
            self._lost_parts.remove(part)
            if not self._lost_parts:
                self._sink.tell(f"the daemon at {self._address} answers again")

    def _lost(self, part: str, error: Exception) -> None:
        if not self._lost_parts:
            reason = str(error).partition("\n")[0]
            self._sink.tell(f"lost the daemon at {self._address}, trying again: {reason}")
        self._lost_parts.add(part)
