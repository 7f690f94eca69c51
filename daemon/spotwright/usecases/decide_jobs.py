"""Ask what jobs do next, and what their pools cost by now.

One process answers both. Decisions go first: what pools cost is asked for one job after the other,
for each at a moment of its own within ten minutes, and only while no decision is under way.
"""

import asyncio
import secrets
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from spotwright.domain.job_run import JobRun, NewEvent
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument
from spotwright.domain.steering_question import SteeringAnswer, SteeringQuestion
from spotwright.usecases.known_job import Keeper, KnownJob
from spotwright.usecases.look_at_fleet import Due
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.settle_steering import is_another_fleet, settled
from spotwright.usecases.steering_notes import SteeringNotes, notes_text
from spotwright.usecases.steering_ports import Decider
from spotwright.usecases.store_ports import PlanStore

_MOST_DECISIONS = 16  # that wait or are made: the lane has room for as many
_PRICES_HOLD = timedelta(minutes=10)


class Decisions:
    """The questions of a replica, and what becomes of the answers."""

    def __init__(
        self,
        plans: PlanStore,
        planned: PlannedRuns,
        decider: Decider,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._plans, self._planned, self._decider, self._clock = plans, planned, decider, clock
        self._room = asyncio.Semaphore(_MOST_DECISIONS)
        self._one_price = asyncio.Lock()
        self._count = 0  # of decisions, those in line included
        self._none = asyncio.Event()
        self._none.set()

    async def make(self, known: KnownJob, due: Due, keeper: Keeper) -> JobRun | None:
        """Decide about a job and keep that; return the job, None where it is another replica's.

        Raises:
            SpotwrightError: nothing could be decided, or it could not be kept.
        """
        begun = self._clock()
        async with self._before_prices(), self._room:
            question = await asyncio.to_thread(self._question, due)
            answer = await self._decider.decide(question)
        took_s = max(0.0, (self._clock() - begun).total_seconds())
        found: list[JobRun | None] = []
        await keeper.serially(
            lambda: found.append(self._settle(known, due, answer, keeper, decision_s=took_s))
        )
        return found[0]

    def wants_prices(self, known: KnownJob, now: datetime) -> bool:
        """Tell whether it is time to ask what the pools of a job cost; at first it never is.

        A pool of its nodes whose price nobody has told makes it so at once.
        """
        if known.priced is None:
            share = zlib.crc32(known.job_id.encode()) / 2**32
            known.priced = now - (1 - share) * _PRICES_HOLD
        unpriced = known.notes.unpriced
        is_old = now - known.priced >= _PRICES_HOLD
        is_wanted = is_old and bool(known.is_steered or unpriced)
        return not known.pricing and (is_wanted or bool(unpriced - known.priced_pools))

    async def price(self, known: KnownJob, keeper: Keeper) -> None:
        """Ask what the pools of a job cost, or raise SpotwrightError."""
        async with self._one_price:
            await self._none.wait()
            job = await asyncio.to_thread(self._document, known.first_plan_id)
            prices = await self._decider.prices(job)
        await keeper.serially(lambda: _keep_prices(known, prices))

    @asynccontextmanager
    async def _before_prices(self) -> AsyncIterator[None]:
        """Have nobody begin to ask for prices meanwhile."""
        self._count += 1
        self._none.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._none.set()

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
        known: KnownJob,
        due: Due,
        answer: SteeringAnswer,
        keeper: Keeper,
        *,
        decision_s: float,
    ) -> JobRun | None:
        """Keep a decision: the plan first, then the job that runs it."""
        if not known.is_mine:
            return None
        planned = self._planned.of(due.job.plan_id)
        if answer.plan is not None and is_another_fleet(answer, planned):
            self._plans.add_plan(answer.plan)
        now, kept = self._clock(), [known.notes]

        def change(job: JobRun) -> tuple[JobRun, Sequence[NewEvent]]:
            if job.plan_id != due.job.plan_id:
                return job, ()
            found = settled(
                job, known.notes, due, answer, planned=planned, now=now, decision_s=decision_s
            )
            kept.append(found.notes)
            course = replace(found.job.course, notes=notes_text(found.notes))
            return replace(found.job, course=course), found.events

        job = keeper.change_mine(known.job_id, change)
        if job is not None:
            known.notes = kept[-1]
        known.due = None
        return job


def _keep_prices(known: KnownJob, prices: Mapping[Pool, float]) -> None:
    """Remember what is known of pools that the job had, and of those that nobody had priced."""
    seen: SteeringNotes = known.notes
    both = {**seen.prices_usd_per_hour, **prices}
    pools = seen.prices_usd_per_hour.keys() | seen.unpriced
    newer = {pool: both[pool] for pool in pools if pool in both}
    known.notes = replace(seen, prices_usd_per_hour=newer)
