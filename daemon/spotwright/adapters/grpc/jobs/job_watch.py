"""Jobs being watched: one look at the store for each job, however many look on.

A watcher has a cursor and nothing else: what it has not sent yet it reads again, from the latest
events that the job's poll holds or, where it fell behind those, from the store. So a reader that is
slow, or never reads, costs no memory and misses no event.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress

import grpc

from spotwright.adapters.grpc.errors import StatusError, make_status
from spotwright.domain.errors import StoreUnavailableError
from spotwright.domain.job_run import Event, JobRun
from spotwright.usecases.store_ports import JobStore

_log = logging.getLogger(__name__)
_PAGE = 100
_HELD = 256  # latest events that watchers share


class JobWatches:
    """Every job that is being watched on this replica. Used on the event loop only."""

    def __init__(self, jobs: JobStore, *, poll_s: float = 1.0) -> None:
        """Look for what other replicas changed every `poll_s`."""
        self._jobs, self._poll_s = jobs, poll_s
        self._polls: dict[str, _Poll] = {}
        self._closing = False

    @property
    def watched_jobs(self) -> frozenset[str]:
        """The jobs that someone watches now."""
        return frozenset(self._polls)

    def changed(self, job_id: str) -> None:
        """Tell that this replica changed a job, so that watchers need not wait."""
        if job_id in self._polls:
            self._polls[job_id].hurry()

    def close(self) -> None:
        """End every watch, as the daemon is about to stop."""
        self._closing = True
        for poll in self._polls.values():
            poll.fail(_stopping())

    async def watch(
        self, job_id: str, *, after_sequence: int
    ) -> AsyncGenerator[JobRun | Event, None]:
        """Return the job as it is, then events and changed states until it has ended.

        Raises:
            NotFoundError: no such job.
            StatusError: the daemon is about to stop.
        """
        if self._closing:
            raise _stopping()
        with self._poll_of(job_id) as poll:
            sent = await poll.look()
            yield sent
            cursor = max(0, after_sequence)
            async for job in poll.states():
                while events := await poll.events_after(cursor):
                    for event in events:
                        yield event
                    cursor = events[-1].sequence
                if job != sent:
                    yield job
                    sent = job
                if job.state.has_ended and poll.last_sequence <= cursor:
                    return

    @contextmanager
    def _poll_of(self, job_id: str) -> Iterator["_Poll"]:
        poll = self._polls.get(job_id)
        if poll is None:
            poll = self._polls[job_id] = _Poll(job_id, self._jobs, self._poll_s)
        poll.watcher_count += 1
        try:
            yield poll
        finally:
            poll.watcher_count -= 1
            if not poll.watcher_count:
                poll.stop()
                del self._polls[job_id]


class _Poll:
    """Looks at one job for all who watch it."""

    def __init__(self, job_id: str, jobs: JobStore, poll_s: float) -> None:
        self.watcher_count = 0
        self.last_sequence = 0
        self._job_id, self._jobs, self._poll_s = job_id, jobs, poll_s
        self._job: JobRun | None = None
        self._held: deque[Event] = deque(maxlen=_HELD)
        self._failure: BaseException | None = None
        self._version = 0
        self._news = asyncio.Event()  # replaced at each version, so that nobody misses one
        self._hurry = asyncio.Event()
        self._looking = asyncio.Lock()  # or an older look could replace a newer one
        self._task = asyncio.create_task(self._run(), name=f"watch {job_id}")

    def hurry(self) -> None:
        """Look now."""
        self._hurry.set()

    def stop(self) -> None:
        """Look no more."""
        self._task.cancel()

    def fail(self, failure: BaseException) -> None:
        """End every watch with an error."""
        self._failure = failure
        self._announce()

    async def states(self) -> AsyncIterator[JobRun]:
        """Return the job whenever there is news; several at once are one."""
        seen = 0
        while True:
            while seen == self._version:
                await self._news.wait()
            seen = self._version
            if self._failure is not None:
                raise self._failure
            if self._job is not None:
                yield self._job

    async def events_after(self, cursor: int) -> Sequence[Event]:
        """Return the next events, up to the last one that the poll has seen."""
        if cursor >= self.last_sequence:
            return ()
        if self._held and self._held[0].sequence <= cursor + 1:
            return [event for event in self._held if event.sequence > cursor]
        return await asyncio.to_thread(
            self._jobs.events, self._job_id, after_sequence=cursor, limit=_PAGE
        )

    async def look(self) -> JobRun:
        """Read the job as it is now, and what was logged since the last look."""
        async with self._looking:
            # The job before its events: what ended it is then among them.
            job = await asyncio.to_thread(self._jobs.job, self._job_id)
            if await self._found_events() or job != self._job:
                self._job = job
                self._announce()
            return job

    async def _run(self) -> None:
        while self._failure is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), self._poll_s)
            self._hurry.clear()
            try:
                await self.look()
            except StoreUnavailableError as error:
                _log.warning("job %s cannot be looked at now: %s", self._job_id, error)
            except Exception as error:
                self.fail(error)

    async def _found_events(self) -> bool:
        before = self.last_sequence
        while True:
            page = await asyncio.to_thread(
                self._jobs.events, self._job_id, after_sequence=self.last_sequence, limit=_PAGE
            )
            self._held.extend(page)
            if page:
                self.last_sequence = page[-1].sequence
            if len(page) < _PAGE:
                return self.last_sequence > before

    def _announce(self) -> None:
        self._version += 1
        self._news.set()
        self._news = asyncio.Event()


def _stopping() -> StatusError:
    text = "the daemon is about to stop; watch again in a moment"
    return StatusError(
        make_status(grpc.StatusCode.UNAVAILABLE, text, reason="STOPPING", retry_after_s=1.0)
    )
