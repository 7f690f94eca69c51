import json
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.terraform.variables import under_plan_in_force
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import FunctionGroup, NodeGroup, Role
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market
from spotwright.domain.prediction import Interval
from tests.adapters.terraform.example_fleets import (
    COSTS_USD,
    FUNCTIONS,
    GROUPS,
    group,
    own_price,
    plan_of,
    rendered,
    variables,
)

GOLDEN = """{
  "cost_usd_high": 38.5,
  "cost_usd_low": 31.0,
  "fleet_name": "resnet50",
  "plan_id": "p-1",
  "pools": {
    "ps-m5-xlarge-use1-az4-on-demand": {
      "efa_interfaces": 0,
      "instance_type": "m5.xlarge",
      "market": "on-demand",
      "max_price_usd_per_hour": "0.192",
      "node_count": 1,
      "role": "ps",
      "zone_id": "use1-az4"
    },
    "worker-g5-xlarge-use1-az4-spot": {
      "efa_interfaces": 0,
      "instance_type": "g5.xlarge",
      "market": "spot",
      "max_price_usd_per_hour": "1.006",
      "node_count": 6,
      "role": "worker",
      "zone_id": "use1-az4"
    }
  },
  "region": "us-east-1",
  "schema_version": 1
}
"""
COSTLIER = GOLDEN.replace("38.5", "41.0").replace('"p-1"', '"p-2"')
MAY_CHANGE = {"node_count", "cost_usd_low", "cost_usd_high", "plan_id"}


def test_the_text_is_the_same_to_the_byte() -> None:
    server = group("m5.xlarge", role=Role.PS, market=Market.ON_DEMAND, node_count=1)

    assert rendered(plan_of(group(), server)) == GOLDEN
    assert rendered(plan_of(server, group())) == GOLDEN


def test_what_switching_costs_is_in_both_ends_of_the_cost() -> None:
    plan = replace(plan_of(group()), cost_usd=36.0)

    told = variables(plan)

    assert (told["cost_usd_low"], told["cost_usd_high"]) == (33.0, 40.5)


def test_groups_of_one_pool_are_counted_together() -> None:
    (pool,) = variables(plan_of(group(node_count=2), group(node_count=3)))["pools"].values()

    assert pool["node_count"] == 5


def test_a_price_has_no_exponent_and_efa_is_told() -> None:
    (pool,) = variables(plan_of(group("p5.48xlarge", efa=32)))["pools"].values()

    assert pool["max_price_usd_per_hour"] == "0.00000012"
    assert pool["efa_interfaces"] == 32


def test_a_parameter_server_has_no_efa() -> None:
    (pool,) = variables(plan_of(group("p5.48xlarge", role=Role.PS, efa=32)))["pools"].values()

    assert pool["efa_interfaces"] == 0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ResNet 50 (v2)", "resnet-50-v2"),
        ("--x--", "x"),
        ("日本", "fleet"),
        ("a" * 62 + "-" + "b" * 9, "a" * 62),
        ("9", "9"),
    ],
)
def test_a_name_is_made_one_that_the_module_takes(name: str, told: str) -> None:
    assert variables(plan_of(group()), fleet_name=name)["fleet_name"] == told


def test_functions_are_told_beside_the_pools_of_their_parameter_servers() -> None:
    server = group("m5.xlarge", role=Role.PS, market=Market.ON_DEMAND, node_count=1)
    without = variables(plan_of(server))

    told = variables(plan_of(server, functions=FunctionGroup(memory_mb=128, function_count=29)))

    assert told == without | {"functions": {"memory_mb": 128, "function_count": 29}}


def test_what_the_module_cannot_rent_is_an_error_that_says_so() -> None:
    with pytest.raises(BadInputError, match="rents in us-east-1, us-west-2"):
        rendered(plan_of(group(), group("m5.xlarge", region="us-west-2")))
    with pytest.raises(BadInputError, match=r"nobody rents out g5\.xlarge"):
        rendered(plan_of(replace(group(), offer=None)))
    with pytest.raises(BadInputError, match="from gcp, and the Terraform module rents from aws"):
        rendered(plan_of(group(cloud=Cloud.GCP)))
    with pytest.raises(BadInputError, match=r"no region .* workload\.parameter_server\.type"):
        rendered(plan_of(functions=FunctionGroup(memory_mb=1024, function_count=8)))


def test_half_a_thousand_pools_are_all_there() -> None:
    nodes = [group(node_count=n, zone=f"use1-az{n}") for n in range(1, 501)]

    pools = variables(plan_of(*nodes))["pools"]

    assert [pools[f"worker-g5-xlarge-use1-az{n}-spot"]["node_count"] for n in range(1, 501)] == [
        *range(1, 501)
    ]


@given(GROUPS, FUNCTIONS, COSTS_USD)
def test_keys_are_sorted_at_every_level(
    nodes: list[NodeGroup], functions: FunctionGroup | None, cost_usd: Interval
) -> None:
    def all_sorted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
        return dict(pairs)

    plan = plan_of(*nodes, functions=functions, cost_usd=cost_usd)

    assert json.loads(rendered(plan, max_price=own_price), object_pairs_hook=all_sorted)


@given(GROUPS, st.randoms())
def test_the_order_of_a_fleet_does_not_show(nodes: list[NodeGroup], random: Any) -> None:
    def ceiling(offer: Any) -> float:  # the same for all offers of a pool, as a real one is
        return float(len(offer.zone))

    shuffled = random.sample(nodes, len(nodes))

    assert rendered(plan_of(*nodes), max_price=ceiling) == rendered(
        plan_of(*shuffled), max_price=ceiling
    )


@given(GROUPS)
def test_no_node_is_lost_and_each_pool_has_the_name_that_the_module_gives_it(
    nodes: list[NodeGroup],
) -> None:
    pools = variables(plan_of(*nodes), max_price=own_price)["pools"]

    assert sum(p["node_count"] for p in pools.values()) == sum(g.node_count for g in nodes)
    for key, p in pools.items():
        parts = (p["role"], p["instance_type"].replace(".", "-"), p["zone_id"], p["market"])
        assert key == "-".join(parts)
        assert re.fullmatch("[a-z0-9-]+", key)


@given(GROUPS)
def test_a_price_is_the_decimal_that_was_given(nodes: list[NodeGroup]) -> None:
    pools = variables(plan_of(nodes[0]), max_price=own_price)["pools"]

    (price,) = (p["max_price_usd_per_hour"] for p in pools.values())
    assert re.fullmatch(r"\d+\.\d+", price)
    assert nodes[0].offer is not None
    assert Decimal(price) == Decimal(str(nodes[0].offer.price_usd_per_hour))


@given(GROUPS, st.lists(st.integers(1, 1000), min_size=12, max_size=12), COSTS_USD)
def test_another_count_changes_counts_costs_and_the_plan_alone(
    nodes: list[NodeGroup], counts: list[int], cost_usd: Interval
) -> None:
    others = [replace(g, node_count=n) for g, n in zip(nodes, counts, strict=False)]

    before = rendered(plan_of(*nodes), max_price=own_price).splitlines()
    after = rendered(
        plan_of(*others, cost_usd=cost_usd), plan_id="p-2", max_price=own_price
    ).splitlines()

    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert {re.findall(r"\w+", line)[0] for line in changed} <= MAY_CHANGE


def test_the_same_nodes_keep_the_plan_id_in_force_and_get_the_new_cost() -> None:
    kept = under_plan_in_force(COSTLIER, in_force=GOLDEN)

    assert kept == GOLDEN.replace("38.5", "41.0")


def test_other_nodes_are_asked_for_by_their_own_plan() -> None:
    more = COSTLIER.replace('"node_count": 6', '"node_count": 7')

    assert under_plan_in_force(more, in_force=GOLDEN) == more
