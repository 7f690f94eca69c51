"""Last known prices of AWS types that are no longer sold, out of the price history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from spotwright.domain.catalog import ZonePrice

# g2 is gone as well, but no source describes its hardware.
RETIRED_FAMILIES = ("g3", "g3s", "p2", "p3")


@dataclass(frozen=True, slots=True)
class RetiredPrices:
    """Last prices per type and zone, and when the oldest of them was listed, by type."""

    prices: tuple[ZonePrice, ...]
    oldest_time: Mapping[str, datetime]


def read_retired_prices(path: Path) -> RetiredPrices:
    """Return the last price in each market, however long before the type vanished it was seen."""
    table = pq.read_table(path)
    pattern = rf"^({'|'.join(RETIRED_FAMILIES)})\."
    rows = table.filter(pc.match_substring_regex(table["instance_type"], pattern)).to_pylist()
    return RetiredPrices(prices=tuple(_last_prices(rows)), oldest_time=_oldest_times(rows))


def _last_prices(rows: Iterable[Mapping[str, Any]]) -> Iterable[ZonePrice]:
    last: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:  # sorted by type, zone and time
        known = last.setdefault((row["instance_type"], row["region"], row["az"]), {})
        for column in ("ondemand_price", "spot_price"):
            if row[column] is not None:
                known[column] = row[column]
    for key, known in last.items():
        yield ZonePrice(*key, known.get("ondemand_price"), known.get("spot_price"))


def _oldest_times(rows: Iterable[Mapping[str, Any]]) -> dict[str, datetime]:
    last: dict[tuple[str, str, str], datetime] = {}
    for row in rows:  # sorted by type, zone and time
        for column in ("ondemand_price", "spot_price"):
            if row[column] is not None:
                last[row["instance_type"], row["az"], column] = row["timestamp"]
    oldest: dict[str, datetime] = {}
    for (name, _, _), time in last.items():
        oldest[name] = min(time, oldest.get(name, time))
    return oldest
