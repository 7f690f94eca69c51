"""Replicas that steer a job on one store, with the real planner, a clock, and clouds to play."""

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from spotwright.adapters.grpc.messages.plan import planned_to_proto
from spotwright.adapters.grpc.messages.planned_run import read_planned_run
from spotwright.adapters.grpc.messages.steering import (
    answer_of,
    question_of,
    question_text,
    reply_text,
)
from spotwright.adapters.jobfile.read import parse_job
from spotwright.domain.errors import OutsideWorldError, StoreUnavailableError, TerraformError
from spotwright.domain.job_run import (
    Event,
    JobCourse,
    JobRun,
    JobState,
    NewEvent,
    PlanRecord,
    Progress,
    Steer,
)
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument
from spotwright.domain.steering import JobNow
from spotwright.domain.steering_question import SteeringAnswer, SteeringQuestion
from spotwright.domain.telemetry import AgentFacts, AgentNotice, AgentRecord
from spotwright.usecases.control_jobs import ControlTimes, JobControl
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.replan_job import Replanner
from spotwright.usecases.steer_jobs import JobSteering
from spotwright.usecases.steering_ports import Applied, Outlets
from spotwright.usecases.steering_rules import SteeringRules
from tests.cli.small_job import small_job
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_job import catalog
from tests.usecases.example_job_run import after, agent_record, job_run, plan_record

TIMES = ControlTimes(period_s=5.0, lease_ttl_s=15.0)
DEADLINE_S = 60 * 3600.0
JOB = "job-0"


@cache
def job_document(folder: Path) -> JobDocument:
    return JobDocument(text=small_job(folder).read_text(encoding="utf-8"))


class DirectDecider:
    """Decides in this process; `held` keeps answers back, as when a process is slow."""

    def __init__(self, source: OfferSource, clock: Callable[[], datetime]) -> None:
        self._source, self._clock = source, clock
        self.held = asyncio.Event()
        self.held.set()
        self.asked: list[SteeringQuestion] = []
        self.dearer = 1.0  # than the catalog was when the plan was made
        self.failure: Exception | None = None  # of every decision
        self.priced: list[datetime] = []  # when prices were asked for
        self.prices_held = asyncio.Event()
        self.prices_held.set()

    async def decide(self, question: SteeringQuestion) -> SteeringAnswer:
        self.asked.append(question)
        await self.held.wait()
        if self.failure is not None:
            raise self.failure
        question = question_of(question_text(question))  # as it comes to another process
        spec = parse_job(question.job.text, path="job.yaml").of_model(None)
        replanner = Replanner(spec, self._source, now=self._clock())
        found = replanner.decided(question, rules=SteeringRules(), clock=lambda: 0.0)
        return answer_of(reply_text(found), question.job, now=self._clock())

    async def prices(self, job: JobDocument) -> dict[Pool, float]:
        self.priced.append(self._clock())
        await self.prices_held.wait()
        spec = parse_job(job.text, path="job.yaml").of_model(None)
        own = Replanner(spec, self._source, now=self._clock()).prices_usd_per_hour
        return {pool: self.dearer * usd for pool, usd in own.items()}

    async def variables(self, plan: PlanRecord) -> str:
        return f"variables of {plan.plan_id}"


@dataclass
class CloudAccount:
    """Where Terraform rents; it may fail, or never come back."""

    applied: list[str] = field(default_factory=list)
    given_back: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    going: list[tuple[str, ...]] = field(default_factory=list)  # as each apply was told
    refusal: str = ""  # to end nodes by name
    replaced: list[str] = field(default_factory=list)
    failures_left: int = 0
    failure: Exception = field(default_factory=lambda: TerraformError("half of it is there"))
    hangs: bool = False  # the next apply goes on only when it is released
    begun: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def write(self, job_id: str, variables: str) -> str:
        self.written.append(variables)
        return f"/fleets/{job_id}"

    def give_back(self, job_id: str) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise self.failure
        self.given_back.append(job_id)

    def replace_nodes(self, job_id: str, node_ids: Collection[str]) -> tuple[str, ...]:
        if self.refusal:
            raise OutsideWorldError(self.refusal)
        running = tuple(node_id for node_id in node_ids if node_id not in self.replaced)
        self.replaced += running
        return running

    def apply(
        self,
        job_id: str,
        variables: str,
        *,
        is_wanted: Callable[[], bool],
        going: Sequence[str] = (),
    ) -> Applied | None:
        self.begun.set()
        if self.hangs:
            self.hangs = False
            self.released.wait(30)
        if not is_wanted():
            return None
        self.applied.append(variables)
        self.going.append(tuple(going))
        if self.failures_left:
            self.failures_left -= 1
            raise self.failure
        return Applied(ended=() if self.refusal else tuple(going), problem=self.refusal)


@dataclass
class Told:
    """What training was told, and whoever else listens."""

    saved: list[tuple[tuple[str, ...], float | None]] = field(default_factory=list)
    intervals_s: list[float] = field(default_factory=list)
    advised: list[tuple[str, ...]] = field(default_factory=list)  # of an interval
    failures_left: int = 0  # of a store that queues it
    posted: list[NewEvent] = field(default_factory=list)

    def post(self, _: str, event: NewEvent) -> None:
        self.posted.append(event)

    def checkpoint(
        self, agent_ids: Collection[str], *, interval_s: float | None, seconds_left: float | None
    ) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise StoreUnavailableError("no command can be queued")
        if interval_s is not None:
            self.intervals_s.append(interval_s)
            self.advised.append(tuple(agent_ids))
        else:
            self.saved.append((tuple(agent_ids), seconds_left))


class SteeredCluster:
    """One job on spot nodes, steered by as many replicas as a test starts."""

    def __init__(
        self,
        folder: Path,
        *,
        steer: Steer = Steer.APPLY,
        source: OfferSource | None = None,
        goal: str = "",
    ) -> None:
        self.now_s = 0.0
        self.source = source or catalog()
        self.store = MemoryJobStore(clock_s=lambda: self.now_s)
        self.cloud, self.told = CloudAccount(), Told()
        self.document = job_document(folder)
        if goal:  # one more line of it
            text = self.document.text.replace("\ngoal:\n", f"\ngoal:\n  {goal}\n")
            self.document = JobDocument(text=text)
        self.planned = PlannedRuns(self.store, read_planned_run)
        self.steps = self._keep_plan()
        self.steer = steer
        self.pool = next(iter(self.planned.of("plan-1").workers))
        self.add_job(JOB, "agent")

    def add_job(self, job_id: str, agents: str) -> None:
        """Run another job on the same plan, with agents of its own."""
        run = replace(
            job_run(job_id, state=JobState.RUNNING),
            progress=Progress(steps=0.0),
            progress_fraction=0.0,
            course=JobCourse(steer=self.steer, is_told=True),
        )
        self.store.add_job(run, [])
        for number in range(sum(self.planned.of("plan-1").workers.values())):
            self.add_agent(f"{agents}-{number}", job_id=job_id)

    def _keep_plan(self) -> float:
        """Keep a plan of three spot nodes; return its steps."""
        spec = parse_job(self.document.text, path="job.yaml").of_model(None)
        pool = Pool.parse("g4dn.xlarge@use1-az6/spot")
        question = SteeringQuestion(
            job=self.document,
            now=JobNow(time_s=0.0, done_fraction=0.0, spent_usd=0.0, staying={}, down=frozenset()),
            target=None,
            deadline_s=DEADLINE_S,
            planned_s=DEADLINE_S,
            forced=True,
            plan_id="plan-1",
        )
        replanner = Replanner(spec, catalog(), now=after(0))
        found = replanner.decided(question, rules=SteeringRules(), clock=lambda: 0.0)
        assert found.planned is not None
        assert found.steering.workers == {pool: 3}
        document = planned_to_proto(found.planned).SerializeToString()
        record = replace(plan_record(document=document), job_text=self.document.text)
        self.store.add_plan(record)
        return found.planned.plan.prediction.steps_to_goal

    def add_agent(
        self, agent_id: str, *, instance_id: str = "", pool: Pool | None = None, job_id: str = JOB
    ) -> None:
        where = pool or self.pool
        facts = AgentFacts(
            agent_id=agent_id,
            boot_id="boot",
            job_id=job_id,
            instance_id=instance_id or f"i-{agent_id}",
            instance_type=where.instance_type,
            zone=where.zone,
            market=str(where.market),
        )
        self.change(agent_id, facts=facts, record=agent_record(agent_id))

    def change(self, agent_id: str, record: AgentRecord | None = None, **changes: object) -> None:
        known = record or self.store.agent_records[agent_id]
        self.store.agent_records[agent_id] = replace(known, **changes)  # type: ignore[arg-type]

    def notice(self, agent_id: str, *, kind: str = "interruption") -> None:
        now = after(self.now_s)
        self.change(
            agent_id,
            notice=AgentNotice(
                kind=kind,
                time=now,
                deadline=now + timedelta(seconds=120),
                source="aws",
                detail="",
            ),
        )

    def not_begun(self) -> None:
        """Have training not make its first step."""
        course = self.store.job(JOB).course

        def change(job: JobRun) -> tuple[JobRun, list[NewEvent]]:
            return replace(job_run(JOB), course=course, controller=job.controller), []

        self.store.change_job(JOB, change)

    def replica(self, name: str, times: ControlTimes = TIMES) -> "Replica":
        return Replica(self, name, times)

    async def let_pass(self, seconds: float, *replicas: "Replica") -> None:
        """Let time pass; agents that are not told to be silent go on sending."""
        for _ in range(int(seconds / TIMES.period_s)):
            self.now_s += TIMES.period_s
            for agent_id, record in self.store.agent_records.items():
                if record.session_id:
                    self.change(agent_id, last_seen=after(self.now_s))
            for replica in replicas:
                await replica.look()

    def events(self, kind: str) -> list[Event]:
        return [event for event in self.store.events(JOB, limit=1000) if event.kind == kind]


class Replica:
    """One daemon's controller."""

    def __init__(self, cluster: SteeredCluster, name: str, times: ControlTimes) -> None:
        def clock() -> datetime:
            return after(cluster.now_s)

        self.decider = DirectDecider(cluster.source, clock)
        self.steering = JobSteering(
            cluster.store,
            cluster.planned,
            self.decider,
            clock=clock,
            outlets=Outlets(fleets=cluster.cloud, advice=cluster.told, tell=cluster.told.post),
        )
        self.control = JobControl(
            cluster.store,
            cluster.planned,
            replica=name,
            clock=clock,
            times=times,
            steering=self.steering,
        )

    async def look(self) -> None:
        await self.control.look()
        if self.decider.held.is_set():
            await self.steering.wait()
        else:
            await asyncio.sleep(0.05)
