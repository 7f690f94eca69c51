"""Last known prices of AWS types that are no longer sold, out of the price history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from spotwright.domain.catalog import ZonePrice

# g2 is gone as well, but no source describes its hardware.
RETIRED_FAMILIES = ("g3", "g3s", "p2", "p3")


@dataclass(frozen=True, slots=True)
class RetiredPrices:
    """Prices per type and zone, and the day each family was last listed."""

    prices: tuple[ZonePrice, ...]
    last_day: Mapping[str, str]


def read_retired_prices(path: Path) -> RetiredPrices:
    """Return the last price in each market, however long before the type vanished it was seen."""
    table = pq.read_table(path)
    pattern = rf"^({'|'.join(RETIRED_FAMILIES)})\."
    rows = table.filter(pc.match_substring_regex(table["instance_type"], pattern)).to_pylist()
    return RetiredPrices(prices=tuple(_last_prices(rows)), last_day=_last_days(rows))


def _last_prices(rows: Iterable[Mapping[str, Any]]) -> Iterable[ZonePrice]:
    last: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:  # sorted by type, zone and time
        known = last.setdefault((row["instance_type"], row["region"], row["az"]), {})
        for column in ("ondemand_price", "spot_price"):
            if row[column] is not None:
                known[column] = row[column]
    for key, known in last.items():
        yield ZonePrice(*key, known.get("ondemand_price"), known.get("spot_price"))


def _last_days(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    days: dict[str, str] = {}
    for row in rows:
        if row["spot_price"] is not None or row["ondemand_price"] is not None:
            family = row["instance_type"].partition(".")[0]
            days[family] = max(days.get(family, ""), row["timestamp"].date().isoformat())
    return days
