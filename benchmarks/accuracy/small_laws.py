"""How well the small laws predict rows they were not fitted on.

    serverless   lambdaDNN's published runs, one row left out at a time
    checkpoint   CM-DARE's 60 saves, one model left out at a time
    FLOPs        CM-DARE's 11 models on each of two GPUs, one model left out at a time

The FLOPs law is asked as a user asks it: the other models are calibrated, the one left out is
predicted from its size and FLOPs. All figures are mean absolute percentage errors. Run as
`python -m benchmarks.accuracy.small_laws ../shared/data/measured`.
"""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.accuracy.product import Product
from benchmarks.accuracy.serverless_runs import left_out_errors, published_errors, read_runs
from benchmarks.accuracy.table import Row, print_rows
from spotwright.perfmodel.laws.checkpoint_law import (
    INDEX_KB_PER_TENSOR,
    CheckpointRow,
    fit_checkpoint_law,
)

SERVERLESS_TARGET, CHECKPOINT_TARGET, FLOPS_TARGET = 6.0, 8.0, 9.0
PUBLISHED_FLOPS = {"K80": 10.0, "P100": 13.8}  # CM-DARE's own regression, one per GPU
FLOPS_NOTES = {  # research with the forms weighed by their error inside each training part
    "K80": "forms weighed without sight of the left-out model: 4.66",
    "P100": "forms weighed without sight of the left-out model: 9.65, above the target",
}
BATCH = 128


def mape(errors: Sequence[float]) -> float:
    """Return the mean absolute error in percent from signed fractions."""
    return 100 * float(np.mean(np.abs(errors)))


def small_law_rows(product: Product, data: Path) -> list[Row]:
    """Return all rows of this module."""
    return [*serverless_rows(data), checkpoint_row(data), *flops_rows(product, data)]


def serverless_rows(data: Path) -> list[Row]:
    """Compare with the published formula on all runs and the paper's predictions where printed."""
    runs = read_runs(data / "lambdadnn_observed.csv")
    ours, published = left_out_errors(runs), published_errors(runs)
    worst = runs[int(np.argmax(np.abs(ours)))]
    printed = [i for i, run in enumerate(runs) if run.paper_s is not None]
    paper = [(runs[i].paper_s or 0.0) / runs[i].observed_s - 1 for i in printed]
    return [
        Row(
            what=f"serverless run time, {len(runs)} runs",
            unit="%",
            ours=mape(ours),
            target=SERVERLESS_TARGET,
            rivals={"published formula": mape(published)},
            note=f"one run left out; the worst, {worst.model} {worst.function_count} x "
            f"{worst.memory_mb:g} MB, is off by {100 * max(map(abs, ours)):.0f} %",
        ),
        Row(
            what=f"serverless run time, {len(printed)} runs with a printed prediction",
            unit="%",
            ours=mape([ours[i] for i in printed]),
            target=SERVERLESS_TARGET,
            rivals={"paper's prediction": mape(paper)},
        ),
    ]


def checkpoint_row(data: Path) -> Row:
    """Compare with CM-DARE's line 3.751 + 0.0200 * MB, which was fitted on these very rows."""
    table = _read(data / "cmdare_checkpoint.csv")
    saves = [(record["model"], _save(record)) for record in table]
    errors = []
    for model, save in saves:
        law = fit_checkpoint_law([other for name, other in saves if name != model])
        predicted = law.seconds(
            checkpoint_bytes=save.checkpoint_bytes, tensor_count=save.tensor_count
        )
        errors.append(predicted / save.seconds - 1)
    line = [3.751 + 0.0200 * float(record["ckpt_size_mb"]) for record in table]
    rival = [p / save.seconds - 1 for p, (_, save) in zip(line, saves, strict=True)]
    return Row(
        what=f"checkpoint time, {len(saves)} saves",
        unit="%",
        ours=mape(errors),
        target=CHECKPOINT_TARGET,
        rivals={"published line, in sample": mape(rival)},
        note=f"one model left out; spread of equal saves {_save_spread(saves):.2f} %",
    )


def flops_rows(product: Product, data: Path) -> list[Row]:
    """Compare with a linear regression on FLOPs, refitted alike, and with CM-DARE's figures."""
    rows = []
    for gpu, models in read_models(data / "cmdare_single_gpu_models.csv").items():
        jobs = product.calibrate(models)
        ours, line = [], []
        for model in models:
            others = {name: job for name, job in jobs.items() if name != model["model"]}
            (found,) = product.predict([model], others)
            ours.append(found.step_s.mid / float(model["step_s"]) - 1)
            rest = [other for other in models if other is not model]
            line.append(_line_on_flops(rest, model) / float(model["step_s"]) - 1)
        rows.append(
            Row(
                what=f"step time from FLOPs, {gpu}, {len(models)} models",
                unit="%",
                ours=mape(ours),
                target=FLOPS_TARGET,
                rivals={"line on FLOPs": mape(line), "CM-DARE as published": PUBLISHED_FLOPS[gpu]},
                note=FLOPS_NOTES[gpu],
            )
        )
    return rows


def read_models(path: Path) -> dict[str, list[dict[str, str]]]:
    """Return rows of a measurements file by GPU; a row without tensors has the other GPU's."""
    table = _read(path)
    tensors = {record["model"]: record["n_tensors"] for record in table if record["n_tensors"]}
    models: dict[str, list[dict[str, str]]] = {}
    for record in table:
        cells = {
            "strategy": "asp-ps",
            "model": record["model"],
            "fleet": record["gpu"],
            "batch_per_gpu": str(BATCH),
            "ps_count": "1",
            "parameter_bytes": str(4 * float(record["n_params"])),
            "tensor_count": tensors[record["model"]],
            "flops_per_sample": record["model_flops_per_image"],
            "step_s": record["step_time_s"],
        }
        models.setdefault(record["gpu"], []).append(cells)
    return models


def _line_on_flops(known: Sequence[dict[str, str]], model: dict[str, str]) -> float:
    flops = [float(other["flops_per_sample"]) for other in known]
    slope, intercept = np.polyfit(flops, [float(other["step_s"]) for other in known], 1)
    return float(intercept + slope * float(model["flops_per_sample"]))


def _save(record: dict[str, str]) -> CheckpointRow:
    return CheckpointRow(
        checkpoint_bytes=float(record["weight_file_mb"]) * 2**20,
        tensor_count=float(record["index_file_kb"]) / INDEX_KB_PER_TENSOR,
        seconds=float(record["total_duration_s"]),
    )


def _save_spread(saves: Sequence[tuple[str, CheckpointRow]]) -> float:
    """Return the error of each model's own mean: no law of sizes can do better."""
    seconds: dict[str, list[float]] = {}
    for model, save in saves:
        seconds.setdefault(model, []).append(save.seconds)
    return mape([float(np.mean(s)) / x - 1 for s in seconds.values() for x in s])


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    print_rows(small_law_rows(Product(), Path(sys.argv[1])))
