"""Steer the jobs that a replica controls.

Looks are made in the controller's thread. What takes long, a decision or an apply, is a task beside
it: one at a time for each job, and a bounded number of each kind overall. What comes of it is kept
in the controller's thread again, while the job is still its own.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from spotwright.domain.errors import SpotwrightError
from spotwright.domain.job_run import JobRun, NewEvent, Steer
from spotwright.domain.offer import Pool
from spotwright.domain.shrunk import Part, ShrunkHost
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases import carry_out
from spotwright.usecases.carry_out import Doing
from spotwright.usecases.decide_jobs import Decisions
from spotwright.usecases.known_job import Keeper, KnownJob
from spotwright.usecases.look_at_fleet import Due, Heard, Looked, Moment, Promise, look_at_fleet
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.settle_steering import undecided
from spotwright.usecases.steering_notes import Carried, notes_of, notes_text
from spotwright.usecases.steering_ports import Decider, Fleets, Outlets
from spotwright.usecases.steering_rules import SteeringRules
from spotwright.usecases.store_ports import PlanStore

_log = logging.getLogger(__name__)

_MOST_APPLIES = 4
_RETRY = timedelta(seconds=10)  # after a decision that failed

_Step = Callable[[Carried, datetime], tuple[Carried, NewEvent]]


class JobSteering:
    """The part of a replica that steers jobs."""

    def __init__(
        self,
        plans: PlanStore,
        planned: PlannedRuns,
        decider: Decider,
        *,
        clock: Callable[[], datetime],
        outlets: Outlets | None = None,
        rules: SteeringRules | None = None,
    ) -> None:
        """Steer jobs; without fleets among `outlets`, decisions are not carried out."""
        self._plans, self._planned, self._decider = plans, planned, decider
        self._decisions = Decisions(plans, planned, decider, clock=clock)
        self._clock, self._outlets = clock, outlets or Outlets()
        self._fleets = self._outlets.fleets
        self._rules = rules or SteeringRules()
        self._up_since = clock()
        self._jobs: dict[str, KnownJob] = {}
        self._deciding: set[asyncio.Task[None]] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self._applies = asyncio.Semaphore(_MOST_APPLIES)
        self._is_stopping = False

    def keep_only(self, job_ids: Set[str]) -> None:
        """Forget jobs that others control by now."""
        for job_id in self._jobs.keys() - job_ids:
            self.forget(job_id)

    def forget(self, job_id: str) -> None:
        """Forget a job that is taken anew: others may have steered it since."""
        known = self._jobs.pop(job_id, None)
        if known is not None:
            known.is_mine = False

    def look(
        self,
        job: JobRun,
        agents: Sequence[AgentRecord],
        *,
        now: datetime,
        shrunk: Mapping[Part, ShrunkHost],
    ) -> Looked:
        """Look at a job; what comes of it is the caller's to keep. Blocks."""
        known = self._known(job)
        return look_at_fleet(
            job,
            Promise(self._planned.of(job.plan_id), self._planned.of(job.first_plan_id)),
            Heard(agents, shrunk),
            notes=known.notes,
            meters=known.meters,
            rules=self._rules,
            moment=Moment(now, self._up_since),
        )

    def prices(self, job: JobRun) -> Mapping[Pool, float]:
        """Return what one node of each pool that a job ever had costs, by what was seen last."""
        planned = self._planned.of(job.plan_id).prices_usd_per_hour
        return {**planned, **self._known(job).notes.prices_usd_per_hour}

    def kept(self, job: JobRun, looked: Looked, *, now: datetime) -> None:
        """Remember a look that was kept, and do what had to wait until then. Blocks."""
        known = self._known(job)
        known.notes, known.due, known.going = looked.notes, looked.due, looked.going
        known.first_plan_id = job.first_plan_id
        known.is_steered = looked.notes.memory.time_s is not None
        known.doing = self._to_do(job, known, now)
        self.tell(job, looked.announced)
        known.untold += looked.savings
        self._advise(known, now)

    def tell(self, job: JobRun, events: Sequence[NewEvent]) -> None:
        """Tell others what was logged about a job; never waits."""
        tell = self._outlets.tell
        if tell is None or job.course.steer is Steer.OFF:
            return
        for event in events:
            tell(job.job_id, event)

    def start_due(self, keeper: Keeper, changed: Callable[[str], None]) -> None:
        """Begin what looks found to be due; on the event loop."""
        now = self._clock()
        for known in list(self._jobs.values()):
            early = known.not_before is not None and now < known.not_before
            if known.due is not None and not known.deciding and not early:
                known.deciding = True
                self._begin(self._decide(known, known.due, keeper, changed), self._deciding)
            if self._decisions.wants_prices(known, now):
                known.pricing, known.priced = True, now
                known.priced_pools = known.notes.unpriced
                self._begin(self._price(known, keeper), self._deciding)
            if known.doing is not Doing.NOTHING and not known.carrying:
                known.carrying = True
                self._begin(
                    self._carry(known.job_id, known, known.doing, keeper, changed), self._carrying
                )

    @property
    def carried_jobs(self) -> frozenset[str]:
        """The jobs whose plans are being carried out."""
        return frozenset(job_id for job_id, known in self._jobs.items() if known.carrying)

    async def stop(self) -> None:
        """End decisions; an apply that runs is waited for, and none is begun."""
        self._is_stopping = True
        for task in self._deciding:
            task.cancel()
        await self.wait()

    async def wait(self) -> None:
        """Wait for everything that was begun."""
        while tasks := [*self._deciding, *self._carrying]:
            await asyncio.gather(*tasks, return_exceptions=True)

    def _known(self, job: JobRun) -> KnownJob:
        if job.job_id not in self._jobs:
            self._jobs[job.job_id] = KnownJob(job.job_id, notes_of(job.course.notes))
        return self._jobs[job.job_id]

    def _to_do(self, job: JobRun, known: KnownJob, now: datetime) -> Doing:
        if self._fleets is None:
            return Doing.NOTHING
        return carry_out.to_do(job, known.notes.carried, now=now)

    def _advise(self, known: KnownJob, now: datetime) -> None:
        """Tell training about checkpoints; what cannot be told now is told with the next look."""
        advice = self._outlets.advice
        while known.untold:
            saving = known.untold[0]
            if advice is not None:
                advice.checkpoint(
                    saving.agent_ids,
                    interval_s=saving.interval_s,
                    seconds_left=saving.left_s(now),
                )
            del known.untold[0]

    def _begin(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # Decisions

    async def _decide(
        self, known: KnownJob, due: Due, keeper: Keeper, changed: Callable[[str], None]
    ) -> None:
        try:
            job = await self._decisions.make(known, due, keeper)
            known.not_before = None
            if job is not None:
                known.doing = self._to_do(job, known, self._clock())
                known.is_undecided = False
        except Exception as error:  # of one job; it is asked about again
            known.not_before = self._clock() + _RETRY
            problem = _logged(error, f"job {known.job_id}: nothing could be decided")
            await self._tell_undecided(known, problem, keeper)
        finally:
            known.deciding = False
        changed(known.job_id)
        if known.due is None and known.notes.pending:  # something came meanwhile
            keeper.wake(known.job_id)
        self.start_due(keeper, changed)

    async def _tell_undecided(self, known: KnownJob, problem: str, keeper: Keeper) -> None:
        """Have the log of a job say why nothing is decided: once, until something is."""
        event = undecided(problem, self._clock())

        def tell() -> None:
            if known.is_mine and not known.is_undecided:
                keeper.change_mine(known.job_id, lambda job: (job, [event]))
                known.is_undecided = True

        try:
            await keeper.serially(tell)
        except SpotwrightError as error:
            _log.warning("job %s: that cannot be told: %s", known.job_id, error)

    async def _price(self, known: KnownJob, keeper: Keeper) -> None:
        """Ask what pools cost by now."""
        try:
            await self._decisions.price(known, keeper)
        except Exception as error:  # of one job; it is asked about again in ten minutes
            _logged(error, f"job {known.job_id}: prices cannot be told")
        finally:
            known.pricing = False

    # Carrying out

    async def _carry(
        self,
        job_id: str,
        known: KnownJob,
        doing: Doing,
        keeper: Keeper,
        changed: Callable[[str], None],
    ) -> None:
        try:
            async with self._applies:
                if not self._is_stopping:
                    await self._carried(job_id, known, doing, keeper, changed)
        except Exception:  # of one job; it is tried again with the next look
            _log.exception("job %s: its fleet could not be carried out", job_id)
        finally:
            known.carrying = False
            known.doing = Doing.NOTHING
        changed(job_id)

    async def _carried(
        self,
        job_id: str,
        known: KnownJob,
        doing: Doing,
        keeper: Keeper,
        changed: Callable[[str], None],
    ) -> None:
        note = _Noting(job_id, known, keeper, self._clock)
        plan_id = await note.plan_id()
        if plan_id is None or self._fleets is None:
            return
        if doing is Doing.APPLY and not await note.noted(
            lambda carried, now: carry_out.started(carried, plan_id, now)
        ):
            return
        changed(job_id)
        try:
            step = await self._done(plan_id, doing, self._fleets, note)
        except Exception as error:  # whatever it is: the log of the job tells it, and it waits
            problem = _logged(error, f"job {job_id}: {doing} failed")

            def step(carried: Carried, now: datetime) -> tuple[Carried, NewEvent]:
                return carry_out.failed(carried, plan_id, problem, doing=doing, now=now)

        await note.noted(step)

    async def _done(self, plan_id: str, doing: Doing, fleets: Fleets, note: "_Noting") -> "_Step":
        """Carry a plan out; return what is to be remembered of that."""
        job_id = note.job_id
        if doing is Doing.GIVE_BACK:
            await asyncio.to_thread(fleets.give_back, job_id)
            return carry_out.given_back
        if doing is Doing.REPLACE:
            given_up = note.given_up
            ended = await asyncio.to_thread(fleets.replace_nodes, job_id, given_up)
            return lambda carried, now: carry_out.replaced(carried, given_up, ended, now)
        plan = await asyncio.to_thread(self._plans.plan, plan_id)
        variables = await self._decider.variables(plan)
        if doing is Doing.WRITE:
            path = await asyncio.to_thread(fleets.write, job_id, variables)
            return lambda carried, now: carry_out.written(carried, plan_id, path, now)
        is_wanted, going = note.asks_for(plan_id), note.going
        did = await asyncio.to_thread(
            fleets.apply, job_id, variables, is_wanted=is_wanted, going=going
        )
        if did is None:
            return lambda carried, now: carry_out.dropped(carried, plan_id, now)
        return lambda carried, now: carry_out.applied(carried, plan_id, did, now)


class _Noting:
    """Keeps how far a plan was carried out, while the job is still this replica's."""

    def __init__(
        self, job_id: str, known: KnownJob, keeper: Keeper, clock: Callable[[], datetime]
    ) -> None:
        self.job_id, self._known, self._keeper, self._clock = job_id, known, keeper, clock

    @property
    def given_up(self) -> tuple[str, ...]:
        """The nodes that are to be ended, others taking their place."""
        return self._known.notes.carried.given_up

    @property
    def going(self) -> tuple[str, ...]:
        """The nodes that a smaller fleet does without, the first ones first."""
        return (*self._known.going, *self.given_up)

    async def plan_id(self) -> str | None:
        """Return the plan that the job runs now; None: it is not this replica's any more."""
        found: list[str] = []

        def look() -> None:
            job = self._keeper.change_mine(self.job_id, lambda job: (job, ()))
            if job is not None and job.course.steer is not Steer.OFF:
                found.append(job.plan_id)

        await self._keeper.serially(look)
        return found[0] if found else None

    def asks_for(self, plan_id: str) -> Callable[[], bool]:
        """Return what tells another thread whether the job is this replica's and has that plan."""
        loop = asyncio.get_running_loop()
        return lambda: asyncio.run_coroutine_threadsafe(self.plan_id(), loop).result() == plan_id

    async def noted(self, step: _Step) -> bool:
        """Keep a step and its event; False: the job is not this replica's any more."""
        done: list[JobRun] = []

        def keep() -> None:
            carried, event = step(self._known.notes.carried, self._clock())
            notes = replace(self._known.notes, carried=carried)

            def change(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
                course = replace(job.course, notes=notes_text(notes))
                return replace(job, course=course), [event]

            job = self._keeper.change_mine(self.job_id, change)
            if job is not None:
                self._known.notes = notes
                done.append(job)

        await self._keeper.serially(keep)
        return bool(done)


def _logged(error: Exception, what: str) -> str:
    """Log an error that is being handled, one of ours without where it came from; return it."""
    if isinstance(error, SpotwrightError):
        _log.warning("%s: %s", what, error)
        return str(error)
    _log.exception("%s", what)
    return f"{type(error).__name__}: {error}"
