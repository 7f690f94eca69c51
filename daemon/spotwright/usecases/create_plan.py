"""From a job and a market to a plan: the fleet, the proof, and why."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from spotwright.domain.errors import (
    BadInputError,
    NoFeasibleFleetError,
    SolverGaveUpError,
    SpotwrightError,
    UnknownNameError,
)
from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec
from spotwright.domain.plan import (
    Alternative,
    FrontierPoint,
    Objective,
    Plan,
    PlanStatus,
    RunningFleet,
    Saving,
)
from spotwright.domain.prediction import Prediction
from spotwright.domain.units import format_duration, format_usd
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.predict import predict
from spotwright.planner.alternatives import Variant, alternatives
from spotwright.planner.confidence import SureSolution, solve_surely
from spotwright.planner.frontier import frontier
from spotwright.planner.infeasibility import explain_infeasible, less_sure
from spotwright.planner.problem import Problem, Solution, Watch, at_most
from spotwright.planner.savings import Use, savings, uses
from spotwright.planner.solve import solve
from spotwright.usecases.check_offers import check_offers, without_price
from spotwright.usecases.list_offers import server_offers, worker_offers
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.running_fleet import fleet_changes

_BOXES = 2000  # of the search for the cheapest among the fastest


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How to plan."""

    objective: Objective = Objective.COST
    gap_fraction: float = 1e-3
    running: RunningFleet = field(default_factory=RunningFleet)
    with_frontier: bool = False  # cost against time, whatever the objective
    without_reasons: bool = (
        False  # no reasons, savings and alternatives: they take most of the time
    )


def create_plan(
    job: JobSpec,
    source: OfferSource,
    *,
    options: PlanOptions,
    watch: Watch,
    clock: Callable[[], float],
    now: datetime | None = None,
) -> Plan:
    """Plan a job.

    When `watch` ends the search early, the plan is the best fleet found so far: status feasible,
    with the gap that is left.

    Args:
        job: its goal and limits are all kept.
        source: the market.
        options: how to plan.
        watch: who looks on, and may end the search.
        clock: seconds, for `solve_s`.
        now: for pools that cool down.

    Raises:
        NoFeasibleFleetError: proved; says which limits clash and what would help.
        SolverGaveUpError: the search was ended before it found a fleet or a proof.
        BadInputError: the job lacks a fact, or nothing that it allows is on offer.
    """
    started = clock()

    def problem_of(job: JobSpec) -> Problem:
        return _problem(job, source, options, now)

    try:
        problem = problem_of(job)
    except UnknownNameError as error:
        hint = f"; did you mean {error.nearest}?" if error.nearest else ""
        raise BadInputError(f"nobody rents out {error.kind} {error.name}{hint}") from error
    check_offers(problem, source, now=now)
    planned = _Planned(job, problem, problem_of, options, watch)
    plan = planned.plan(planned.solved(), source)
    return replace(plan, solve_s=clock() - started)


class _Planned:
    """One job being planned: what was found, and why."""

    def __init__(
        self,
        job: JobSpec,
        problem: Problem,
        problem_of: Callable[[JobSpec], Problem],
        options: PlanOptions,
        watch: Watch,
    ) -> None:
        self._job, self._problem, self._problem_of = job, problem, problem_of
        self._options, self._watch = options, watch
        time = options.objective is Objective.TIME
        self._objective = Objective.TIME if time else Objective.COST
        self._least_s: float | None = None

    def solved(self) -> SureSolution:
        """Search, and say why where there is nothing."""
        sure = self._surely(self._problem, self._objective)
        if sure.solution.fleet is not None and self._objective is Objective.TIME:
            return self._cheapest_as_fast(sure)
        if sure.solution.fleet is not None:
            return sure
        raise self._nothing(sure)

    def _nothing(self, sure: SureSolution) -> SpotwrightError:
        """Say why there is no fleet, or that nothing is known."""
        best = sure.best_probability
        if not sure.solution.complete and (best is None or self._watch.stopped()):
            return SolverGaveUpError(_gave_up(best))
        clash = explain_infeasible(self._job, self._problem_of, self._watch)
        clashes, changes = (*self._kept_servers(), *clash.clashes), clash.changes
        if best is not None:
            asked = self._job.goal.confidence_fraction
            found = f"of the fleets tried, the surest keeps the deadline with {best:.1%}"
            clashes = (f"goal.confidence is {asked:.1%}; {found}", *clashes)
            less = less_sure(self._job, self._problem_of, self._watch, best=best)
            changes = (*changes, *([less] if less else []))
        return NoFeasibleFleetError(
            clashes=clashes, changes=changes, together=clash.together, proved=best is None
        )

    def _kept_servers(self) -> Iterator[str]:
        """Say so where only the servers that run, which are kept, stand in the way."""
        if self._options.running.servers:
            running = replace(self._options.running, servers={})
            free = replace(self._problem, running=running)
            if self._surely(free, self._objective).solution.fleet is not None:
                yield (
                    "the parameter servers that run are kept, and no workers suit them; leave "
                    "them out of the fleet that runs to have them planned anew"
                )

    def plan(self, sure: SureSolution, source: OfferSource) -> Plan:
        """Tell what was found, and why."""
        solution, fleet = sure.solution, sure.solution.fleet
        assert fleet is not None
        prediction = self._noted(self._predicted(fleet), source)
        observed = source.oldest_price_time(g.offer for g in fleet.nodes if g.offer)
        plan = Plan(
            status=PlanStatus.OPTIMAL if solution.complete else PlanStatus.FEASIBLE,
            objective=self._options.objective,
            prediction=prediction,
            cost_usd=solution.cost_usd,
            lower_bound_usd=min(solution.lower_bound, solution.cost_usd),
            lower_bound_s=self._least_s,
            deadline_probability=sure.deadline_probability,
            why=(),
            savings=(),
            alternatives=(),
            frontier=tuple(self._frontier(fleet)),
            changes=fleet_changes(self._options.running, fleet),
            solve_s=0.0,  # not known yet
            catalog_time=observed,
        )
        return plan if self._options.without_reasons else self._explained(plan, solution, fleet)

    def _explained(self, plan: Plan, solution: Solution, fleet: Fleet) -> Plan:
        """Add what binds, what a looser limit saves, and the best of other kinds of fleets."""
        candidates = self._may_bind(solution, fleet)
        saved = self._savings(solution, fleet, candidates)
        if self._objective is Objective.TIME:
            binding = [use for use in candidates if use.is_spent]
        else:
            binding = [use for use in candidates if any(s.limit == use.knob.limit for s in saved)]
        others = self._alternatives(fleet)
        return replace(
            plan,
            why=tuple(self._why(solution, plan.prediction, binding, others)),
            savings=tuple(saved),
            alternatives=tuple(self._alternative(other, solution) for other in others),
        )

    def _surely(
        self, problem: Problem, objective: Objective, start: Sequence[Fleet] = ()
    ) -> SureSolution:
        return solve_surely(
            problem,
            objective=objective,
            gap_fraction=self._options.gap_fraction,
            watch=self._watch,
            start=start,
        )

    def _cheapest_as_fast(self, fastest: SureSolution) -> SureSolution:
        """Return the cheapest of the fleets that are as fast; its bound is one of cost."""
        solution = fastest.solution
        assert solution.fleet is not None
        self._least_s = solution.lower_bound
        goal = replace(self._job.goal, deadline_s=solution.duration_s * (1 + 1e-9))
        as_fast = replace(self._problem, job=replace(self._job, goal=goal))
        found = solve(
            as_fast,
            gap_fraction=self._options.gap_fraction,
            watch=at_most(self._watch, _BOXES),
            start=(solution.fleet,),
        )
        chance = fastest.deadline_probability
        if found.fleet is not None and self._job.goal.deadline_s is not None:
            chance = self._predicted(found.fleet).deadline_probability
        unsure = chance is not None and chance < self._job.goal.confidence_fraction
        if found.fleet is None or unsure:
            return replace(fastest, solution=replace(solution, lower_bound=found.lower_bound))
        # The time is what is minimised, and proved; lower_bound_usd tells of the cost.
        cheapest = replace(found, complete=solution.complete)
        return replace(fastest, solution=cheapest, deadline_probability=chance)

    def _may_bind(self, solution: Solution, fleet: Fleet) -> list[Use]:
        used = uses(self._job, fleet, cost_usd=solution.cost_usd, duration_s=solution.duration_s)
        return [use for use in used if use.may_bind]

    def _alternatives(self, fleet: Fleet) -> list[Variant]:
        return alternatives(
            self._problem,
            fleet,
            problem_of=self._problem_of,
            objective=self._objective,
            watch=self._watch,
        )

    def _savings(self, solution: Solution, fleet: Fleet, uses: Sequence[Use]) -> list[Saving]:
        if self._objective is Objective.TIME:
            return []
        return savings(
            self._problem_of,
            uses,
            fleet=fleet,
            cost_usd=solution.cost_usd,
            watch=self._watch,
        )

    def _alternative(self, other: Variant, chosen: Solution) -> Alternative:
        assert other.solution.fleet is not None
        return Alternative(
            label=other.label,
            prediction=self._predicted(other.solution.fleet),
            cost_usd=other.solution.cost_usd,
            gives_up=_difference(other.solution, chosen),
        )

    def _why(
        self,
        solution: Solution,
        prediction: Prediction,
        binding: Sequence[Use],
        others: Sequence[Variant],
    ) -> Iterator[str]:
        yield from (use.text for use in binding)
        if self._watch.stopped():
            yield "what limits and other kinds of fleets would change was not examined to the end"
        elif not binding and self._objective is Objective.COST:
            yield "a quarter more of any limit would save nothing"
        if others:
            first = others[0]
            yield f"runner-up ({first.label}): {_difference(first.solution, solution)}"
        elif not self._watch.stopped():
            yield "no fleet of another kind meets the goal"
        share = _share(prediction)
        yield f"bottleneck: {prediction.bottleneck.replace('_', ' ')}, {share:.0%} of a step"
        if not solution.complete and self._watch.stopped():
            yield "the proof is not complete: something better may exist within the gap"
        elif not solution.complete:
            yield "the bound is that of expected durations: it does not count the confidence"

    def _frontier(self, fleet: Fleet) -> Iterator[FrontierPoint]:
        if self._options.objective is not Objective.PARETO and not self._options.with_frontier:
            return
        for deadline_s, point in frontier(
            self._problem,
            gap_fraction=self._options.gap_fraction,
            watch=self._watch,
            start=(fleet,),
        ):
            assert point.fleet is not None
            yield FrontierPoint(
                deadline_s=deadline_s,
                prediction=self._predicted(point.fleet),
                cost_usd=point.cost_usd,
                lower_bound_usd=point.lower_bound,
            )

    def _noted(self, prediction: Prediction, source: OfferSource) -> Prediction:
        """Add what the planner had to leave out."""
        left_out = [f"{text}: it was left out" for text in without_price(self._job, source)]
        return replace(prediction, notes=(*prediction.notes, *left_out))

    def _predicted(self, fleet: Fleet) -> Prediction:
        return predict(self._job, fleet, self._problem.gpu_facts)


def _problem(
    job: JobSpec, source: OfferSource, options: PlanOptions, now: datetime | None
) -> Problem:
    serverless = job.workload.strategy is Strategy.SERVERLESS
    return Problem(
        job=job,
        worker_offers=() if serverless else worker_offers(job, source, now=now),
        server_offers=server_offers(job, source, now=now),
        gpu_facts=source.gpu,
        running=options.running,
    )


def _gave_up(best_probability: float | None) -> str:
    found = "a fleet"
    if best_probability is not None:
        found = f"a fleet that is sure enough (the best so far: {best_probability:.1%})"
    return (
        f"the search was ended before it found {found}, or a proof that there is none; "
        "give it more time with --time-limit"
    )


def _difference(other: Solution, chosen: Solution) -> str:
    """Say what another fleet gives up, or gains, against the one chosen."""
    parts = []
    more = other.cost_usd - chosen.cost_usd
    if abs(more) > 1e-6 * chosen.cost_usd:
        word = "more" if more > 0 else "less"
        parts.append(f"{format_usd(abs(more))} {word} ({more / chosen.cost_usd:+.1%})")
    later = other.duration_s - chosen.duration_s
    if abs(later) > 1e-3 * chosen.duration_s:
        word = "later" if later > 0 else "sooner"
        parts.append(f"{format_duration(abs(later))} {word}")
    return ", ".join(parts) or "nothing: it is as good"


def _share(prediction: Prediction) -> float:
    """Return the part of a step that the bottleneck takes."""
    spent = sum(g.terms.by_name()[prediction.bottleneck] for g in prediction.groups)
    return spent / sum(g.terms.total_s for g in prediction.groups)
