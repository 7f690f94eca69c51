"""What `spotwright plan` does with its flags: search, print, and write the report."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from spotwright.adapters.report.page import render_report
from spotwright.cli.fleet_text import fleet_text
from spotwright.cli.plan import Asked
from spotwright.cli.plan_json import infeasible_json, plan_json
from spotwright.cli.plan_view import gap_text, print_plan
from spotwright.cli.search_watch import SearchWatch
from spotwright.cli.sources import age_text
from spotwright.cli.terminal import note, print_json, write_text
from spotwright.domain.errors import BadInputError, NoFeasibleFleetError
from spotwright.domain.job import JobSpec
from spotwright.domain.plan import Objective, Plan, PlanStatus, RunningFleet
from spotwright.domain.questions import Rival
from spotwright.domain.units import format_duration, format_usd
from spotwright.planner.baselines.result import BaselineResult
from spotwright.planner.problem import Watch
from spotwright.usecases.compare_rivals import compare_rivals
from spotwright.usecases.create_plan import PlanOptions, create_plan
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.running_fleet import running_fleet

_RIVALS_TIME_LIMIT_S = 10.0


def plan_job(job: JobSpec, source: OfferSource, asked: Asked) -> None:
    """Plan a job and tell the plan in the way that was asked for."""
    now = datetime.now(UTC)
    running = _running(job, source, asked)
    try:
        plan, ended_early = _searched(job, source, asked, running, now)
    except NoFeasibleFleetError as error:
        if asked.as_json:
            told = infeasible_json(
                error,
                job_name=job.name,
                objective=asked.objective,
                catalog_time=source.catalog_time,
            )
            print_json(told)
        raise
    _print(plan, job, as_json=asked.as_json)
    if asked.report is not None:
        # Whoever ends a search wants no more of them.
        rivals = [] if ended_early else _rivals(job, source, running, now)
        write_text(asked.report, render_report(job, plan, rivals))
        note(f"report written to {asked.report}")


def _running(job: JobSpec, source: OfferSource, asked: Asked) -> RunningFleet:
    if asked.existing is None:
        return RunningFleet()
    try:
        return running_fleet(asked.existing, job, source, switching_s=asked.switching_s)
    except BadInputError as error:
        raise BadInputError(f"--existing: {error}") from error


def _searched(
    job: JobSpec, source: OfferSource, asked: Asked, running: RunningFleet, now: datetime
) -> tuple[Plan, bool]:
    """Search while the user lets us; second, whether that was too short."""
    options = PlanOptions(
        objective=asked.objective,
        gap_fraction=asked.gap_fraction,
        running=running,
        with_frontier=asked.report is not None,
    )
    figure: Callable[[float], str] = (
        format_duration if asked.objective is Objective.TIME else format_usd
    )
    clock = time.monotonic
    with SearchWatch(time_limit_s=asked.time_limit_s, figure=figure, clock=clock) as looking:
        plan = create_plan(job, source, options=options, watch=looking.watch, clock=clock, now=now)
    if looking.ended_early and plan.status is PlanStatus.FEASIBLE:
        note(f"stopped at gap {gap_text(plan)} after {format_duration(plan.solve_s)}")
    return plan, looking.ended_early


def _print(plan: Plan, job: JobSpec, *, as_json: bool) -> None:
    if as_json:
        print_json(plan_json(plan, job_name=job.name))
        return
    print_plan(plan, job_name=job.name)
    observed = plan.catalog_time
    note(f"prices of {observed:%Y-%m-%d}, {age_text(observed)}")


def _rivals(job: JobSpec, source: OfferSource, running: RunningFleet, now: datetime) -> list[Rival]:
    ends_s = time.monotonic() + _RIVALS_TIME_LIMIT_S
    watch = Watch(stopped=lambda: time.monotonic() >= ends_s)
    return [_rival(r) for r in compare_rivals(job, source, running=running, watch=watch, now=now)]


def _rival(result: BaselineResult) -> Rival:
    found = result.fleet
    return Rival(
        name=result.name,
        cost_usd=result.cost_usd,
        duration_s=result.duration_s,
        meets_goal=found is not None,
        note=fleet_text(found) if found else "finds no fleet that meets the goal",
    )
