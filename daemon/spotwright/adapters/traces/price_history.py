"""Spot price history from Parquet: change points of (type, zone) series.

Columns `timestamp` (UTC unless it has a zone), `instance_type`, `az` (zone id), `ondemand_price`,
`spot_price`; a row holds until the next one of its series. Needs pyarrow, of the extra `daemon`.
"""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from spotwright.domain.errors import BadInputError, MissingExtraError
from spotwright.domain.offer import Market, Pool
from spotwright.simulator.series import Series

_COLUMNS = ["timestamp", "instance_type", "az", "ondemand_price", "spot_price"]


class PriceHistory(NamedTuple):
    """Prices of both markets from one time on."""

    begin: datetime
    prices: dict[Pool, Series]


def read_price_history(
    path: Path,
    *,
    instance_types: Collection[str],
    zones: Collection[str],
    begin: datetime,
    end: datetime,
) -> PriceHistory:
    """Read the series of some types in some zones that have a price all the time.

    Raises:
        MissingExtraError: pyarrow is not installed.
        BadInputError: the file is no such table.
    """
    filters = [("instance_type", "in", sorted(instance_types)), ("az", "in", sorted(zones))]
    table = _read(path, _COLUMNS, filters)
    points: dict[Pool, list[tuple[float, float | None]]] = {}
    for row in table.to_pylist():
        seconds = (row["timestamp"] - begin).total_seconds()
        for market, column in ((Market.SPOT, "spot_price"), (Market.ON_DEMAND, "ondemand_price")):
            pool = Pool(row["instance_type"], row["az"], market)
            points.setdefault(pool, []).append((seconds, row[column]))
    length_s = (end - begin).total_seconds()
    found = {pool: _series(rows, length_s) for pool, rows in sorted(points.items())}
    return PriceHistory(begin, {pool: series for pool, series in found.items() if series})


def observed_until(path: Path) -> datetime:
    """Return the time of the last change of a price.

    Raises:
        MissingExtraError: pyarrow is not installed.
        BadInputError: the file is no such table, or empty.
    """
    times = _read(path, ["timestamp"], None)["timestamp"]
    if not len(times):
        raise BadInputError(f"{path} holds no prices")
    import pyarrow.compute as pc  # noqa: PLC0415

    last: datetime = pc.max(times).as_py()
    return last


def _read(path: Path, columns: list[str], filters: list[tuple[str, str, list[str]]] | None) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading price history", extra="daemon") from error
    try:
        table = pq.read_table(path, columns=columns, filters=filters)
        place = table.schema.get_field_index("timestamp")
        times = table["timestamp"].cast(pa.timestamp("us", tz="UTC"))  # without a zone: UTC
        return table.set_column(place, "timestamp", times).sort_by("timestamp")
    except (OSError, pa.ArrowException) as error:
        raise BadInputError(f"{path} cannot be read as price history: {error}") from error


def _series(rows: list[tuple[float, float | None]], length_s: float) -> Series | None:
    """Return the series from 0 on; None where a price is missing at any time."""
    before = [price for seconds, price in rows if seconds <= 0]
    within = [(seconds, price) for seconds, price in rows if 0 < seconds < length_s]
    if not before or before[-1] is None:
        return None
    points = [(0.0, before[-1])]
    for seconds, price in within:
        if price is None:
            return None
        points.append((seconds, price))
    return Series.of(points, end_s=length_s)
