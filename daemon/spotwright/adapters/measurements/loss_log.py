"""Loss logs: CSV with step, loss, worker_count, weighted_batch and, optionally, R.

Rows of runs with different numbers of workers stand in one file. Where convergence_coefficient is
left out, workers are taken as equal: R = sqrt(1 - 1/n).
"""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from spotwright.domain.errors import MeasurementsError
from spotwright.perfmodel.laws.loss_rows import LossRow

REQUIRED = ("step", "loss", "worker_count", "weighted_batch")


def read_loss_log(path: Path, *, asynchronous: bool) -> list[LossRow]:
    """Read a loss log.

    Raises:
        MeasurementsError: it cannot be read, lacks a column or holds something that is no number.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise MeasurementsError(f"cannot be read: {problem}", path=str(path)) from error
    return parse_loss_log(text, path=str(path), asynchronous=asynchronous)


def parse_loss_log(text: str, *, path: str, asynchronous: bool) -> list[LossRow]:
    """Check the text of a loss log."""
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
    if missing:
        raise MeasurementsError(f"the column {missing[0]!r} is missing", path=path, line=1)
    rows = []
    for cells in reader:
        line = reader.line_num
        workers = _number(cells, "worker_count", path, line)
        equal = math.sqrt(1 - 1 / workers) if asynchronous and workers >= 1 else 0.0
        given = (cells.get("convergence_coefficient") or "").strip()
        rows.append(
            LossRow(
                step=_number(cells, "step", path, line),
                loss=_number(cells, "loss", path, line),
                worker_count=int(workers),
                weighted_batch=_number(cells, "weighted_batch", path, line),
                convergence_coefficient=(
                    _number(cells, "convergence_coefficient", path, line) if given else equal
                ),
                asynchronous=asynchronous,
            )
        )
    return rows


def _number(cells: Mapping[str, str | None], name: str, path: str, line: int) -> float:
    text = (cells[name] or "").strip()
    try:
        number = float(text)
    except ValueError:
        raise MeasurementsError(f"{name} is {text!r}, not a number", path=path, line=line) from None
    if not math.isfinite(number):
        raise MeasurementsError(f"{name} is {text}, not a finite number", path=path, line=line)
    return number
