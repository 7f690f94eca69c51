"""The planner of this process. What each answer needs is imported when it is first asked for."""

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from spotwright.cli.extras import needs_extra
from spotwright.cli.fleet_text import fleet_text
from spotwright.cli.sources import Catalogs, Jobs, OpenedJob
from spotwright.domain.errors import BadInputError, NoFeasibleFleetError, NotFoundError
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.domain.plan import Objective, Plan, RunningFleet
from spotwright.domain.questions import (
    Comparison,
    JobDocument,
    NoFleet,
    PlannedFleet,
    PlanQuestion,
    PredictedFleet,
    PredictedTable,
    Rival,
)
from spotwright.usecases.ports import OfferSource

if TYPE_CHECKING:
    from spotwright.domain.job import JobSpec
    from spotwright.planner.problem import Watch

_RIVALS_TIME_LIMIT_S = 10.0


class Looking(Protocol):
    """Looks on while a search runs, and may end it."""

    ended_early: bool

    @property
    def watch(self) -> "Watch":
        """What the search is given."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


Look = Callable[[Objective, float], Looking]  # what is minimised, seconds


class InProcessPlanner:
    """Answers by itself, with the catalog files of this machine."""

    def __init__(self, jobs: Jobs, catalogs: Catalogs, *, look: Look) -> None:
        """Answer about jobs; `look` says who looks on at a search."""
        self._jobs, self._catalogs, self._look = jobs, catalogs, look
        self._planned: dict[str, tuple[JobDocument, PlannedFleet]] = {}

    def predict(self, job: JobDocument, fleet: str) -> PredictedFleet:
        """Predict what a fleet, written as an expression, does with a job."""
        opened = self._jobs.open(job)
        with needs_extra("plan", "predict"):
            from spotwright.usecases.predict_fleet import predict_fleet  # noqa: PLC0415
        prediction = predict_fleet(opened.job, fleet, opened.catalog, now=datetime.now(UTC))
        offers = [group.offer for group in prediction.fleet.nodes if group.offer]
        observed = opened.catalog.oldest_price_time(offers)
        return PredictedFleet(prediction=prediction, catalog_time=observed)

    def predict_configurations(
        self, job: JobDocument, csv: str, *, csv_name: str
    ) -> PredictedTable:
        """Predict each row of a measurements file, given as its text and name."""
        opened = self._jobs.open(job)
        with needs_extra("plan", "predict"):
            from spotwright.adapters.measurements.read import (  # noqa: PLC0415
                configurations,
                parse_table,
            )
            from spotwright.usecases.predict_configurations import (  # noqa: PLC0415
                predict_configurations,
            )
        rows = configurations(parse_table(csv, path=csv_name))
        predictions, warnings = predict_configurations(
            rows, opened.jobs, opened.catalog, path=csv_name
        )
        return PredictedTable(rows=predictions, warnings=warnings)

    def compare_fleets(self, job: JobDocument, fleets: Sequence[str]) -> Comparison:
        """Predict several fleets and tell which of them will do."""
        opened = self._jobs.open(job)
        with needs_extra("plan", "compare"):
            from spotwright.usecases.compare_fleets import compare_fleets  # noqa: PLC0415
        compared = compare_fleets(opened.job, fleets, opened.catalog, now=datetime.now(UTC))
        nodes = [group for each in compared for group in each.prediction.fleet.nodes]
        observed = opened.catalog.oldest_price_time(g.offer for g in nodes if g.offer)
        return Comparison(fleets=compared, catalog_time=observed)

    def create_plan(self, job: JobDocument, question: PlanQuestion) -> PlannedFleet | NoFleet:
        """Find the fleet to rent."""
        opened = self._jobs.open(job)
        spec, source, now = question.goal.of(opened.job), opened.catalog, datetime.now(UTC)
        try:
            running = _running(spec, source, question)
            plan, ended_early = self._searched(spec, source, question, running, now)
        except NoFeasibleFleetError as error:
            return NoFleet(
                error=error,
                job_name=spec.name,
                objective=question.objective,
                catalog_time=source.catalog_time,
            )
        # Whoever ends a search wants no more of them.
        wanted = question.with_rivals and not ended_early
        planned = PlannedFleet(
            plan=plan,
            job_name=spec.name,
            target=spec.goal.target,
            deadline_s=spec.goal.deadline_s,
            rivals=self._rivals(spec, source, running, now) if wanted else (),
            ended_early=ended_early,
            plan_id=_plan_id(plan),
        )
        self._planned[planned.plan_id] = job, planned
        return planned

    def render_tfvars(self, plan_id: str) -> str:
        """Return the Terraform variables that rent the fleet of a plan made here."""
        if plan_id not in self._planned:
            raise NotFoundError("plan", plan_id)
        return self.tfvars_of(*self._planned[plan_id])

    def tfvars_of(self, job: JobDocument, planned: PlannedFleet) -> str:
        """Return the Terraform variables that rent the fleet of a plan."""
        from spotwright.adapters.terraform.variables import tfvars_json  # noqa: PLC0415

        opened = self._jobs.open(job)
        return tfvars_json(
            planned.plan,
            fleet_name=planned.job_name,
            plan_id=planned.plan_id,
            max_price_usd_per_hour=lambda offer: _max_price_usd_per_hour(offer, opened),
        )

    def catalog(self, cloud: Cloud) -> OfferSource:
        """Return the offers that it plans with."""
        return self._catalogs.of(cloud)

    def _searched(
        self,
        job: "JobSpec",
        source: OfferSource,
        question: PlanQuestion,
        running: RunningFleet,
        now: datetime,
    ) -> tuple[Plan, bool]:
        """Search while we are let; second, whether that was too short."""
        with needs_extra("plan", "plan"):
            from spotwright.usecases.create_plan import PlanOptions, create_plan  # noqa: PLC0415
        options = PlanOptions(
            objective=question.objective,
            gap_fraction=question.gap_fraction,
            running=running,
            with_frontier=question.with_frontier,
            without_reasons=question.without_reasons,
        )
        with self._look(question.objective, question.time_limit_s) as looking:
            plan = create_plan(
                job, source, options=options, watch=looking.watch, clock=time.monotonic, now=now
            )
        return plan, looking.ended_early

    def _rivals(
        self, job: "JobSpec", source: OfferSource, running: RunningFleet, now: datetime
    ) -> tuple[Rival, ...]:
        from spotwright.usecases.compare_rivals import compare_rivals  # noqa: PLC0415

        with self._look(Objective.COST, _RIVALS_TIME_LIMIT_S) as looking:
            found = compare_rivals(job, source, running=running, watch=looking.watch, now=now)
        return tuple(
            Rival(
                name=result.name,
                cost_usd=result.cost_usd,
                duration_s=result.duration_s,
                meets_goal=result.fleet is not None,
                note=fleet_text(result.fleet)
                if result.fleet
                else "finds no fleet that meets the goal",
            )
            for result in found
        )


def _running(job: "JobSpec", source: OfferSource, question: PlanQuestion) -> RunningFleet:
    if question.existing_fleet is None:
        return RunningFleet()
    from spotwright.usecases.running_fleet import running_fleet  # noqa: PLC0415

    try:
        return running_fleet(question.existing_fleet, job, source, switching_s=question.switching_s)
    except BadInputError as error:
        raise BadInputError(f"--existing: {error}") from error


def _plan_id(plan: Plan) -> str:
    """Return a name that is the same for the same plan, however long it took and is explained."""
    bare = replace(plan, solve_s=0.0, why=(), savings=(), alternatives=(), frontier=())
    content = repr(bare).encode()
    return f"p-{hashlib.sha256(content).hexdigest()[:16]}"


def _max_price_usd_per_hour(offer: Offer, opened: OpenedJob) -> float:
    """Return the job's ceiling for a type; without one, what the type costs on demand there."""
    name = offer.instance_type.name
    ceiling = opened.job.limits.max_price_by_type_usd_per_hour.get(name)
    if ceiling is not None:
        return ceiling
    on_demand = opened.catalog.offers(
        OfferQuery(
            cloud=offer.instance_type.cloud,
            instance_types=frozenset({name}),
            regions=frozenset({offer.region}),
            markets=frozenset({Market.ON_DEMAND}),
        )
    )
    there = [o.price_usd_per_hour for o in on_demand if o.zone == offer.zone]
    dearest = max((o.price_usd_per_hour for o in on_demand), default=-math.inf)
    return max(there[0] if there else dearest, offer.price_usd_per_hour)
