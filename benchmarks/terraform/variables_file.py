"""How long it takes to write and to read the variables of many pools."""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice, product
from pathlib import Path

from benchmarks.daemon.ingest_cases import against
from benchmarks.table import print_table
from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.adapters.terraform.variables import tfvars_json
from spotwright.domain.offer import Market
from spotwright.domain.plan import Plan
from tests.adapters.terraform.example_fleets import group, plan_of

_POOL_COUNT, _WRITE_MS = 500, 100.0
_HEADER = ("figure", "median / worst", "target", "verdict")


def print_variables_file(*, quick: bool) -> None:
    """Print milliseconds to write 500 pools, to read them back, and of JSON by itself."""
    rounds = 5 if quick else 50
    plan = _plan(_POOL_COUNT)
    text = _written(plan)
    document = json.loads(text)
    assert len(document["pools"]) == _POOL_COUNT
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.auto.tfvars.json"
        path.write_text(text, encoding="utf-8")
        assert len(read_wanted_fleet(path).pools) == _POOL_COUNT
        write_ms = _measured_ms(lambda: _written(plan), rounds)
        read_ms = _measured_ms(lambda: read_wanted_fleet(path), rounds)
    dump_ms = _measured_ms(lambda: json.dumps(document, indent=2, sort_keys=True), rounds)
    lines = [
        ("write: tfvars_json", _told(write_ms), *against(max(write_ms), _WRITE_MS)),
        ("rival: json.dumps of the same content", _told(dump_ms), "-", "-"),
        ("read back and check each value", _told(read_ms), "-", "-"),
    ]
    title = f"Variables of {_POOL_COUNT} pools, {len(text) // 1000} kB, ms, {rounds} times"
    print_table(title, _HEADER, lines)


def _plan(pool_count: int) -> Plan:
    kinds = product(range(1, 51), range(1, 6), (Market.SPOT, Market.ON_DEMAND))
    return plan_of(
        *(
            group(f"g{size}.{size}xlarge", zone=f"use1-az{zone}", market=market, price=0.1 * size)
            for size, zone, market in islice(kinds, pool_count)
        )
    )


def _written(plan: Plan) -> str:
    return tfvars_json(
        plan,
        fleet_name="resnet50",
        plan_id="p-1",
        max_price_usd_per_hour=lambda offer: 2 * offer.price_usd_per_hour,
    )


def _measured_ms(action: Callable[[], object], rounds: int) -> list[float]:
    took_ms = []
    for _ in range(rounds):
        started_s = time.perf_counter()
        action()
        took_ms.append(1000 * (time.perf_counter() - started_s))
    return took_ms


def _told(took_ms: list[float]) -> str:
    return f"{statistics.median(took_ms):.1f} / {max(took_ms):.1f}"
