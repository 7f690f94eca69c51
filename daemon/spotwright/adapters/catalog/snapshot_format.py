"""The catalog's own file format: JSON text that a person can review line by line.

    {"schema_version": 1, "cloud": "aws",
     "price_times":      {REGION: TIME OF OBSERVATION},    such as 2026-08-22T14:28:00+00:00
     "retired_price_times": {TYPE: TIME},   types no longer sold: the oldest of their last prices
     "sources":          {PART: WHERE IT CAME FROM},
     "gpus":             {NAME: {facts}},
     "instance_types":   {NAME: {facts}},            facts equal to the default are left out
     "zones":            {ZONE: REGION},
     "prices":           [[TYPE, ZONE, ON_DEMAND, SPOT]],          null = not offered
     "interruption":     [[REGION, TYPE, FRACTION]],
     "vcpu_quotas":      [[REGION, QUOTA_CLASS, MARKET, VCPUS]],
     "placement_scores": [[TYPE, ZONE, SCORE]]}

Records stand one to a line and sorted, so that the diff of two snapshots is what changed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from spotwright.adapters.catalog import snapshot_records as records
from spotwright.domain.catalog import QuotaKey, Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Market

SCHEMA_VERSION: Final = 1


class NewerSchemaError(ValueError):
    """The text follows a schema that came after this program."""


def encode(snapshot: Snapshot) -> str:
    """Return the snapshot as text; equal snapshots give equal text."""
    if not snapshot.prices:
        raise ValueError("a snapshot without prices would replace a good one by nothing")
    return "".join(_document(snapshot))


def decode(text: str) -> Snapshot:
    """Return the snapshot a text holds.

    Raises:
        NewerSchemaError: the text was written by a later version.
        ValueError: the text is not a snapshot; the message names the section and the record.
    """
    document = records.mapping(json.loads(text, parse_constant=_refuse_constant), "the document")
    _check_schema(document.get("schema_version"))
    section = _Sections(document)
    gpus = {name: records.gpu(name, facts) for name, facts in section.mapping("gpus").items()}
    types = _instance_types(section, Cloud(section.text("cloud")), gpus)
    zones = {zone: records.text(name) for zone, name in section.mapping("zones").items()}
    return Snapshot(
        cloud=Cloud(section.text("cloud")),
        price_times=_times(section.mapping("price_times")),
        retired_price_times=_times(section.mapping("retired_price_times")),
        sources={part: records.text(note) for part, note in section.mapping("sources").items()},
        gpus=gpus,
        instance_types=types,
        prices=_prices(section.rows("prices"), types, zones),
        interruption_fraction=_fractions(section.rows("interruption")),
        vcpu_quotas=_quotas(section.rows("vcpu_quotas")),
        placement_scores=_scores(section.rows("placement_scores")),
    )


def _document(snapshot: Snapshot) -> Iterator[str]:
    zones = {price.zone: price.region for price in snapshot.prices}
    yield f'{{\n"schema_version": {SCHEMA_VERSION},\n"cloud": "{snapshot.cloud}",\n'
    yield _object("price_times", _time_texts(snapshot.price_times)) + ",\n"
    yield _object("retired_price_times", _time_texts(snapshot.retired_price_times)) + ",\n"
    yield _object("sources", snapshot.sources) + ",\n"
    yield _object("gpus", {name: records.facts(g) for name, g in snapshot.gpus.items()}) + ",\n"
    types = {name: records.facts(t) for name, t in snapshot.instance_types.items()}
    yield _object("instance_types", types) + ",\n"
    yield _object("zones", zones) + ",\n"
    yield _array("prices", (_price_row(price) for price in snapshot.prices)) + ",\n"
    fractions = snapshot.interruption_fraction.items()
    yield _array("interruption", ([*key, value] for key, value in fractions)) + ",\n"
    quotas = snapshot.vcpu_quotas.items()
    yield _array("vcpu_quotas", (_quota_row(key, count) for key, count in quotas)) + ",\n"
    scores = snapshot.placement_scores.items()
    yield _array("placement_scores", ([*key, score] for key, score in scores)) + "\n}\n"


def _time_texts(times: Mapping[str, datetime]) -> dict[str, str]:
    return {name: time.astimezone(UTC).isoformat() for name, time in times.items()}


def _price_row(price: ZonePrice) -> list[object]:
    prices = (price.on_demand_usd_per_hour, price.spot_usd_per_hour)
    return [price.instance_type, price.zone, *prices]


def _quota_row(key: QuotaKey, vcpu_count: int) -> list[object]:
    return [key.region, key.quota_class, key.market, vcpu_count]


def _object(name: str, entries: Mapping[str, object]) -> str:
    lines = [f"{_json(key)}: {_json(entries[key])}" for key in sorted(entries)]
    return f'"{name}": ' + _lines("{", lines, "}")


def _array(name: str, rows: Iterable[list[object]]) -> str:
    in_order = sorted(rows, key=lambda row: [str(cell) for cell in row[:3]])
    return f'"{name}": ' + _lines("[", [_json(row) for row in in_order], "]")


def _lines(opening: str, lines: list[str], closing: str) -> str:
    return "\n".join([opening, ",\n".join(lines), closing]) if lines else opening + closing


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


class _Sections:
    """The top level of a document; asking for a section checks that it is there and its kind."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document

    def text(self, name: str) -> str:
        return records.text(self._get(name))

    def mapping(self, name: str) -> Mapping[str, object]:
        return records.mapping(self._get(name), f"section {name!r}")

    def rows(self, name: str) -> list[object]:
        found = self._get(name)
        if not isinstance(found, list):
            raise ValueError(f"section {name!r} is not a list")
        return found

    def _get(self, name: str) -> object:
        if name not in self._document:
            raise ValueError(f"section {name!r} is missing")
        return self._document[name]


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a figure")


def _check_schema(found: object) -> None:
    if type(found) is not int or found < 1:
        raise ValueError(f"schema_version is {found!r}, not a number from 1 up")
    if found > SCHEMA_VERSION:
        raise NewerSchemaError(f"schema {found}, this one reads up to {SCHEMA_VERSION}")


def _times(found: Mapping[str, object]) -> dict[str, datetime]:
    return {name: records.time(value) for name, value in found.items()}


def _instance_types(
    section: _Sections, cloud: Cloud, gpus: Mapping[str, Gpu]
) -> dict[str, InstanceType]:
    types = {
        name: records.instance_type(name, facts, cloud=cloud)
        for name, facts in section.mapping("instance_types").items()
    }
    for found in types.values():
        if found.gpu_name is not None and found.gpu_name not in gpus:
            raise ValueError(f"{found.name} carries {found.gpu_name!r}, which is not under gpus")
    return types


def _prices(
    rows: list[object], types: Mapping[str, InstanceType], zones: Mapping[str, str]
) -> tuple[ZonePrice, ...]:
    if not rows:
        raise ValueError("section 'prices' is empty")
    prices: dict[tuple[str, str], ZonePrice] = {}
    for row in rows:
        name, zone, on_demand, spot = records.cells(row, count=4, section="prices")
        name, zone = records.text(name), records.text(zone)
        if name not in types or zone not in zones:
            raise ValueError(f"prices: {row} names a type or zone that the file does not describe")
        price = ZonePrice(name, zones[zone], zone, records.price(on_demand), records.price(spot))
        if prices.setdefault((name, zone), price) is not price:
            raise ValueError(f"prices: {name} in {zone} is listed twice")
    return tuple(prices.values())


def _fractions(rows: list[object]) -> dict[tuple[str, str], float]:
    fractions = {}
    for row in rows:
        region, name, value = records.cells(row, count=3, section="interruption")
        fraction = records.number(value)
        if fraction >= 1:
            raise ValueError(f"interruption: {row} is not a fraction below 1")
        fractions[records.text(region), records.text(name)] = fraction
    return fractions


def _quotas(rows: list[object]) -> dict[QuotaKey, int]:
    quotas = {}
    for row in rows:
        region, group, market, count = records.cells(row, count=4, section="vcpu_quotas")
        key = QuotaKey(records.text(region), records.text(group), Market(records.text(market)))
        quotas[key] = records.whole(count)
    return quotas


def _scores(rows: list[object]) -> dict[tuple[str, str], int]:
    scores = {}
    for row in rows:
        name, zone, score = records.cells(row, count=3, section="placement_scores")
        scores[records.text(name), records.text(zone)] = records.whole(score)
    return scores
