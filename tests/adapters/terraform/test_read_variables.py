"""The generated variables read back, and what is said of those that nobody generated."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given

from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import FunctionGroup, NodeGroup, Role
from spotwright.domain.offer import Market, Pool
from spotwright.domain.prediction import Interval
from spotwright.domain.rental import WantedFleet, WantedPool
from tests.adapters.terraform.example_fleets import (
    COSTS_USD,
    FUNCTIONS,
    GROUPS,
    plan_of,
    rendered,
)

KEY = "worker-g5-xlarge-use1-az4-spot"
POOL: dict[str, Any] = {
    "role": "worker",
    "instance_type": "g5.xlarge",
    "zone_id": "use1-az4",
    "market": "spot",
    "node_count": 6,
    "max_price_usd_per_hour": "0.52",
    "efa_interfaces": 0,
}
FLEET: dict[str, Any] = {
    "schema_version": 1,
    "fleet_name": "resnet50",
    "plan_id": "p-1",
    "region": "us-east-1",
    "cost_usd_low": 31.0,
    "cost_usd_high": 38.5,
    "pools": {KEY: POOL},
}


def complaint(folder: Path, text: str | bytes) -> str:
    file = folder / "fleet.auto.tfvars.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInputError) as refusal:
        read_wanted_fleet(file)
    message = str(refusal.value)
    assert message.startswith(f"{file}: ")
    return message.removeprefix(f"{file}: ")


def with_pool(**changes: Any) -> str:
    return json.dumps(FLEET | {"pools": {KEY: POOL | changes}})


def test_a_file_is_read_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "fleet.auto.tfvars.json"
    functions = {"memory_mb": 128, "function_count": 29}
    file.write_text(json.dumps(FLEET | {"cost_usd_low": 31, "functions": functions}))

    assert read_wanted_fleet(file) == WantedFleet(
        name="resnet50",
        plan_id="p-1",
        region="us-east-1",
        low_cost_usd=31.0,
        high_cost_usd=38.5,
        pools=(
            WantedPool(
                key=KEY,
                role=Role.WORKER,
                instance_type="g5.xlarge",
                zone="use1-az4",
                market=Market.SPOT,
                node_count=6,
                max_price_usd_per_hour=0.52,
            ),
        ),
        functions=FunctionGroup(memory_mb=128, function_count=29),
    )


@given(GROUPS, FUNCTIONS, COSTS_USD)
def test_what_was_written_is_read_as_what_the_plan_asked_for(
    nodes: list[NodeGroup], functions: FunctionGroup | None, cost_usd: Interval
) -> None:
    plan = plan_of(*nodes, functions=functions, cost_usd=cost_usd)
    asked: Counter[tuple[Role, Pool]] = Counter()
    for group in nodes:
        assert group.offer is not None
        asked[group.role, group.offer.pool] += group.node_count

    with TemporaryDirectory() as folder:
        file = Path(folder) / "fleet.auto.tfvars.json"
        file.write_text(rendered(plan, max_price=lambda _: 1e-7 / 3))
        wanted = read_wanted_fleet(file)

    assert {(p.role, p.pool): p.node_count for p in wanted.pools} == asked
    assert {p.max_price_usd_per_hour for p in wanted.pools} == {1e-7 / 3}
    assert [p.key for p in wanted.pools] == sorted(p.key for p in wanted.pools)
    assert wanted.functions == functions
    written = plan.cost_interval_usd
    assert wanted.low_cost_usd == pytest.approx(written.low, abs=5.1e-5)
    assert wanted.high_cost_usd == pytest.approx(written.high, abs=5.1e-5)


def test_without_a_file_it_says_who_writes_one(tmp_path: Path) -> None:
    missing = tmp_path / "fleet.auto.tfvars.json"

    with pytest.raises(BadInputError, match=r"no such file; .*apply.* or .*plan --tfvars.* writes"):
        read_wanted_fleet(missing)
    with pytest.raises(BadInputError, match="cannot be read: Is a directory"):
        read_wanted_fleet(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "not JSON: Expecting value"),
        ('fleet_name = "resnet50"', "not JSON"),
        (b"\xff\xfe{}", "not a text file"),
        ("[" * 100_000, "not JSON"),
        ('{"cost_usd_low": NaN}', "not JSON: NaN is not a number"),
        ('{"region": "a", "region": "b"}', "not JSON: region is there twice"),
        ("[]", "found [] where an object belongs"),
        ('"' + "x" * 99 + '"', "where an object belongs"),
    ],
    ids=["empty", "hcl", "bytes", "deep", "NaN", "twins", "list", "long"],
)
def test_what_is_no_json_object_is_refused(tmp_path: Path, text: str | bytes, found: str) -> None:
    told = complaint(tmp_path, text)

    assert found in told
    assert told.endswith("; `spotwright plan JOB --tfvars FILE` writes it anew")
    assert len(told) < 160


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"schema_version": 2, "x": 0},
            "schema_version is 2; this Spotwright reads 1: upgrade it; with this one "
            "`spotwright plan JOB --tfvars FILE` writes it anew",
        ),
        ({"schema_version": True}, "schema_version is true; write a whole number of at least 1"),
        ({"fleet_name": "a b"}, 'fleet_name is "a b"; write lower-case letters'),
        ({"fleet_name": "x\n"}, 'fleet_name is "x\\n"; write lower-case letters'),
        ({"region": ""}, 'region is ""; write a name'),
        ({"plan_id": 7}, "plan_id is 7; write a name"),
        ({"cost_usd_low": -1}, "cost_usd_low is -1; write a number that is not negative"),
        ({"cost_usd_high": False}, "cost_usd_high is false; write a number"),
        ({"cost_usd_high": "38.5"}, 'cost_usd_high is "38.5"; write a number'),
        ({"cost_usd_high": 10**400}, "cost_usd_high is 1000"),
        ({"pools": []}, "pools: found [] where an object belongs"),
        ({"pools": {KEY: 6}}, f"pools: {KEY}: found 6 where an object belongs"),
        ({"ami_id": "ami-1"}, "ami_id is nothing that a plan writes; settings of your own belong"),
        ({"functions": None}, "functions: found null where an object belongs"),
        ({"functions": {"memory_mb": 128}}, "functions: function_count missing"),
        (
            {"functions": {"memory_mb": 0.5, "function_count": 1}},
            "functions: memory_mb is 0.5; write a whole number of at least 1",
        ),
    ],
    ids=str,
)
def test_wrong_variables_are_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    assert complaint(tmp_path, json.dumps(FLEET | changes)).startswith(told)


def test_a_number_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    text = json.dumps(FLEET).replace("38.5", "1e999")

    assert complaint(tmp_path, text).startswith("cost_usd_high is Infinity; write a number")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"node_count": -1}, "node_count is -1; write a whole number of at least 1"),
        ({"node_count": 0}, "node_count is 0; write a whole number of at least 1"),
        ({"node_count": True}, "node_count is true; write a whole number of at least 1"),
        ({"node_count": 6.0}, "node_count is 6.0; write a whole number of at least 1"),
        ({"node_count": None}, "node_count is null; write a whole number of at least 1"),
        ({"efa_interfaces": -1}, "efa_interfaces is -1; write a whole number of at least 0"),
        ({"role": "boss"}, 'role is "boss"; write worker or ps'),
        ({"role": ["ps"]}, 'role is ["ps"]; write worker or ps'),
        ({"market": "spott"}, 'market is "spott"; write spot or on-demand'),
        ({"max_price_usd_per_hour": 0.52}, "max_price_usd_per_hour is 0.52; write a price in quot"),
        ({"max_price_usd_per_hour": "5e-1"}, 'max_price_usd_per_hour is "5e-1"; write a price'),
        ({"max_price_usd_per_hour": "0.00"}, 'max_price_usd_per_hour is "0.00"; write a price'),
        ({"max_price_usd_per_hour": "nan"}, 'max_price_usd_per_hour is "nan"; write a price'),
        ({"instance_type": ""}, 'instance_type is ""; write a name'),
        ({"user_data": "#!"}, "user_data is nothing that a plan writes"),
        ({"zone_id": "use1-az5"}, "its role, type, zone and market make it worker-g5-xlarge-use1-"),
    ],
    ids=str,
)
def test_a_wrong_pool_is_refused_by_its_name(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    assert complaint(tmp_path, with_pool(**changes)).startswith(f"pools: {KEY}: {told}")


@pytest.mark.parametrize("key", sorted(FLEET))
def test_each_variable_is_needed(tmp_path: Path, key: str) -> None:
    rest = {k: v for k, v in FLEET.items() if k != key}

    assert (
        complaint(tmp_path, json.dumps(rest))
        == f"{key} missing; `spotwright plan JOB --tfvars FILE` writes it anew"
    )


@pytest.mark.parametrize("key", sorted(POOL))
def test_each_value_of_a_pool_is_needed(tmp_path: Path, key: str) -> None:
    pool = {k: v for k, v in POOL.items() if k != key}

    told = complaint(tmp_path, json.dumps(FLEET | {"pools": {KEY: pool}}))

    assert (
        told == f"pools: {KEY}: {key} missing; `spotwright plan JOB --tfvars FILE` writes it anew"
    )
