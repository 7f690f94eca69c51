"""`spotwright plan`: which fleet to rent, with the proof and why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.asking import planner_to_ask
from spotwright.cli.extras import needs_extra
from spotwright.cli.goal_flags import (
    parse_duration_or_zero,
    parse_inner_fraction,
    read_flag,
    read_goal_flags,
)
from spotwright.cli.options import AsJson, CatalogFile, Daemon, JobFile, Model, TlsDir
from spotwright.cli.sources import read_document
from spotwright.cli.terminal import refuse_overwriting
from spotwright.domain.errors import BadInputError
from spotwright.domain.plan import Objective
from spotwright.domain.questions import PlanQuestion
from spotwright.domain.units import parse_duration_s

_SWITCHING = "5m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the flags ask for, and how to tell it."""

    question: PlanQuestion
    tfvars: str | None  # a file, or - for stdout
    report: Path | None
    as_json: bool


def plan(
    job: JobFile,
    *,
    deadline: Annotated[str | None, typer.Option(help="By when: 4h, 90 min, 2d.")] = None,
    target_loss: Annotated[
        float | None, typer.Option(help="Loss to reach; the job needs a convergence law.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="At most this cost: $20.")] = None,
    confidence: Annotated[
        str | None, typer.Option(help="How surely the deadline is met: 0.95 or 95%.")
    ] = None,
    objective: Annotated[
        Objective, typer.Option(help="Cheapest, fastest, or the trade-off between both.")
    ] = Objective.COST,
    gap: Annotated[str, typer.Option(help="Stop when proved this close to the best.")] = "0.001",
    time_limit: Annotated[str, typer.Option(help="Stop with the best so far: 30s.")] = "30s",
    existing: Annotated[
        str | None, typer.Option(help="Fleet that runs now; kept unless a change pays.")
    ] = None,
    switching: Annotated[
        str | None,
        typer.Option(help="Time a new node is paid for before it trains.", show_default=_SWITCHING),
    ] = None,
    tfvars: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Write Terraform variables; - prints them instead."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page for those who decide.")
    ] = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Find the fleet to rent, prove how good it is, and say why.

    Flags override the goal of the job file. Ctrl-C ends the search with the best fleet so far.

    \b
    spotwright plan job.yaml --deadline 4h --budget '$40'
    spotwright plan job.yaml --objective pareto --report plan.html
    spotwright plan job.yaml --existing 'g5.xlarge*3@use1-az4/spot' --switching 5m
    spotwright plan job.yaml --tfvars fleet.auto.tfvars.json --daemon 127.0.0.1:7443
    """
    if switching is not None and existing is None:
        raise BadInputError("--switching goes with --existing FLEET")
    if tfvars == "-" and as_json:
        raise BadInputError("--json and --tfvars - both print on stdout; name a file for one")
    question = PlanQuestion(
        goal=read_goal_flags(
            deadline=deadline, budget=budget, confidence=confidence, target_loss=target_loss
        ),
        objective=objective,
        gap_fraction=read_flag("--gap", parse_inner_fraction, gap),
        time_limit_s=read_flag("--time-limit", parse_duration_s, time_limit),
        existing_fleet=existing,
        switching_s=read_flag("--switching", parse_duration_or_zero, switching or _SWITCHING),
        with_frontier=report is not None,
        with_rivals=report is not None,
    )
    document = read_document(job, model=model)
    tfvars_file = None if tfvars in (None, "-") else Path(str(tfvars))
    for flag, file in (("--report", report), ("--tfvars", tfvars_file)):
        if file is not None:
            refuse_overwriting(file, job, catalog_file)
            if not file.parent.is_dir() or file.is_dir():
                raise BadInputError(f"{flag}: {file} cannot be written; name a file in a folder")
    with needs_extra("plan", "plan"):
        from spotwright.cli.planning import plan_job  # noqa: PLC0415
    asked = Asked(question=question, tfvars=tfvars, report=report, as_json=as_json)
    with planner_to_ask(daemon=daemon, tls_dir=tls_dir, catalog_file=catalog_file) as planner:
        plan_job(planner, document, asked)
