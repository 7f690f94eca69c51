import json
from dataclasses import replace
from typing import Any

import pytest

from spotwright.adapters.terraform.variables import tfvars_json
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import Fleet, FunctionGroup, NodeGroup, Role
from spotwright.domain.hardware import Cloud, InstanceType
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Plan
from spotwright.domain.prediction import Interval
from tests.adapters.report.example_plans import plan_of as plan_with
from tests.adapters.report.example_plans import predicted

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
PRICES = {"g5.xlarge": 1.006, "m5.xlarge": 0.192, "p5.48xlarge": 0.00000012}


def group(
    name: str = "g5.xlarge",
    *,
    role: Role = Role.WORKER,
    market: Market = Market.SPOT,
    node_count: int = 6,
    region: str = "us-east-1",
    efa: int = 0,
) -> NodeGroup:
    kind = InstanceType(
        name=name, cloud=Cloud.AWS, vcpu_count=4.0, memory_gib=16.0, efa_interface_count=efa
    )
    offer = Offer(
        instance_type=kind, region=region, zone="use1-az4", market=market, price_usd_per_hour=0.1
    )
    return NodeGroup(
        role=role, instance_type=kind, node_count=node_count, gpus_per_node=0.0, offer=offer
    )


def plan_of(*nodes: NodeGroup, functions: FunctionGroup | None = None) -> Plan:
    prediction = replace(
        predicted("resnet50.yaml", "g5.xlarge"),
        fleet=Fleet(nodes=nodes, functions=functions),
        cost_usd=Interval(31.0, 34.0, 38.5),
    )
    return plan_with(prediction)


def rendered(plan: Plan, *, fleet_name: str = "resnet50") -> str:
    return tfvars_json(
        plan,
        fleet_name=fleet_name,
        plan_id="p-1",
        max_price_usd_per_hour=lambda offer: PRICES[offer.instance_type.name],
    )


def variables(plan: Plan, **changes: Any) -> Any:
    return json.loads(rendered(plan, **changes))


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


def test_what_the_module_cannot_rent_is_an_error_that_says_so() -> None:
    functions = FunctionGroup(memory_mb=1024, function_count=8)
    with pytest.raises(BadInputError, match="runs functions"):
        rendered(plan_of(group(), functions=functions))
    with pytest.raises(BadInputError, match="rents in us-east-1, us-west-2"):
        rendered(plan_of(group(), group("m5.xlarge", region="us-west-2")))
    with pytest.raises(BadInputError, match=r"nobody rents out g5\.xlarge"):
        rendered(plan_of(replace(group(), offer=None)))
