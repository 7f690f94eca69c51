"""`spotwright calibrate`: fit a workload to measured steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotwright.cli.daemon_access import DaemonAccess, daemon_access
from spotwright.cli.extras import needs_extra
from spotwright.cli.measured_job import read_measured_job
from spotwright.cli.options import AsJson, CatalogFile, Daemon, Model, TlsDir
from spotwright.cli.sources import OpenedJob, open_catalog, open_job
from spotwright.cli.terminal import note, print_json, print_table, refuse_overwriting, write_text
from spotwright.domain.errors import BadInputError
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec, NetworkRate
from spotwright.domain.measurement import Measurement
from spotwright.domain.workload import Strategy
from spotwright.usecases.ports import OfferSource

if TYPE_CHECKING:
    from spotwright.usecases.calibrate_workloads import CalibratedModel


class LawName(StrEnum):
    """Loss laws that can be fitted to a log."""

    SPOTDNN = "spotdnn"
    CYNTHIA = "cynthia"
    NOISE_SCALE = "noise-scale"


_SaveRows = Annotated[Path | None, typer.Option(help="Keep the rows of --from-daemon here (CSV).")]


def calibrate(
    measured: Annotated[
        Path | None, typer.Argument(metavar="[MEASUREMENTS.csv]", help="Measured steps.")
    ] = None,
    *,
    from_daemon: Annotated[
        str | None,
        typer.Option(metavar="JOB_ID", help="Measured by the agents of this job, instead."),
    ] = None,
    save_rows: _SaveRows = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Job file to write.")],
    job: Annotated[
        Path | None, typer.Option(help="Job whose goal, limits and sizes are kept.")
    ] = None,
    losses: Annotated[
        Path | None,
        typer.Option(help="Loss log (CSV) to fit the loss law to; needs a --job with goal.loss."),
    ] = None,
    law: Annotated[LawName, typer.Option(help="Which loss law to fit.")] = LawName.SPOTDNN,
    model: Model = None,
    catalog_file: CatalogFile = None,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Fit what the rows can tell, say what they cannot, and write a job file that predicts.

    Rows of a file are taken to be short runs, inside the network's burst, here and in predict
    --configs. Jobs are planned with sustained rates unless their limits.network says peak; those of
    a daemon run long, at the rate that they were planned with.
    """
    with needs_extra("plan", "calibrate"):
        from spotwright.adapters.jobfile.write import job_text  # noqa: PLC0415
        from spotwright.usecases.calibrate_workloads import calibrate_workloads  # noqa: PLC0415
    refuse_overwriting(output, measured, losses)
    base = open_job(job, catalog_file=catalog_file, model=model) if job else None
    if (measured is None) == (from_daemon is None) or (save_rows and not from_daemon):
        raise BadInputError(
            "give either MEASUREMENTS.csv or --from-daemon JOB_ID; --save-rows goes with the latter"
        )
    if measured is not None:
        taken = _of_file(measured, base, catalog_file)
    else:
        access = daemon_access(daemon, tls_dir)
        taken = _of_daemon(
            access, from_daemon or "", base=base, catalog_file=catalog_file, save_rows=save_rows
        )
    note(f"fitting {len(taken.rows)} rows ...")
    fitted = calibrate_workloads(
        taken.rows, taken.catalog, path=taken.path, base=taken.base, network=taken.network
    )
    if losses is not None:
        fitted = [_with_loss_law(model, losses, law) for model in fitted]
    jobs = {model.name: model.job for model in fitted}
    write_text(output, job_text(jobs, comment=taken.comment))
    if as_json:
        print_json({"output": str(output), "models": [_model_json(model) for model in fitted]})
        return
    _print_report(fitted)
    note(f"written to {output}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """Rows to fit, and what they are fitted with."""

    rows: Sequence[Measurement]
    catalog: OfferSource
    base: JobSpec | None
    path: str  # for complaints
    source: str  # for the comment
    network: NetworkRate = NetworkRate.PEAK

    @property
    def comment(self) -> str:
        """What the job file says of itself."""
        told = f"Fitted by `spotwright calibrate {self.source}`, {len(self.rows)} rows."
        return told if self.base else f"{told}\nThe goal is a placeholder: set your own."


def _of_file(measured: Path, base: OpenedJob | None, catalog_file: Path | None) -> _Taken:
    from spotwright.adapters.measurements.read import measurements, read_table  # noqa: PLC0415

    table = read_table(measured)
    return _Taken(
        rows=measurements(table),
        catalog=base.catalog if base else open_catalog(Cloud.AWS, file=catalog_file),
        base=base.job if base else None,
        path=table.path,
        source=measured.name,
    )


def _of_daemon(
    access: DaemonAccess,
    job_id: str,
    *,
    base: OpenedJob | None,
    catalog_file: Path | None,
    save_rows: Path | None,
) -> _Taken:
    """Take the rows of a job, and the job's own document unless another one is given."""
    from spotwright.adapters.measurements.write import measurements_text  # noqa: PLC0415

    followed = read_measured_job(access, job_id, catalog_file=catalog_file)
    for text in followed.measured.notes:
        note(f"{job_id}: {text}")
    if save_rows is not None:
        write_text(save_rows, measurements_text(followed.measured.rows))
    opened = base or followed.opened
    return _Taken(
        rows=followed.measured.rows,
        catalog=opened.catalog,
        base=opened.job,
        path=f"job {job_id}",
        source=f"--from-daemon {job_id}",
        network=opened.job.limits.network,
    )


def _with_loss_law(model: "CalibratedModel", log: Path, law: LawName) -> "CalibratedModel":
    """Fit the loss law of a model to a log."""
    from spotwright.adapters.measurements.loss_log import read_loss_log  # noqa: PLC0415
    from spotwright.usecases.fit_loss_law import fit_loss_law  # noqa: PLC0415

    asynchronous = model.job.workload.strategy is Strategy.ASP_PS
    rows = read_loss_log(log, asynchronous=asynchronous)
    found = fit_loss_law(rows, law=law, job=model.job)
    note(f"{log}: {law} law, iterations to the goal within {found.law.relative_sd:.1%} (1 sd)")
    for text in found.notes:
        note(f"{log}: {text}")
    workload = replace(model.job.workload, convergence=found.law)
    return replace(model, job=replace(model.job, workload=workload))


def _print_report(fitted: list["CalibratedModel"]) -> None:
    columns = ("model", "strategy", "rows>", "fit error>", "unseen placements>",
               "90 % interval covers>")  # fmt: skip
    print_table(columns, [_model_row(model) for model in fitted])
    for model in fitted:
        for text in model.calibration.notes:
            print(f"{model.name}: {text}")
        lines = model.calibration.outlier_lines
        if lines:
            shown = ", ".join(str(line) for line in lines[:10])
            more = f" and {len(lines) - 10} more" if len(lines) > 10 else ""
            print(f"{model.name}: far from the fit: lines {shown}{more}")


def _model_row(model: "CalibratedModel") -> tuple[str, ...]:
    found = model.calibration
    return (
        model.name,
        found.workload.strategy,
        str(found.row_count),
        _percent(found.fit_error_fraction),
        _percent(found.unseen_error_fraction),
        _percent(found.coverage_fraction),
    )


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:.1%}"


def _model_json(model: "CalibratedModel") -> dict[str, Any]:
    found = model.calibration
    return {
        "model": model.name,
        "strategy": found.workload.strategy,
        "row_count": found.row_count,
        "fit_error_fraction": found.fit_error_fraction,
        "unseen_error_fraction": found.unseen_error_fraction,
        "coverage_fraction": found.coverage_fraction,
        "outlier_lines": list(found.outlier_lines),
        "notes": list(found.notes),
    }
