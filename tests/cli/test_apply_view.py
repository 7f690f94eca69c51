"""What `apply` and `destroy` show before they ask: pools, resources, money."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from spotwright.adapters.terraform.changes import Action, ResourceChange
from spotwright.cli.apply_view import Renting, print_renting, renting_json
from spotwright.domain.fleet import FunctionGroup
from spotwright.domain.rental import WantedFleet, WantedPool
from spotwright.usecases.rent_prices import RentPrices
from tests.usecases.example_rental import wanted_fleet

# Three g5.xlarge spot and one m5.xlarge, at most 0.5 each.
FLEET = wanted_fleet()
SPOT, SERVER = sorted(FLEET.pools, key=lambda pool: pool.role == "ps")
PRICES = RentPrices(
    usd_per_hour={SPOT.pool: 0.31, SERVER.pool: 0.192},
    catalog_time=datetime(2026, 8, 22, tzinfo=UTC),
)


def change(address: str, action: Action, reason: str = "") -> ResourceChange:
    kind = address.partition(".")[0]
    return ResourceChange(address=address, kind=kind, key=None, action=action, reason=reason)


def renting(
    before: WantedFleet | None, after: WantedFleet | None, *changes: ResourceChange
) -> Renting:
    return Renting(before=before, after=after, prices=PRICES, changes=changes)


def of(*pools: WantedPool) -> WantedFleet:
    return replace(FLEET, pools=pools)


def test_money_is_counts_times_prices_before_and_after() -> None:
    before = of(replace(SPOT, node_count=2))

    told = renting_json(renting(before, of(replace(SPOT, node_count=5), SERVER)))

    assert told["usd_per_hour"]["before"] == pytest.approx(0.62)
    assert told["usd_per_hour"]["after"] == pytest.approx(1.55 + 0.192)
    ceiling = 5 * SPOT.max_price_usd_per_hour + SERVER.max_price_usd_per_hour
    assert told["usd_per_hour"]["ceiling"] == pytest.approx(ceiling)
    counts = {p["pool"]: (p["node_count_before"], p["node_count"]) for p in told["pools"]}
    assert counts == {SPOT.key: (2, 5), SERVER.key: (0, 1)}


def test_a_price_that_nobody_knows_is_unknown_and_not_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    strange = replace(SPOT, key="worker-z9-nano-use1-az4-spot", instance_type="z9.nano")
    shown = renting(None, of(strange))

    print_renting(shown)

    assert renting_json(shown)["usd_per_hour"]["after"] is None
    out = capsys.readouterr().out
    assert "rent: $0/h -> unknown" in out
    assert out.splitlines()[3].split()[-3:-1] == ["unknown", "unknown"]


def test_what_is_given_up_has_no_ceiling_and_no_cost(capsys: pytest.CaptureFixture[str]) -> None:
    shown = renting(of(SPOT), None, change("aws_role.this", Action.DELETE))

    print_renting(shown)

    out = capsys.readouterr().out
    assert f"{SPOT.node_count} -> 0" in out
    assert "1 to remove" in out
    assert "ceilings" not in out
    assert renting_json(shown)["cost_usd"] is None


def test_few_resources_are_listed_and_many_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    few = [change(f"aws_a.this[{n}]", Action.CREATE, "asked for") for n in range(24)]
    print_renting(renting(None, FLEET, *few))
    listed = capsys.readouterr().out
    print_renting(renting(None, FLEET, *few, change("aws_b.this", Action.REPLACE)))
    counted = capsys.readouterr().out

    assert "  + aws_a.this[23]  asked for\n24 to make\n" in listed
    assert "  + 24 x aws_a\n-/+ 1 x aws_b\n24 to make, 1 to replace\n" in counted


def test_functions_are_told_and_billed_by_use(capsys: pytest.CaptureFixture[str]) -> None:
    functions = FunctionGroup(memory_mb=128, function_count=29)

    print_renting(renting(None, replace(of(SERVER), functions=functions)))

    assert "29 functions of 128 MB, billed by use" in capsys.readouterr().out


def test_what_somebody_else_removed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    shown = replace(renting(FLEET, FLEET), gone=("aws_a.this",))

    print_renting(shown)

    assert "removed by somebody else: aws_a.this" in capsys.readouterr().out
    assert renting_json(shown)["gone"] == ["aws_a.this"]
