"""Availability campaigns from CSV: `trace_id, t_seconds, nodes`, and an index beside it.

A value holds until the next row; the last row of a trace marks its end. The index has a row for
each trace: `trace_id, source, kind, zone, instance_type, target_nodes`, other columns are not read.
"""

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from spotwright.domain.errors import BadInputError
from spotwright.simulator.campaign import Campaign, CampaignKind
from spotwright.simulator.series import Series

_COLUMNS = ("trace_id", "t_seconds", "nodes")
_INDEX_COLUMNS = ("trace_id", "source", "kind", "zone", "instance_type", "target_nodes")


def read_csv_campaigns(path: Path) -> list[Campaign]:
    """Read a file of traces (plain or gzip) with the index that lies beside it.

    Without an index each trace stands for itself, and its largest value is what was asked for.

    Raises:
        BadInputError: a file is missing, or is not such a table.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    for row in _rows(path, _COLUMNS):
        time_s = _number(path, row["t_seconds"])
        points.setdefault(row["trace_id"], []).append((time_s, _number(path, row["nodes"])))
    if not points:
        raise BadInputError(f"{path}: no traces; each needs rows of {', '.join(_COLUMNS)}")
    index_path = _index_of(path)
    index = (
        {row["trace_id"]: row for row in _rows(index_path, _INDEX_COLUMNS)} if index_path else {}
    )
    return [_campaign(path, name, rows, index.get(name, {})) for name, rows in points.items()]


def _index_of(path: Path) -> Path | None:
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    found = path.with_name(f"{stem}_index.csv")
    return found if found.exists() else None


def _campaign(
    path: Path, name: str, rows: Sequence[tuple[float, float]], facts: dict[str, str]
) -> Campaign:
    try:
        first_s = rows[0][0]
        series = Series.of([(t - first_s, v) for t, v in rows], end_s=rows[-1][0] - first_s)
        largest = max(int(max(series.values)), 1)
        return Campaign(
            name=name,
            source=facts.get("source") or path.name,
            kind=CampaignKind(facts.get("kind") or CampaignKind.AVAILABILITY),
            zone=facts.get("zone", ""),
            instance_type=facts.get("instance_type", ""),
            target_nodes=int(facts.get("target_nodes") or largest),
            nodes=series,
        )
    except ValueError as error:
        raise BadInputError(f"{path}: trace {name}: {error}") from error


def _rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(_text(path)))
    missing = set(columns) - set(reader.fieldnames or ())
    if missing:
        raise BadInputError(f"{path}: the columns {', '.join(sorted(missing))} are missing")
    yield from reader


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} cannot be read as traces: {error}") from error


def _number(path: Path, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInputError(f"{path}: {text!r} is not a number") from None
