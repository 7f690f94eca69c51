"""Decide what a running job does next, and plan what is left of it on the fleet that is chosen."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from spotwright.domain.fleet import Fleet, Role
from spotwright.domain.fleet_expression import NodeTerm, format_terms
from spotwright.domain.job import Goal, JobSpec, Target, TargetKind
from spotwright.domain.offer import Market, Pool
from spotwright.domain.plan import Objective, Plan, PlanStatus, RunningFleet
from spotwright.domain.prediction import Prediction
from spotwright.domain.questions import PlannedFleet
from spotwright.domain.steering import JobNow
from spotwright.domain.steering_question import JobFacts, Replanned, SteeringQuestion
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.interruption import checkpoint_s
from spotwright.perfmodel.predict import predict
from spotwright.usecases.fleet_choices import FleetChoices
from spotwright.usecases.list_offers import server_offers, worker_offers
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.predict_fleet import predict_fleet
from spotwright.usecases.resolve_fleet import resolve_fleet
from spotwright.usecases.running_fleet import fleet_changes
from spotwright.usecases.steer_shrunk import steer
from spotwright.usecases.steering_rules import SteeringRules

_LEAST_LEFT = 1e-6  # of a goal: a plan of nothing is none


class Replanner:
    """Decides about one job, with a market that stays as it is."""

    def __init__(self, job: JobSpec, source: OfferSource, *, now: datetime) -> None:
        """Prepare for questions about a job; `now` is for pools that are excluded for a while."""
        self._job, self._source, self._now = job, source, now
        self._choices = FleetChoices(job, source, now=now)
        self._facts = job_facts(job, source, now=now)

    @property
    def prices_usd_per_hour(self) -> dict[Pool, float]:
        """What one node of each pool costs: granted ones may be in others than the job allows."""
        job = _unrestricted(self._job)
        job = replace(job, limits=replace(job.limits, markets=frozenset(Market)))
        return {
            offer.pool: offer.price_usd_per_hour
            for offers in (worker_offers, server_offers)
            for offer in offers(job, self._source, now=self._now)
        }

    def decided(
        self, question: SteeringQuestion, *, rules: SteeringRules, clock: Callable[[], float]
    ) -> Replanned:
        """Answer a question about the job."""
        started_s = clock()
        goal = _goal(self._job.goal, question)
        steering = steer(
            question.now,
            self._choices,
            goal=goal,
            planned_s=question.planned_s,
            rules=rules,
            forced=question.forced,
        )
        text = fleet_expression(steering.workers, steering.servers)
        planned = None
        if steering.asks_anew(question.now.asked, question.now.servers):
            job = replace(self._job, goal=goal)
            plan = self._plan(job, text, question.now, steering.reason)
            planned = PlannedFleet(
                plan=replace(plan, solve_s=clock() - started_s),
                job_name=job.name,
                target=_target_left(goal.target, question.now),
                deadline_s=_deadline_left(goal, question.now),
                plan_id=question.plan_id,
            )
        return Replanned(steering=steering, facts=self._facts, fleet_text=text, planned=planned)

    def _plan(self, job: JobSpec, text: str, now: JobNow, reason: str) -> Plan:
        """Return the plan of what is left."""
        fleet = resolve_fleet(text, _unrestricted(job), self._source)
        prediction = self._prediction(_rest_of(job, now, self._steps_left(job, fleet, now)), text)
        cost_usd = prediction.cost_usd.mid if prediction.cost_usd else 0.0
        running = RunningFleet(nodes=dict(now.staying), servers=dict(now.servers))
        return Plan(
            status=PlanStatus.FEASIBLE,
            objective=Objective.COST,
            prediction=prediction,
            cost_usd=cost_usd,
            lower_bound_usd=0.0,
            lower_bound_s=None,
            deadline_probability=prediction.deadline_probability,
            why=(reason,),
            savings=(),
            alternatives=(),
            frontier=(),
            changes=fleet_changes(running, fleet),
            solve_s=0.0,
            catalog_time=self._source.oldest_price_time(g.offer for g in fleet.nodes if g.offer),
        )

    def _steps_left(self, job: JobSpec, fleet: Fleet, now: JobNow) -> float | None:
        """Return the updates that a loss is still away; None for goals that are counted."""
        if job.goal.target.kind is not TargetKind.LOSS:
            return None
        whole = predict(job, fleet, self._source.gpu)
        return whole.steps_to_goal * max(1 - now.done_fraction, _LEAST_LEFT)

    def _prediction(self, job: JobSpec, text: str) -> Prediction:
        return predict_fleet(_unrestricted(job), text, self._source, now=self._now)


def job_facts(job: JobSpec, source: OfferSource, *, now: datetime) -> JobFacts:
    """Return what a controller must know of a job file that it cannot read itself."""
    offers = worker_offers(job, source, now=now)
    return JobFacts(
        spot_pools=frozenset(o.pool for o in offers if o.market is Market.SPOT),
        budget_usd=job.goal.budget_usd,
        checkpoint_s=checkpoint_s(job.workload),
        stops_as_one=job.workload.strategy is not Strategy.ASP_PS,
    )


def fleet_expression(workers: Mapping[Pool, int], servers: Mapping[Pool, int]) -> str:
    """Return a fleet as `--fleet` reads it; empty for none."""
    terms = tuple(
        NodeTerm(
            role=role,
            type_name=pool.instance_type,
            node_count=count,
            zone=pool.zone,
            market=pool.market,
        )
        for role, nodes in ((Role.WORKER, workers), (Role.PS, servers))
        for pool, count in sorted(nodes.items())
        if count
    )
    return format_terms(terms) if terms else ""


def _goal(own: Goal, question: SteeringQuestion) -> Goal:
    """Return what was promised: the file's goal, with what stood in its place."""
    return replace(own, target=question.target or own.target, deadline_s=question.deadline_s)


def _rest_of(job: JobSpec, now: JobNow, steps_left: float | None) -> JobSpec:
    """Return a job that is as much as is left of another."""
    goal = job.goal
    target = _target_left(goal.target, now)
    if steps_left is not None:
        target = Target(kind=TargetKind.STEPS, value=steps_left)
    budget_usd = goal.budget_usd
    return replace(
        job,
        goal=replace(
            goal,
            target=target,
            deadline_s=_deadline_left(goal, now),
            budget_usd=None if budget_usd is None else max(budget_usd - now.spent_usd, 0.01),
        ),
    )


def _target_left(target: Target, now: JobNow) -> Target:
    """Return the target of the rest; a loss is the same."""
    if target.kind is TargetKind.LOSS:
        return target
    return replace(target, value=target.value * max(1 - now.done_fraction, _LEAST_LEFT))


def _deadline_left(goal: Goal, now: JobNow) -> float | None:
    return None if goal.deadline_s is None else max(goal.deadline_s - now.time_s, 1.0)


def _unrestricted(job: JobSpec) -> JobSpec:
    """Return the job without exclusions: what runs may stand in a pool that is excluded by now."""
    return replace(job, limits=replace(job.limits, excluded_pools={}))
