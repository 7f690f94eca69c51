"""`spotwright simulate`: what becomes of a job in spot markets as they were measured."""

import os
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.options import AsJson, CatalogFile, JobFile, Model
from spotwright.cli.plan_flags import Budget, Deadline
from spotwright.cli.simulate_flags import SimulateFlags
from spotwright.cli.terminal import refuse_overwriting
from spotwright.domain.errors import BadInputError

_PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--plan", metavar="FILE", help="Start with this plan (JSON) instead of a new one."
    ),
]
_Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="ours, on-demand, greedy, uniform-progress, spotdnn, homogeneous; may be repeated.",
        show_default="ours, on-demand, greedy, uniform-progress",
    ),
]
_Traces = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE|hazard",
        help="Measured availability: bundled, part of a series' name, or a CSV file; hazard draws "
        "losses as the plan expects them.",
    ),
]
_Prices = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.parquet",
        help="Spot price history; each run starts at another time of it. Without: catalog prices.",
    ),
]
_Since = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="With --prices: from then on.", show_default="its last year"),
]
_Until = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="With --prices: until then.", show_default="its end"),
]
_Deflation = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="Pools that run short cut nodes down instead of taking them: proportional, priority "
        "or deterministic.",
    ),
]
_Runs = Annotated[int, typer.Option(min=1, help="Runs of each policy.")]
_Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same runs.")]
_Processes = Annotated[
    int | None, typer.Option(min=1, help="Processes to run in.", show_default="one for each CPU")
]
_Ray = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on this Ray cluster; local starts one here."),
]
_Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE.png|FILE.html", help="Draw the first run of the first policy."),
]


def simulate(
    job: JobFile,
    *,
    plan: _PlanFile = None,
    policy: _Policies = None,
    traces: _Traces = "bundled",
    prices: _Prices = None,
    since: _Since = None,
    until: _Until = None,
    deflation: _Deflation = None,
    runs: _Runs = 100,
    seed: _Seed = 0,
    processes: _Processes = None,
    ray: _Ray = None,
    plot: _Plot = None,
    deadline: Deadline = None,
    budget: Budget = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    as_json: AsJson = False,
) -> None:
    """Run a job many times through measured spot markets, beside other ways to steer it.

    The controller is the one that the daemon runs. All policies meet the same markets.

    \b
    spotwright simulate job.yaml --runs 300
    spotwright simulate job.yaml --policy ours --policy uniform-progress --plot run.html
    spotwright simulate job.yaml --traces hazard --deadline 20h --json
    spotwright simulate job.yaml --prices history.parquet --since 2025-01-01
    """
    if ray is not None and processes is not None:
        raise BadInputError("--processes are of this machine, and --ray runs elsewhere: drop one")
    if prices is None and (since or until):
        raise BadInputError("--since and --until are of --prices: name the history as well")
    if plot is not None:
        refuse_overwriting(plot, job, plan, prices, catalog_file)
        if plot.suffix not in (".png", ".html") or not plot.parent.is_dir():
            raise BadInputError(f"--plot: {plot} must be a .png or .html file in a folder")
    flags = SimulateFlags(
        plan_file=plan,
        policies=policy,
        traces=traces,
        prices=prices,
        since=since,
        until=until,
        deflation=deflation,
        runs=runs,
        seed=seed,
        processes=processes or os.cpu_count() or 1,
        ray=ray,
        plot=plot,
        deadline=deadline,
        budget=budget,
        as_json=as_json,
    )
    with needs_extra("plan", "simulate"):
        from spotwright.cli.simulating import simulate_job  # noqa: PLC0415
    simulate_job(job, flags, catalog_file=catalog_file, model=model)
