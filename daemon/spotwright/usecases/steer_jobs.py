"""Steer the jobs that a replica controls.

Looks are made in the controller's thread. What takes long, a decision or an apply, is a task beside
it: one at a time for each job, and a bounded number of each kind overall. What comes of it is kept
in the controller's thread again, while the job is still its own.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from spotwright.domain.errors import SpotwrightError
from spotwright.domain.job_run import JobRun, NewEvent, Steer
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument
from spotwright.domain.steering_question import SteeringAnswer, SteeringQuestion
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases import carry_out
from spotwright.usecases.carry_out import Doing
from spotwright.usecases.forecast_job import PaceMeter
from spotwright.usecases.look_at_fleet import Due, Looked, Moment, Promise, look_at_fleet
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.settle_steering import is_another_fleet, settled
from spotwright.usecases.steering_notes import Carried, SteeringNotes, notes_of, notes_text
from spotwright.usecases.steering_ports import Decider, Fleets, Outlets
from spotwright.usecases.steering_rules import SteeringRules
from spotwright.usecases.store_ports import PlanStore

_log = logging.getLogger(__name__)

_MOST_DECISIONS = 16  # that wait or are made: the lane has room for as many
_MOST_APPLIES = 4
_RETRY = timedelta(seconds=10)  # after a decision that failed
_PRICES_HOLD = timedelta(minutes=10)

Change = Callable[[JobRun], tuple[JobRun, Sequence[NewEvent]]]


class Keeper(Protocol):
    """Whoever controls the jobs."""

    def change_mine(self, job_id: str, change: Change) -> JobRun | None:
        """Change a job, if this replica still controls it; None: it does not. Blocks."""

    async def serially(self, work: Callable[[], None]) -> None:
        """Do something in the controller's thread, between two looks."""


@dataclass(slots=True)
class _Steered:
    """What is known of one job."""

    notes: SteeringNotes
    meter: PaceMeter = field(default_factory=PaceMeter)
    first_plan_id: str = ""
    is_steered: bool = False
    due: Due | None = None
    doing: Doing = Doing.NOTHING
    not_before: datetime | None = None  # a decision failed
    priced: datetime | None = None  # when prices were asked for
    priced_pools: frozenset[Pool] = frozenset()  # that had no price when prices were asked for
    pricing: bool = False
    deciding: bool = False
    carrying: bool = False


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
        self._clock, self._outlets = clock, outlets or Outlets()
        self._fleets = self._outlets.fleets
        self._rules = rules or SteeringRules()
        self._up_since = clock()
        self._jobs: dict[str, _Steered] = {}
        self._deciding: set[asyncio.Task[None]] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self._decisions = asyncio.Semaphore(_MOST_DECISIONS)
        self._applies = asyncio.Semaphore(_MOST_APPLIES)
        self._is_stopping = False

    def keep_only(self, job_ids: Set[str]) -> None:
        """Forget jobs that others control by now."""
        for job_id in self._jobs.keys() - job_ids:
            del self._jobs[job_id]

    def forget(self, job_id: str) -> None:
        """Forget a job that is taken anew: others may have steered it since."""
        self._jobs.pop(job_id, None)

    def look(self, job: JobRun, agents: Sequence[AgentRecord], *, now: datetime) -> Looked:
        """Look at a job; what comes of it is the caller's to keep. Blocks."""
        known = self._known(job)
        looked = look_at_fleet(
            job,
            Promise(self._planned.of(job.plan_id), self._planned.of(job.first_plan_id)),
            agents,
            notes=known.notes,
            meter=known.meter,
            rules=self._rules,
            moment=Moment(now, self._up_since),
        )
        known.notes = looked.notes
        known.due = looked.due
        known.first_plan_id = job.first_plan_id
        known.is_steered = looked.notes.memory.time_s is not None
        known.doing = Doing.NOTHING
        if self._fleets is not None:
            known.doing = carry_out.to_do(job, looked.notes.carried, now=now)
        return looked

    def prices(self, job: JobRun) -> Mapping[Pool, float]:
        """Return what one node of each pool that a job ever had costs, by what was seen last."""
        planned = self._planned.of(job.plan_id).prices_usd_per_hour
        return {**planned, **self._known(job).notes.prices_usd_per_hour}

    def kept(self, looked: Looked) -> None:
        """Do what had to wait until a look was kept: tell training. Blocks."""
        advice = self._outlets.advice
        if advice is None:
            return
        for saving in looked.savings:
            advice.checkpoint(
                saving.agent_ids, interval_s=saving.interval_s, seconds_left=saving.seconds_left
            )

    def tell(self, job: JobRun, events: Sequence[NewEvent]) -> None:
        """Tell others what was logged about a job; never waits."""
        tell = self._outlets.tell
        if tell is None or job.course.steer is Steer.OFF:
            return
        for event in events:
            tell(job.job_id, event)

    def course_text(self, job_id: str) -> str:
        """Return what is remembered of a job, to be kept with it."""
        return notes_text(self._jobs[job_id].notes)

    def start_due(self, keeper: Keeper, changed: Callable[[str], None]) -> None:
        """Begin what looks found to be due; on the event loop."""
        now = self._clock()
        for job_id, known in list(self._jobs.items()):
            early = known.not_before is not None and now < known.not_before
            if known.due is not None and not known.deciding and not early:
                known.deciding = True
                self._begin(self._decide(job_id, known, known.due, keeper, changed), self._deciding)
            unpriced = known.notes.unpriced
            is_old = known.priced is None or now - known.priced >= _PRICES_HOLD
            is_wanted = is_old and bool(known.is_steered or unpriced)
            if not known.pricing and (is_wanted or unpriced - known.priced_pools):
                known.pricing, known.priced, known.priced_pools = True, now, unpriced
                self._begin(self._price(job_id, known, keeper), self._deciding)
            if known.doing is not Doing.NOTHING and not known.carrying:
                known.carrying = True
                self._begin(
                    self._carry(job_id, known, known.doing, keeper, changed), self._carrying
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

    def _known(self, job: JobRun) -> _Steered:
        if job.job_id not in self._jobs:
            self._jobs[job.job_id] = _Steered(notes=notes_of(job.course.notes))
        return self._jobs[job.job_id]

    def _begin(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # Decisions

    async def _decide(
        self,
        job_id: str,
        known: _Steered,
        due: Due,
        keeper: Keeper,
        changed: Callable[[str], None],
    ) -> None:
        try:
            async with self._decisions:
                started_s = time.monotonic()
                question = await asyncio.to_thread(self._question, due)
                answer = await self._decider.decide(question)
            took_s = time.monotonic() - started_s
            await keeper.serially(lambda: self._settle(job_id, known, due, answer, keeper, took_s))
            known.not_before = None
        except SpotwrightError as error:
            known.not_before = self._clock() + _RETRY
            _log.warning("job %s: nothing could be decided: %s", job_id, error)
        except Exception:  # of one job; it is asked about again
            known.not_before = self._clock() + _RETRY
            _log.exception("job %s: nothing could be decided", job_id)
        finally:
            known.deciding = False
        changed(job_id)
        self.start_due(keeper, changed)

    async def _price(self, job_id: str, known: _Steered, keeper: Keeper) -> None:
        """Ask what pools cost by now."""
        try:
            async with self._decisions:
                job = await asyncio.to_thread(self._document, known.first_plan_id)
                prices = await self._decider.prices(job)
        except SpotwrightError as error:
            _log.warning("job %s: prices cannot be told: %s", job_id, error)
            return
        finally:
            known.pricing = False

        def keep() -> None:
            both = {**known.notes.prices_usd_per_hour, **prices}
            pools = known.notes.prices_usd_per_hour.keys() | known.notes.unpriced
            seen = {pool: both[pool] for pool in pools if pool in both}
            known.notes = replace(known.notes, prices_usd_per_hour=seen)

        await keeper.serially(keep)

    def _document(self, plan_id: str) -> JobDocument:
        plan = self._plans.plan(plan_id)
        return JobDocument(text=plan.job_text, name=plan.job_path, model=plan.model or None)

    def _question(self, due: Due) -> SteeringQuestion:
        first = self._planned.of(due.job.first_plan_id)
        return SteeringQuestion(
            job=self._document(due.job.first_plan_id),
            now=replace(due.now, prices_usd_per_hour={}),  # who decides has the catalog
            target=first.target,
            deadline_s=first.deadline_s,
            planned_s=first.duration_s,
            forced=due.forced,
            plan_id=f"p-{secrets.token_hex(8)}",
        )

    def _settle(
        self,
        job_id: str,
        known: _Steered,
        due: Due,
        answer: SteeringAnswer,
        keeper: Keeper,
        decision_s: float,
    ) -> None:
        """Keep a decision: the plan first, then the job that runs it."""
        if self._jobs.get(job_id) is not known:
            return  # another replica controls it by now
        planned = self._planned.of(due.job.plan_id)
        if answer.plan is not None and is_another_fleet(answer, planned):
            self._plans.add_plan(answer.plan)
        now = self._clock()

        def change(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
            if job.plan_id != due.job.plan_id:
                return job, ()
            found = settled(
                job, known.notes, due, answer, planned=planned, now=now, decision_s=decision_s
            )
            course = replace(found.job.course, notes=notes_text(found.notes))
            known.notes = found.notes
            return replace(found.job, course=course), found.events

        job = keeper.change_mine(job_id, change)
        known.due = None
        if job is not None and self._fleets is not None:
            known.doing = carry_out.to_do(job, known.notes.carried, now=now)

    # Carrying out

    async def _carry(
        self,
        job_id: str,
        known: _Steered,
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
        known: _Steered,
        doing: Doing,
        keeper: Keeper,
        changed: Callable[[str], None],
    ) -> None:
        note = _Noting(job_id, known, keeper, self._clock)
        plan_id = await note.plan_id()
        if plan_id is None or self._fleets is None:
            return
        if doing is Doing.GIVE_BACK:
            await self._give_back(job_id, self._fleets, note)
            return
        if doing is Doing.APPLY and not await note.noted(
            lambda carried, now: carry_out.started(carried, plan_id, now)
        ):
            return
        changed(job_id)
        try:
            plan = await asyncio.to_thread(self._plans.plan, plan_id)
            variables = await self._decider.variables(plan)
            if doing is Doing.APPLY:
                done = await asyncio.to_thread(
                    self._fleets.apply, job_id, variables, is_wanted=note.asks_for(plan_id)
                )
                step = carry_out.applied if done else carry_out.dropped
                await note.noted(lambda carried, now: step(carried, plan_id, now))
            else:
                path = await asyncio.to_thread(self._fleets.write, job_id, variables)
                await note.noted(
                    lambda carried, now: carry_out.written(carried, plan_id, path, now)
                )
        except SpotwrightError as error:
            problem = str(error)
            _log.warning("job %s: %s failed: %s", job_id, doing, problem)
            await note.noted(
                lambda carried, now: carry_out.failed(
                    carried, plan_id, problem, doing=doing, now=now
                )
            )

    async def _give_back(self, job_id: str, fleets: Fleets, note: "_Noting") -> None:
        plan_id = await note.plan_id()
        try:
            await asyncio.to_thread(fleets.give_back, job_id)
            await note.noted(carry_out.given_back)
        except SpotwrightError as error:
            problem = str(error)
            _log.warning("job %s: its fleet could not be given back: %s", job_id, problem)
            await note.noted(
                lambda carried, now: carry_out.failed(
                    carried, plan_id or "", problem, doing=Doing.GIVE_BACK, now=now
                )
            )


class _Noting:
    """Keeps how far a plan was carried out, while the job is still this replica's."""

    def __init__(
        self, job_id: str, known: _Steered, keeper: Keeper, clock: Callable[[], datetime]
    ) -> None:
        self._job_id, self._known, self._keeper, self._clock = job_id, known, keeper, clock

    async def plan_id(self) -> str | None:
        """Return the plan that the job runs now; None: it is not this replica's any more."""
        found: list[str] = []

        def look() -> None:
            job = self._keeper.change_mine(self._job_id, lambda job: (job, ()))
            if job is not None and job.course.steer is not Steer.OFF:
                found.append(job.plan_id)

        await self._keeper.serially(look)
        return found[0] if found else None

    def asks_for(self, plan_id: str) -> Callable[[], bool]:
        """Return what tells another thread whether the job is this replica's and has that plan."""
        loop = asyncio.get_running_loop()
        return lambda: asyncio.run_coroutine_threadsafe(self.plan_id(), loop).result() == plan_id

    async def noted(self, step: Callable[[Carried, datetime], tuple[Carried, NewEvent]]) -> bool:
        """Keep a step and its event; False: the job is not this replica's any more."""
        done: list[JobRun] = []

        def keep() -> None:
            carried, event = step(self._known.notes.carried, self._clock())

            def change(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
                self._known.notes = replace(self._known.notes, carried=carried)
                course = replace(job.course, notes=notes_text(self._known.notes))
                return replace(job, course=course), [event]

            job = self._keeper.change_mine(self._job_id, change)
            if job is not None:
                done.append(job)

        await self._keeper.serially(keep)
        return bool(done)
