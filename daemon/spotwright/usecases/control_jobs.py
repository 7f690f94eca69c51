"""One controller for each job, however many replicas there are.

Every few seconds each replica looks at the jobs that have not ended and takes or renews the lease
`job/<id>` of each. Whoever has the lease is the job's controller and follows it. A replica that
dies renews nothing, so that another one takes over within the lease's time to live and one period.
One that was only slow can do no harm: it changes a job only while the lease is its own, by the
store's clock and in the same transaction.
"""

import asyncio
import logging
import secrets
import time
from asyncio import FIRST_COMPLETED
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from spotwright.domain.errors import StoreUnavailableError
from spotwright.domain.job_run import JobRun, JobState, NewEvent
from spotwright.domain.telemetry import AgentRecord, StepSums
from spotwright.usecases.agents_progress import agents_progress
from spotwright.usecases.all_agents import all_agents
from spotwright.usecases.follow_job import Followed, Memory, follow
from spotwright.usecases.follow_shrunk import follow_shrunk
from spotwright.usecases.follow_terms import follow_terms
from spotwright.usecases.job_memory import remembered
from spotwright.usecases.job_ports import ControlStore
from spotwright.usecases.keep_ledger import LedgerKeeper
from spotwright.usecases.known_job import Change
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.report_progress import advanced, progress_events
from spotwright.usecases.steer_jobs import JobSteering
from spotwright.usecases.store_ports import Lease, PageStart
from spotwright.usecases.watch_terms import TermWatch

_log = logging.getLogger(__name__)
_PAGE = 1000
_TAKEN_AT_ONCE = 200  # each is a commit of its own: a few milliseconds
_KEEP_PROGRESS_S = 15.0  # between two writes of how far agents say that a job is
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
        steering: JobSteering | None = None,
    ) -> None:
        """Control jobs as `replica`.

        Args:
            store: where they are.
            planned: what their plans promise.
            replica: the name of this one.
            clock: the time now.
            changed: told on the event loop which jobs changed.
            times: how often it looks.
            steering: decides about fleets; None: jobs are followed only.
        """
        self._store, self._planned, self._replica = store, planned, replica
        self._clock, self._changed = clock, changed
        self._times = times or ControlTimes()
        # A part by chance: two replicas that were given one name do not pass for each other.
        self._owner = f"{replica}/{secrets.token_hex(4)}"
        self._memories: dict[str, Memory] = {}  # of the jobs that this replica controls
        self._is_behind = False  # there are more jobs to take
        self._terms = TermWatch(store)
        self._ledger = LedgerKeeper(store)
        self._steering = steering
        self._woken: set[str] = set()
        self._wake = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    @property
    def controlled_jobs(self) -> frozenset[str]:
        """The jobs that this replica controlled after the latest round."""
        return frozenset(self._memories)

    @property
    def is_carrying_out(self) -> bool:
        """Tell whether the fleet of some job is being written or applied."""
        return self._steering is not None and bool(self._steering.carried_jobs)

    def wake(self, job_id: str) -> None:
        """Look at a job at once: there is news of it. On the event loop."""
        self._woken.add(job_id)
        self._wake.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Make rounds until told to stop; then give the jobs back."""
        while not stopping.is_set():
            await self.look()
            pause_s = 0.0 if self._is_behind else self._times.period_s
            await self._pause(stopping, pause_s)
        if self._steering is not None:
            await self._end_steering(self._steering)
        try:
            await asyncio.to_thread(self.release)
        except StoreUnavailableError as error:
            _log.warning("jobs could not be given back, their leases will run out: %s", error)

    async def _end_steering(self, steering: JobSteering) -> None:
        """Let applies end, and keep their jobs meanwhile: another replica would apply the same."""
        ending = asyncio.create_task(steering.stop())
        while not ending.done():
            try:
                await self.serially(partial(self._keep_only, steering.carried_jobs))
            except StoreUnavailableError as error:
                _log.warning("leases of jobs could not be renewed: %s", error)
            await asyncio.wait({ending}, timeout=self._times.period_s)
        await ending

    async def look(self) -> None:
        """Make a round, tell who watches, and begin what is due."""
        await self._looked(self.make_round)

    async def serially(self, work: Callable[[], None]) -> None:
        """Do something in a thread, between two looks."""
        async with self._one_at_a_time:
            await asyncio.to_thread(work)

    async def _looked(self, look: Callable[[], Sequence[str]]) -> None:
        """Look, tell who watches, and begin what is due."""
        try:
            async with self._one_at_a_time:
                changed = await asyncio.to_thread(look)
            for job_id in changed:
                self._changed(job_id)
        except StoreUnavailableError as error:
            _log.warning("jobs cannot be controlled now: %s", error)
        except Exception:  # the next round may do better, and no other replica would take over
            _log.exception("a round of control failed")
        if self._steering is not None:
            self._steering.start_due(self, self._changed)

    async def _pause(self, stopping: asyncio.Event, pause_s: float) -> None:
        """Wait for the next round; jobs of which there is news are looked at meanwhile."""
        ends_s = time.monotonic() + pause_s
        stop = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                wake = asyncio.create_task(self._wake.wait())
                left_s = max(0.0, ends_s - time.monotonic())
                await asyncio.wait({stop, wake}, timeout=left_s, return_when=FIRST_COMPLETED)
                wake.cancel()
                if time.monotonic() >= ends_s:
                    return
                if self._wake.is_set() and not stopping.is_set():
                    self._wake.clear()
                    woken, self._woken = self._woken, set()
                    await self._looked(partial(self.look_at, woken))
        finally:
            stop.cancel()

    def make_round(self) -> Sequence[str]:
        """Renew, take and follow; return the jobs that were changed. Blocks."""
        self._is_behind = False
        jobs = {job.job_id: job for job in self._open_jobs()}
        self._let_go(self._memories.keys() - jobs.keys())
        self._renew()
        taken = self._take_free([job for job in jobs.values() if not self._controls(job)])
        mine = [jobs[job_id] for job_id in self._memories]
        self._terms.start_round(self._memories.keys())
        noticed = self._follow(mine, self._agents_by_job() if mine else {})
        return [*taken, *noticed]

    def look_at(self, job_ids: Set[str]) -> Sequence[str]:
        """Follow some of the jobs that this replica controls; return those changed. Blocks."""
        if self._steering is None:
            return []
        jobs = [self._store.job(job_id) for job_id in sorted(job_ids & self._memories.keys())]
        agents = {job.job_id: self._agents_of(job.job_id) for job in jobs}
        return self._follow([job for job in jobs if not job.state.has_ended], agents)

    def change_mine(self, job_id: str, change: Change) -> JobRun | None:
        """Change a job, if this replica still controls it; None: it does not. Blocks."""
        done: list[tuple[JobRun, Sequence[NewEvent]]] = []

        def changed(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
            if job.controller != self._replica or job.state.has_ended:
                return job, ()
            done.append(change(job))
            return done[-1]

        self._store.change_job(job_id, changed, under=self._lease_of(job_id))
        if not done:
            return None
        found, events = done[-1]
        if self._steering is not None:
            self._steering.tell(found, events)
        return found

    def release(self) -> None:
        """Give every job back, so that another replica need not wait. Blocks."""
        self._let_go(self._memories.keys())

    def _controls(self, job: JobRun) -> bool:
        return job.job_id in self._memories and job.controller == self._replica

    def _open_jobs(self) -> list[JobRun]:
        jobs: list[JobRun] = []
        after: PageStart | None = None
        while True:
            page = self._store.jobs(states=_OPEN_STATES, after=after, limit=_PAGE)
            jobs += page
            if len(page) < _PAGE:
                return jobs
            after = PageStart(page[-1].create_time, page[-1].job_id)

    def _let_go(self, job_ids: Set[str]) -> None:
        self._store.release_leases([_lease(job_id) for job_id in job_ids], self._owner)
        for job_id in list(job_ids):
            del self._memories[job_id]

    def _keep_only(self, job_ids: Set[str]) -> None:
        """Give back all jobs but some, whose leases are renewed. Blocks."""
        self._let_go(self._memories.keys() - job_ids)
        self._renew()

    def _renew(self) -> None:
        kept = self._acquire(self._memories)
        for job_id in self._memories.keys() - kept:
            _log.warning("another replica controls job %s now", job_id)
            del self._memories[job_id]

    def _take_free(self, jobs: Sequence[JobRun]) -> list[str]:
        """Become the controller of jobs that nobody controls; return those changed by it.

        After so many that renewing cannot wait any longer, the rest is for the next round.
        """
        changed: list[str] = []
        for start in range(0, len(jobs), _TAKEN_AT_ONCE):
            some = jobs[start : start + _TAKEN_AT_ONCE]
            free = self._acquire([job.job_id for job in some])
            changed += [job.job_id for job in some if job.job_id in free and self._take(job)]
            if len(changed) >= _TAKEN_AT_ONCE:
                self._is_behind = start + _TAKEN_AT_ONCE < len(jobs)
                break
        return changed

    def _acquire(self, job_ids: Iterable[str]) -> Set[str]:
        leases = {_lease(job_id): job_id for job_id in job_ids}
        ttl_s = self._times.lease_ttl_s
        return {
            leases[name] for name in self._store.acquire_leases(leases, self._owner, ttl_s=ttl_s)
        }

    def _take(self, job: JobRun) -> bool:
        """Become the controller of a job whose lease this replica has; tell whether it changed."""
        memory, now = remembered(job.job_id, self._store), self._clock()
        changed = job.controller != self._replica  # else it is as it was before a restart
        if changed:
            job = self._store.change_job(
                job.job_id, lambda job: self._taken(job, now), under=self._lease_of(job.job_id)
            )
        if job.controller == self._replica:
            self._memories[job.job_id] = memory
            if self._steering is not None:
                self._steering.forget(job.job_id)
        return changed and job.controller == self._replica

    def _taken(self, job: JobRun, now: datetime) -> tuple[JobRun, Sequence[NewEvent]]:
        if job.state.has_ended:
            return job, ()
        before = f" from {job.controller}" if job.controller else ""
        event = NewEvent(
            time=now,
            kind="controller-changed",
            text=f"replica {self._replica} took control{before}",
            facts={"from": job.controller, "to": self._replica},
        )
        return replace(job, controller=self._replica, update_time=now), [event]

    def _follow(
        self, jobs: Sequence[JobRun], agents: Mapping[str, Sequence[AgentRecord]]
    ) -> list[str]:
        noticed = []
        self._ledger.start_round(self._memories.keys())
        if self._steering is not None:
            self._steering.keep_only(self._memories.keys())
        steps = self._store.job_steps([job.job_id for job in jobs if not job.course.is_told])
        for job in jobs:
            try:
                job = self._advanced(job, steps.get(job.job_id, ()))  # noqa: PLW2901
                if job.state.has_ended or self._follow_one(job, agents.get(job.job_id, ())):
                    noticed.append(job.job_id)
            except StoreUnavailableError:
                raise
            except Exception:  # of one job; the others are followed all the same
                _log.exception("job %s cannot be followed", job.job_id)
        self._ledger.write()
        return noticed

    def _advanced(self, job: JobRun, sums: Sequence[StepSums]) -> JobRun:
        """Return a job that is as far as its agents say; kept from time to time."""
        planned, now = self._planned.of(job.plan_id), self._clock()
        told = agents_progress(sums, planned.strategy)
        if told is None or job.course.is_told:
            return job
        found = advanced(job, told, planned, now=now)
        if found.progress == job.progress and found.state is job.state:
            return job
        since_s = (now - job.update_time).total_seconds()
        if found.state is job.state and since_s < _KEEP_PROGRESS_S:
            return replace(found, update_time=job.update_time)

        def change(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
            after = advanced(job, told, planned, now=now)
            return after, progress_events(job, after, told, now=now, tell_fall=False)

        return self.change_mine(job.job_id, change) or job

    def _follow_one(self, job: JobRun, agents: Sequence[AgentRecord]) -> bool:
        """Log what happened to a job; tell whether anything did."""
        planned, now = self._planned.of(job.plan_id), self._clock()
        deadline_s = self._planned.of(job.first_plan_id).deadline_s
        memory = self._memories[job.job_id]
        prices = planned.prices_usd_per_hour
        if self._steering is not None:  # it knows newer ones, and those of pools that were left
            prices = self._steering.prices(job)
        self._ledger.look(job, agents, prices=prices, now=now)
        found = follow(job, agents, deadline_s=deadline_s, now=now, memory=memory)
        look = self._terms.look(job.job_id, planned, agents, now=now, memory=memory)
        steps = follow_terms(look.terms, now=now, memory=found.memory)
        sizes = follow_shrunk(look.sizes, now=now, memory=steps.memory)
        followed = Followed([*found.events, *steps.events, *sizes.events], sizes.memory)
        if self._steering is None:
            changed = self._log_events(job.job_id, followed.events)
        else:
            changed = self._steered(self._steering, job, agents, followed, now)
        self._memories[job.job_id] = followed.memory
        return changed

    def _steered(
        self,
        steering: JobSteering,
        job: JobRun,
        agents: Sequence[AgentRecord],
        followed: Followed,
        now: datetime,
    ) -> bool:
        """Look at a job's fleet, too; keep what has to be kept."""
        looked = steering.look(job, agents, now=now, shrunk=followed.memory.shrunk)
        events = [*followed.events, *looked.events]
        if looked.keep:
            course = looked.course_with_notes
            kept = self.change_mine(job.job_id, lambda job: (replace(job, course=course), events))
            if kept is None:
                return False
        changed = looked.keep or self._log_events(job.job_id, events)
        steering.kept(job, looked, now=now)  # only now: what could not be kept is seen again
        return changed

    def _log_events(self, job_id: str, events: Sequence[NewEvent]) -> bool:
        if events:
            self.change_mine(job_id, lambda job: (job, events))
        return bool(events)

    def _lease_of(self, job_id: str) -> Lease:
        return Lease(_lease(job_id), self._owner)

    def _agents_of(self, job_id: str) -> list[AgentRecord]:
        found: list[AgentRecord] = []
        while True:
            last = found[-1].facts.agent_id if found else ""
            page = self._store.agents(job_id=job_id, after_id=last, limit=_PAGE)
            found += page
            if len(page) < _PAGE:
                return found

    def _agents_by_job(self) -> dict[str, list[AgentRecord]]:
        found: dict[str, list[AgentRecord]] = defaultdict(list)
        for agent in all_agents(self._store):
            if agent.facts.job_id:
                found[agent.facts.job_id].append(agent)
        return found


def _lease(job_id: str) -> str:
    return f"job/{job_id}"
