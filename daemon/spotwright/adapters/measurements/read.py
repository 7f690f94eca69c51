"""Read a measurements file; every complaint names the line and the column."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spotwright.domain.errors import MeasurementsError, nearest_name
from spotwright.domain.measurement import Configuration, Measurement
from spotwright.domain.workload import Strategy

REQUIRED = ("strategy", "fleet", "batch_per_gpu")
OPTIONAL = ("ps_count", "ps_type", "model", "parameter_bytes", "tensor_count", "flops_per_sample")
RESULTS = ("step_s", "cluster_steps_per_s")


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a CSV file as they stand, in order."""

    path: str
    columns: tuple[str, ...]  # several may have no name
    cells: tuple[tuple[str, ...], ...]  # by row, one for each column
    lines: tuple[int, ...]

    @property
    def rows(self) -> list[dict[str, str]]:
        """The cells of each row whose column has a name."""
        return [
            {name: cell for name, cell in zip(self.columns, row, strict=True) if name}
            for row in self.cells
        ]


def read_table(path: Path) -> Table:
    """Read a CSV file and check that it has the columns every configuration needs."""
    return parse_table(table_text(path), path=str(path))


def table_text(path: Path) -> str:
    """Return the text of a CSV file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise MeasurementsError(f"cannot be read: {problem}", path=str(path)) from error


def parse_table(text: str, *, path: str) -> Table:
    """Check the text of a CSV file."""
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    rows, lines = [], []
    try:
        columns = _columns(next(reader, []), path)
        for cells in reader:
            if cells:
                rows.append(_row(columns, cells, path, reader.line_num))
                lines.append(reader.line_num)
    except csv.Error as error:
        raise MeasurementsError(f"not CSV: {error}", path=path, line=reader.line_num) from None
    if not rows:
        raise MeasurementsError("there are no rows below the header", path=path)
    return Table(path, columns, tuple(rows), tuple(lines))


def _columns(cells: Sequence[str], path: str) -> tuple[str, ...]:
    """Check the header; several columns may have no name, as spreadsheets and pandas write them."""
    columns = tuple(name.strip() for name in cells)
    if not columns:
        raise MeasurementsError("the file is empty", path=path)
    for name in REQUIRED:
        if name not in columns:
            near = nearest_name(name, columns)
            hint = f"; is {near!r} meant to be it?" if near else ""
            raise MeasurementsError(f"the column {name!r} is missing{hint}", path=path, line=1)
    for name in columns:
        if name and columns.count(name) > 1:
            raise MeasurementsError(f"the column {name!r} is given twice", path=path, line=1)
    return columns


def _row(columns: Sequence[str], cells: Sequence[str], path: str, line: int) -> tuple[str, ...]:
    if len(cells) > len(columns):
        raise MeasurementsError("more cells than columns", path=path, line=line)
    missing = [""] * (len(columns) - len(cells))
    return tuple(cell.strip() for cell in [*cells, *missing])


def configurations(table: Table) -> list[Configuration]:
    """Return the rows of a table as configurations."""
    rows = zip(table.rows, table.lines, strict=True)
    return [_configuration(row, table.path, line) for row, line in rows]


def measurements(table: Table) -> list[Measurement]:
    """Return the rows of a table with their measured speeds."""
    if not set(RESULTS) & set(table.columns):
        problem = "no measured speed: add a column 'step_s' or 'cluster_steps_per_s'"
        raise MeasurementsError(problem, path=table.path, line=1)
    return [
        _measurement(row, configuration, table.path)
        for row, configuration in zip(table.rows, configurations(table), strict=True)
    ]


def _measurement(row: Mapping[str, str], configuration: Configuration, path: str) -> Measurement:
    step_s, speed = (_number(row, name, path, configuration.line) for name in RESULTS)
    if (step_s is None) == (speed is None):
        problem = "give exactly one of step_s and cluster_steps_per_s"
        raise MeasurementsError(problem, path=path, line=configuration.line)
    return Measurement(configuration=configuration, step_s=step_s, cluster_steps_per_s=speed)


def _configuration(row: Mapping[str, str], path: str, line: int) -> Configuration:
    batch = _whole(row, "batch_per_gpu", path, line)
    if batch is None:
        raise MeasurementsError("batch_per_gpu is empty", path=path, line=line)
    if not row["fleet"]:
        raise MeasurementsError("fleet is empty", path=path, line=line)
    return Configuration(
        line=line,
        strategy=_strategy(row["strategy"], path, line),
        fleet=row["fleet"],
        batch_per_gpu=batch,
        model=row.get("model") or None,
        ps_count=_whole(row, "ps_count", path, line),
        ps_type=row.get("ps_type") or None,
        parameter_bytes=_number(row, "parameter_bytes", path, line),
        tensor_count=_whole(row, "tensor_count", path, line),
        flops_per_sample=_number(row, "flops_per_sample", path, line),
    )


def _strategy(text: str, path: str, line: int) -> Strategy:
    try:
        return Strategy(text)
    except ValueError:
        known: Sequence[str] = [s.value for s in Strategy]
        hint = nearest_name(text, known) or ", ".join(known)
        problem = f"unknown strategy {text!r}; did you mean {hint}?"
        raise MeasurementsError(problem, path=path, line=line) from None


def _number(row: Mapping[str, str], name: str, path: str, line: int) -> float | None:
    text = row.get(name, "")
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        raise MeasurementsError(f"{name} is {text!r}, not a number", path=path, line=line) from None
    if not (math.isfinite(number) and number > 0):
        problem = f"{name} is {text}: it must be a positive, finite number"
        raise MeasurementsError(problem, path=path, line=line)
    return number


def _whole(row: Mapping[str, str], name: str, path: str, line: int) -> int | None:
    number = _number(row, name, path, line)
    if number is None or number == int(number):
        return None if number is None else int(number)
    raise MeasurementsError(f"{name} is {number:g}, not a whole number", path=path, line=line)
