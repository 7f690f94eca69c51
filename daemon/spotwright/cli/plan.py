"""`spotwright plan`: which fleet to rent, with the proof and why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.goal_flags import (
    parse_duration_or_zero,
    parse_inner_fraction,
    read_flag,
    read_goal_flags,
)
from spotwright.cli.options import AsJson, CatalogFile, JobFile, Model
from spotwright.cli.sources import open_job
from spotwright.cli.terminal import refuse_overwriting
from spotwright.domain.errors import BadInputError, JobFileError
from spotwright.domain.plan import Objective
from spotwright.domain.units import parse_duration_s

_SWITCHING = "5m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The flags that say how to plan, and how to tell it."""

    objective: Objective
    gap_fraction: float
    time_limit_s: float
    existing: str | None
    switching_s: float
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
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page for those who decide.")
    ] = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    as_json: AsJson = False,
) -> None:
    """Find the fleet to rent, prove how good it is, and say why.

    Flags override the goal of the job file. Ctrl-C ends the search with the best fleet so far.

    \b
    spotwright plan job.yaml --deadline 4h --budget '$40'
    spotwright plan job.yaml --objective pareto --report plan.html
    spotwright plan job.yaml --existing 'g5.xlarge*3@use1-az4/spot' --switching 5m
    """
    if switching is not None and existing is None:
        raise BadInputError("--switching goes with --existing FLEET")
    goal = read_goal_flags(
        deadline=deadline, budget=budget, confidence=confidence, target_loss=target_loss
    )
    asked = Asked(
        objective=objective,
        gap_fraction=read_flag("--gap", parse_inner_fraction, gap),
        time_limit_s=read_flag("--time-limit", parse_duration_s, time_limit),
        existing=existing,
        switching_s=read_flag("--switching", parse_duration_or_zero, switching or _SWITCHING),
        report=report,
        as_json=as_json,
    )
    if not job.exists():
        raise JobFileError("no such file", path=str(job))
    if report is not None:
        refuse_overwriting(report, job, catalog_file)
        if not report.parent.is_dir() or report.is_dir():
            raise BadInputError(f"--report: {report} cannot be written; name a file in a folder")
    opened = open_job(job, catalog_file=catalog_file, model=model)
    with needs_extra("plan", "plan"):
        from spotwright.cli.planning import plan_job  # noqa: PLC0415
    plan_job(goal.of(opened.job), opened.catalog, asked)
