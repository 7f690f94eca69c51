"""Prices as they were, from Parquet."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spotwright.adapters.traces.price_history import (
    PriceHistory,
    observed_until,
    read_price_history,
)
from spotwright.domain.errors import BadInputError
from spotwright.domain.offer import Market, Pool

BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
HOUR_S = 3600.0
SPOT = Pool("g5.xlarge", "use1-az1", Market.SPOT)
ON_DEMAND = Pool("g5.xlarge", "use1-az1", Market.ON_DEMAND)
COLUMNS = pa.schema(
    [
        ("timestamp", pa.timestamp("s", tz="UTC")),
        ("instance_type", pa.string()),
        ("az", pa.string()),
        ("ondemand_price", pa.float64()),
        ("spot_price", pa.float64()),
    ]
)


def row(hour: float, spot: float | None, on_demand: float | None = 1.0, **more: Any) -> Any:
    usual = {
        "timestamp": BEGIN + timedelta(hours=hour), "instance_type": "g5.xlarge",
        "az": "use1-az1", "ondemand_price": on_demand, "spot_price": spot,
    }  # fmt: skip
    return usual | more


def written(folder: Path, rows: Sequence[Any]) -> Path:
    file = folder / "history.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), schema=COLUMNS), file)
    return file


def history(file: Path, *, hours: float = 10.0) -> PriceHistory:
    return read_price_history(
        file,
        instance_types={"g5.xlarge"},
        zones={"use1-az1"},
        begin=BEGIN,
        end=BEGIN + timedelta(hours=hours),
    )


def test_a_row_holds_until_the_next_of_its_series(tmp_path: Path) -> None:
    rows = [row(-30, 0.9), row(-2, 0.4), row(3, 0.5), row(7, 0.3, 1.1), row(12, 9.0)]

    found = history(written(tmp_path, rows))

    assert found.begin == BEGIN
    spot, on_demand = found.prices[SPOT], found.prices[ON_DEMAND]
    hours = (0, 2.9, 3, 6.9, 7, 9.9)
    assert [spot.at(h * HOUR_S) for h in hours] == [0.4, 0.4, 0.5, 0.5, 0.3, 0.3]
    assert [on_demand.at(h * HOUR_S) for h in hours] == [1.0, 1.0, 1.0, 1.0, 1.1, 1.1]
    assert (spot.end_s, on_demand.end_s) == (10 * HOUR_S, 10 * HOUR_S)


def test_the_order_of_rows_in_the_file_does_not_matter(tmp_path: Path) -> None:
    rows = [row(-30, 0.9), row(-2, 0.4), row(3, 0.5), row(7, 0.3)]

    assert history(written(tmp_path, rows[::-1])) == history(written(tmp_path, rows))


def test_a_price_of_the_very_beginning_holds_from_it(tmp_path: Path) -> None:
    found = history(written(tmp_path, [row(0, 0.4)]))

    assert found.prices[SPOT].at(0.0) == 0.4


@pytest.mark.parametrize(
    "rows",
    [
        [row(1, 0.4)],  # nothing is known of the first hour
        [row(-1, None), row(1, 0.4)],
        [row(-9, 0.4), row(-1, None), row(1, 0.4)],
        [row(-1, 0.4), row(5, None), row(6, 0.4)],
    ],
)
def test_a_pool_whose_price_is_missing_at_any_time_is_left_out(
    tmp_path: Path, rows: list[Any]
) -> None:
    assert SPOT not in history(written(tmp_path, rows)).prices


def test_a_market_that_is_missing_does_not_take_the_other_along(tmp_path: Path) -> None:
    found = history(written(tmp_path, [row(-1, None), row(3, 0.4)]))

    assert set(found.prices) == {ON_DEMAND}


def test_a_price_that_is_missing_outside_the_time_asked_for_does_no_harm(tmp_path: Path) -> None:
    rows = [row(-9, None), row(-1, 0.4), row(10, None)]

    assert SPOT in history(written(tmp_path, rows)).prices


def test_types_and_zones_that_are_not_asked_for_are_not_read(tmp_path: Path) -> None:
    others = [row(-1, 0.4, instance_type="g4dn.xlarge"), row(-1, 0.4, az="use1-az2")]

    assert set(history(written(tmp_path, [row(-1, 0.4), *others])).prices) == {SPOT, ON_DEMAND}


def test_a_history_without_rows_has_no_pools_and_no_end(tmp_path: Path) -> None:
    file = written(tmp_path, [])

    assert history(file).prices == {}
    with pytest.raises(BadInputError, match="holds no prices"):
        observed_until(file)


def test_a_history_is_observed_until_its_last_row_wherever_that_is(tmp_path: Path) -> None:
    file = written(tmp_path, [row(5, 0.4), row(9, 0.5), row(2, 0.3)])

    assert observed_until(file) == BEGIN + timedelta(hours=9)


def test_times_without_a_zone_are_taken_as_utc(tmp_path: Path) -> None:
    rows = [row(hour, price) for hour, price in ((-1, 0.4), (3, 0.5))]
    aware = written(tmp_path, rows)
    plain = [each | {"timestamp": each["timestamp"].replace(tzinfo=None)} for each in rows]
    pq.write_table(pa.Table.from_pylist(plain), file := tmp_path / "plain.parquet")

    assert history(file) == history(aware)
    assert observed_until(file) == observed_until(aware) == BEGIN + timedelta(hours=3)


def _text(folder: Path) -> Path:
    (file := folder / "prices.parquet").write_text("timestamp,instance_type\n")
    return file


def _nothing(folder: Path) -> Path:
    (file := folder / "prices.parquet").write_bytes(b"")
    return file


def _other_columns(folder: Path) -> Path:
    pq.write_table(pa.table({"time": [1], "price": [0.5]}), file := folder / "prices.parquet")
    return file


def _no_times(folder: Path) -> Path:
    rows = [row(-1, 0.4, timestamp="yesterday")]
    pq.write_table(pa.Table.from_pylist(rows), file := folder / "prices.parquet")
    return file


@pytest.mark.parametrize(
    "make", [_text, _nothing, _other_columns, _no_times, lambda folder: folder / "missing"]
)
def test_what_is_no_price_history_is_refused(tmp_path: Path, make: Any) -> None:
    file = make(tmp_path)

    with pytest.raises(BadInputError, match="cannot be read as price history"):
        history(file)
    with pytest.raises(BadInputError, match="cannot be read as price history"):
        observed_until(file)
