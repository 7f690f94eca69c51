"""`spotwright profile`: run a PyTorch model a few steps here, write the workload of a job file."""

from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.goal_flags import read_flag
from spotwright.cli.options import AsJson, CatalogFile, Model
from spotwright.cli.profile_flags import ProfileFlags
from spotwright.domain.errors import BadInputError
from spotwright.domain.units import parse_duration_s
from spotwright.domain.workload import Strategy

_Target = Annotated[
    str,
    typer.Argument(
        metavar="SCRIPT|MODULE:FUNCTION", help="A .py file with build(), or the function itself."
    ),
]
_Batch = Annotated[
    int | None, typer.Option(help="Samples per GPU and step of the job.", show_default="32")
]
_Batches = Annotated[
    str | None,
    typer.Option(metavar="B,B,...", help="Batches to measure.", show_default="quarters of --batch"),
]
_Data = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Given to build(data=...); its files are the dataset's."),
]
_Out = Annotated[Path | None, typer.Option("--out", "-o", help="Job file to write.")]
_Job = Annotated[
    Path | None, typer.Option(help="Job of which all but the profiled workload is kept.")
]
_Instances = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE,TYPE,...",
        help="Estimate stalls on these.",
        show_default="what the job may rent",
    ),
]
_Seconds = Annotated[str, typer.Option(help="How long to measure, about: 60s.")]
_DeviceName = Annotated[str, typer.Option(metavar="auto|cpu|cuda[:N]", help="What to run on.")]
_Loaders = Annotated[int, typer.Option(min=0, help="Processes that load data, as in DataLoader.")]
_Exchange = Annotated[
    bool, typer.Option("--exchange/--no-exchange", help="Measure gradient exchange here.")
]
_Listen = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS:PORT", help="Wait here for another host's --join, unencrypted."),
]
_Join = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS:PORT", help="Exchange gradients with who listens, then end."),
]


def profile(
    target: _Target,
    *,
    batch: _Batch = None,
    batches: _Batches = None,
    data: _Data = None,
    out: _Out = None,
    job: _Job = None,
    strategy: Annotated[
        Strategy | None, typer.Option(help="Of the job.", show_default="allreduce, or --job's")
    ] = None,
    instances: _Instances = None,
    seconds: _Seconds = "60s",
    device: _DeviceName = "auto",
    loader_processes: _Loaders = 0,
    exchange: _Exchange = True,
    listen: _Listen = None,
    join: _Join = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    as_json: AsJson = False,
) -> None:
    """Measure a PyTorch model here: sizes, FLOPs, memory, step time, stalls; write a job file.

    The script's build() returns a dict with model, loss and batch, and if it has them optimizer and
    dataset. Training code itself is not run. Without a GPU, plans derive compute from FLOPs.

    \b
    spotwright profile examples/models/small_cnn.py --out job.yaml && spotwright plan job.yaml
    spotwright profile train.py --batch 64 --data images/ --job job.yaml --out job.yaml
    """
    if listen and join:
        raise BadInputError("--listen and --join are the two ends of one exchange: give one")
    flags = ProfileFlags(
        target=target,
        batch=batch,
        batches=batches,
        data=data,
        out=out,
        job=job,
        model=model,
        strategy=strategy,
        instances=instances,
        seconds=read_flag("--seconds", parse_duration_s, seconds),
        device=device,
        loader_processes=loader_processes,
        exchange=exchange,
        listen=listen,
        as_json=as_json,
    )
    with needs_extra("train", "profile"):
        from spotwright.cli.profiling import join_exchange, profile_model  # noqa: PLC0415
    if join:
        join_exchange(flags, join)
        return
    profile_model(flags, catalog_file=catalog_file)
