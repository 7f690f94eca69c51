"""`spotwright plan`: which fleet to rent, with the proof and why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.asking import planner_to_ask
from spotwright.cli.extras import needs_extra
from spotwright.cli.options import AsJson, CatalogFile, Daemon, JobFile, Model, TlsDir
from spotwright.cli.plan_flags import (
    Budget,
    Confidence,
    Deadline,
    Existing,
    Gap,
    PlanFlags,
    PlannedFor,
    Switching,
    TargetLoss,
    TimeLimit,
)
from spotwright.cli.sources import read_document
from spotwright.cli.terminal import refuse_overwriting
from spotwright.domain.errors import BadInputError
from spotwright.domain.plan import Objective
from spotwright.domain.questions import PlanQuestion

_Tfvars = Annotated[
    str | None,
    typer.Option(metavar="FILE|-", help="Write Terraform variables; - prints them instead."),
]
_Report = Annotated[
    Path | None, typer.Option(metavar="FILE.html", help="Write a page for those who decide.")
]


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
    deadline: Deadline = None,
    target_loss: TargetLoss = None,
    budget: Budget = None,
    confidence: Confidence = None,
    objective: PlannedFor = Objective.COST,
    gap: Gap = "0.001",
    time_limit: TimeLimit = "30s",
    existing: Existing = None,
    switching: Switching = None,
    tfvars: _Tfvars = None,
    report: _Report = None,
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
    flags = PlanFlags(
        deadline=deadline,
        target_loss=target_loss,
        budget=budget,
        confidence=confidence,
        objective=objective,
        gap=gap,
        time_limit=time_limit,
        existing=existing,
        switching=switching,
    )
    question = flags.question(with_report=report is not None)
    document = read_document(job, model=model)
    tfvars_file = None if tfvars in (None, "-") else Path(str(tfvars))
    for flag, file in (("--report", report), ("--tfvars", tfvars_file)):
        if file is not None:
            refuse_overwriting(file, job, catalog_file)
            _refuse_no_file(flag, file)
    with needs_extra("plan", "plan"):
        from spotwright.cli.planning import plan_job  # noqa: PLC0415
    asked = Asked(question=question, tfvars=tfvars, report=report, as_json=as_json)
    with planner_to_ask(daemon=daemon, tls_dir=tls_dir, catalog_file=catalog_file) as planner:
        plan_job(planner, document, asked)


def _refuse_no_file(flag: str, file: Path) -> None:
    """Raise BadInputError before the search where its result could not be written after it."""
    if not file.parent.is_dir() or file.is_dir():
        raise BadInputError(f"{flag}: {file} cannot be written; name a file in a folder")
