"""One controller for each job, however many replicas there are.

Every few seconds each replica looks at the jobs that have not ended and takes or renews the lease
`job/<id>` of each. Whoever has the lease is the job's controller and follows it. A replica that
dies renews nothing, so that another one takes over within the lease's time to live and one period.
One that was only slow can do no harm: it logs nothing for a job whose controller it no longer is.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from spotwright.domain.errors import StoreUnavailableError
from spotwright.domain.job_run import JobRun, JobState, NewEvent
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases.follow_job import Memory, follow, remember
from spotwright.usecases.job_ports import ControlStore
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.store_ports import PageStart

_log = logging.getLogger(__name__)
_PAGE = 1000
_OPEN_STATES = tuple(state for state in JobState if not state.has_ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTimes:
    """How often a replica looks, and for how long it has what it took."""

    period_s: float = 5.0
    lease_ttl_s: float = 15.0  # three periods: two rounds may fail


class JobControl:
    """The part of a replica that controls jobs."""

    def __init__(
        self,
        store: ControlStore,
        planned: PlannedRuns,
        *,
        replica: str,
        clock: Callable[[], datetime],
        changed: Callable[[str], None] = lambda _: None,
        times: ControlTimes | None = None,
    ) -> None:
        """Control jobs as `replica`; `changed` is told on the event loop which ones changed."""
        self._store, self._planned, self._replica = store, planned, replica
        self._clock, self._changed = clock, changed
        self._times = times or ControlTimes()
        self._memories: dict[str, Memory] = {}  # of the jobs that this replica controls

    @property
    def controlled_jobs(self) -> frozenset[str]:
        """The jobs that this replica controlled after the latest round."""
        return frozenset(self._memories)

    async def run(self, stopping: asyncio.Event) -> None:
        """Make rounds until told to stop; then give the jobs back."""
        while not stopping.is_set():
            try:
                for job_id in await asyncio.to_thread(self.make_round):
                    self._changed(job_id)
            except StoreUnavailableError as error:
                _log.warning("jobs cannot be controlled now: %s", error)
            except Exception:  # the next round may do better, and no other replica would take over
                _log.exception("a round of control failed")
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self._times.period_s)
        try:
            await asyncio.to_thread(self.release)
        except StoreUnavailableError as error:
            _log.warning("jobs could not be given back, their leases will run out: %s", error)

    def make_round(self) -> Sequence[str]:
        """Take, renew and follow; return the jobs that were changed. Blocks."""
        jobs = self._open_jobs()
        self._drop_ended({job.job_id for job in jobs})
        # Its own jobs first, so that no lease runs out while others are asked for.
        jobs.sort(key=lambda job: job.job_id not in self._memories)
        mine = [job for job in jobs if self._has_lease(job)]
        taken = [job.job_id for job in mine if self._take(job)]
        noticed = self._follow([job for job in mine if job.job_id in self._memories])
        return [*taken, *noticed]

    def release(self) -> None:
        """Give every job back at once, so that another replica need not wait. Blocks."""
        for job_id in list(self._memories):
            self._store.change_job(job_id, self._given_back)
            self._store.release_lease(_lease(job_id), self._replica)
            del self._memories[job_id]

    def _open_jobs(self) -> list[JobRun]:
        jobs: list[JobRun] = []
        after: PageStart | None = None
        while True:
            page = self._store.jobs(states=_OPEN_STATES, after=after, limit=_PAGE)
            jobs += page
            if len(page) < _PAGE:
                return jobs
            after = PageStart(page[-1].create_time, page[-1].job_id)

    def _drop_ended(self, open_ids: set[str]) -> None:
        for job_id in self._memories.keys() - open_ids:
            self._store.release_lease(_lease(job_id), self._replica)
            del self._memories[job_id]

    def _has_lease(self, job: JobRun) -> bool:
        name, ttl_s = _lease(job.job_id), self._times.lease_ttl_s
        has_it = self._store.acquire_lease(name, self._replica, ttl_s=ttl_s)
        if not has_it and self._memories.pop(job.job_id, None) is not None:
            _log.warning("another replica controls job %s now", job.job_id)
        return has_it

    def _take(self, job: JobRun) -> bool:
        """Become the controller of a job whose lease this replica has; tell whether that is new."""
        if job.job_id in self._memories and job.controller == self._replica:
            return False
        memory = self._remembered(job.job_id)
        now = self._clock()
        taken = self._store.change_job(job.job_id, lambda job: self._taken(job, now))
        if taken.controller == self._replica:
            self._memories[job.job_id] = memory
        return job.controller != taken.controller

    def _taken(self, job: JobRun, now: datetime) -> tuple[JobRun, Sequence[NewEvent]]:
        if job.state.has_ended or job.controller == self._replica:
            return job, ()
        before = f" from {job.controller}" if job.controller else ""
        event = NewEvent(
            time=now,
            kind="controller-changed",
            text=f"replica {self._replica} took control{before}",
            facts={"from": job.controller, "to": self._replica},
        )
        return replace(job, controller=self._replica, update_time=now), [event]

    def _given_back(self, job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
        if job.controller != self._replica:
            return job, ()
        return replace(job, controller="", update_time=self._clock()), ()

    def _remembered(self, job_id: str) -> Memory:
        """Return what earlier controllers noticed, so that nothing is logged twice."""
        memory, last = Memory(), 0
        while True:
            page = self._store.events(job_id, after_sequence=last, limit=_PAGE)
            memory = remember(page, memory)
            if len(page) < _PAGE:
                return memory
            last = page[-1].sequence

    def _follow(self, jobs: Sequence[JobRun]) -> list[str]:
        agents = self._agents_by_job() if jobs else {}
        noticed = []
        for job in jobs:
            found = follow(
                job,
                agents.get(job.job_id, ()),
                deadline_s=self._planned.of(job.plan_id).deadline_s,
                now=self._clock(),
                memory=self._memories[job.job_id],
            )
            if found.events:
                self._log_events(job.job_id, found.events)
                noticed.append(job.job_id)
            self._memories[job.job_id] = found.memory
        return noticed

    def _log_events(self, job_id: str, events: Sequence[NewEvent]) -> None:
        def logged(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
            is_mine = job.controller == self._replica and not job.state.has_ended
            return job, events if is_mine else ()

        self._store.change_job(job_id, logged)

    def _agents_by_job(self) -> dict[str, list[AgentRecord]]:
        found: dict[str, list[AgentRecord]] = defaultdict(list)
        last = ""
        while True:
            page = self._store.agents(after_id=last, limit=_PAGE)
            for agent in page:
                if agent.facts.job_id:
                    found[agent.facts.job_id].append(agent)
            if len(page) < _PAGE:
                return found
            last = page[-1].facts.agent_id


def _lease(job_id: str) -> str:
    return f"job/{job_id}"
