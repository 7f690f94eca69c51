"""What `spotwright plan` does with its flags: ask, print, and write the files."""

from pathlib import Path

from spotwright.adapters.report.page import render_report
from spotwright.cli.plan import Asked
from spotwright.cli.plan_json import infeasible_json, plan_json
from spotwright.cli.plan_view import gap_text, print_plan
from spotwright.cli.sources import age_text
from spotwright.cli.terminal import note, print_json, write_text
from spotwright.domain.plan import PlanStatus
from spotwright.domain.questions import JobDocument, NoFleet, PlannedFleet
from spotwright.domain.units import format_duration
from spotwright.usecases.planner_port import Planner


def plan_job(planner: Planner, job: JobDocument, asked: Asked) -> None:
    """Plan a job and tell the plan in the way that was asked for."""
    answer = planner.create_plan(job, asked.question)
    if isinstance(answer, NoFleet):
        if asked.as_json:
            print_json(infeasible_answer_json(answer))
        raise answer.error
    if answer.create_time is not None:
        note(f"kept as {answer.plan_id}; `spotwright jobs start {answer.plan_id}` follows its job")
    tell_early_end(answer)
    if asked.tfvars == "-":
        print(planner.render_tfvars(answer.plan_id), end="")
    else:
        _print(answer, as_json=asked.as_json)
        if asked.tfvars is not None:
            write_text(Path(asked.tfvars), planner.render_tfvars(answer.plan_id))
            note(f"Terraform variables written to {asked.tfvars}")
    if asked.report is not None:
        write_text(asked.report, _report(job, answer, asked))
        note(f"report written to {asked.report}")


def tell_early_end(answer: PlannedFleet) -> None:
    """Say how much is not proved where the search was told to end."""
    plan = answer.plan
    if answer.ended_early and plan.status is PlanStatus.FEASIBLE:
        note(f"stopped at gap {gap_text(plan)} after {format_duration(plan.solve_s)}")


def infeasible_answer_json(answer: NoFleet) -> dict[str, object]:
    """Return that there is no fleet, and what would help, as JSON."""
    return infeasible_json(
        answer.error,
        job_name=answer.job_name,
        objective=answer.objective,
        catalog_time=answer.catalog_time,
    )


def _print(answer: PlannedFleet, *, as_json: bool) -> None:
    if as_json:
        print_json(plan_json(answer.plan, job_name=answer.job_name))
        return
    print_plan(answer.plan, job_name=answer.job_name)
    observed = answer.plan.catalog_time
    note(f"prices of {observed:%Y-%m-%d}, {age_text(observed)}")


def _report(job: JobDocument, answer: PlannedFleet, asked: Asked) -> str:
    from spotwright.adapters.jobfile.read import parse_job  # noqa: PLC0415

    spec = parse_job(job.text, path=job.name).of_model(job.model)
    return render_report(asked.question.goal.of(spec), answer.plan, answer.rivals)
