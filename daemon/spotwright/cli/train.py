"""`spotwright train`: the roles of the elastic trainer, here or on the hosts of a fleet."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.options import AsJson, CatalogFile, Model
from spotwright.cli.train_flags import Role, TrainFlags
from spotwright.domain.workload import Strategy


class _Strategy(StrEnum):
    ASP_PS = Strategy.ASP_PS
    BSP_PS = Strategy.BSP_PS


_Script = Annotated[
    str,
    typer.Argument(
        metavar="SCRIPT", help="FILE.py that defines build(), FILE.py:FUNCTION or MODULE:FUNCTION."
    ),
]
_PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="Plan (JSON) that says how many of each role."),
]
_JobFile = Annotated[
    Path | None, typer.Option("--job", metavar="FILE", help="Job file to plan, instead of --plan.")
]
_RoleOption = Annotated[
    Role | None, typer.Option(help="One role, on a host of the fleet; without: all of them here.")
]
_Count = Annotated[int | None, typer.Option(min=1, show_default="as planned, else 1")]
_Steps = Annotated[
    int | None,
    typer.Option(
        min=1, help="Updates; of a synchronous job, rounds.", show_default="as planned, or for ever"
    ),
]
_Servers = Annotated[
    str | None,
    typer.Option(
        metavar="N|A:PORT,B:PORT",
        help="How many servers; for --role worker, where they are.",
        show_default="as planned, else 1",
    ),
]
_Batch = Annotated[
    int | None,
    typer.Option(help="Samples of a step of each worker.", show_default="as planned, else 32"),
]
_Checkpoint = Annotated[
    str | None, typer.Option(metavar="PATH|s3://BUCKET/KEY", help="Save there, and go on from it.")
]
_Tls = Annotated[
    Path | None, typer.Option("--tls-dir", metavar="DIR", help="Certificates, for other hosts.")
]
_Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="PyTorch's, of each process.",
        show_default="a share of the cores; with --role, PyTorch's own choice",
    ),
]


def train(
    script: _Script,
    *,
    plan: _PlanFile = None,
    job: _JobFile = None,
    role: _RoleOption = None,
    strategy: Annotated[
        _Strategy | None, typer.Option(show_default="as planned, else asp-ps")
    ] = None,
    workers: _Count = None,
    servers: _Servers = None,
    steps: _Steps = None,
    batch: _Batch = None,
    checkpoint: _Checkpoint = None,
    every: Annotated[int, typer.Option(min=1, help="Updates that a crash may lose.")] = 100,
    index: Annotated[int, typer.Option(min=0, help="Which server, for --role ps.")] = 0,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="For --role ps.")] = None,
    name: Annotated[str | None, typer.Option(help="Of this worker, for --role worker.")] = None,
    linger: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="A server tells late workers so long.")
    ] = 5.0,
    tls_dir: _Tls = None,
    threads: _Threads = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    as_json: AsJson = False,
) -> None:
    """Train a PyTorch model with parameter servers and workers that may come and go.

    \b
    spotwright train script.py --workers 4 --servers 2 --steps 1000
    spotwright train script.py --plan plan.json --checkpoint s3://bucket/run-1
    spotwright train script.py --role ps --listen 10.0.0.5:7600 --tls-dir tls --steps 1000
    spotwright train script.py --role worker --servers 10.0.0.5:7600 --tls-dir tls
    """
    flags = TrainFlags(
        script=script,
        plan=plan,
        job=job,
        role=role,
        strategy=None if strategy is None else Strategy(strategy),
        workers=workers,
        servers=servers,
        steps=steps,
        batch=batch,
        checkpoint=checkpoint,
        every=every,
        index=index,
        listen=listen,
        name=name,
        linger_s=linger,
        tls_dir=tls_dir,
        threads=threads,
        model=model,
        catalog_file=catalog_file,
        as_json=as_json,
    )
    with needs_extra("train", "train"):
        from spotwright.cli.training import train_roles  # noqa: PLC0415
    train_roles(flags)
