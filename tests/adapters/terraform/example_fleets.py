"""Plans of fleets made up by hand, or by hypothesis, and their variables."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from spotwright.adapters.terraform.variables import tfvars_json
from spotwright.domain.fleet import Fleet, FunctionGroup, NodeGroup, Role
from spotwright.domain.hardware import Cloud, InstanceType
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Plan
from spotwright.domain.prediction import Interval
from tests.adapters.report.example_plans import plan_of as plan_with
from tests.adapters.report.example_plans import predicted

COST_USD = Interval(31.0, 34.0, 38.5)
PRICES = {"g5.xlarge": 1.006, "m5.xlarge": 0.192, "p5.48xlarge": 0.00000012}


def group(
    name: str = "g5.xlarge",
    *,
    role: Role = Role.WORKER,
    market: Market = Market.SPOT,
    node_count: int = 6,
    region: str = "us-east-1",
    zone: str = "use1-az4",
    efa: int = 0,
    cloud: Cloud = Cloud.AWS,
    price: float = 0.1,
) -> NodeGroup:
    kind = InstanceType(
        name=name, cloud=cloud, vcpu_count=4.0, memory_gib=16.0, efa_interface_count=efa
    )
    offer = Offer(
        instance_type=kind, region=region, zone=zone, market=market, price_usd_per_hour=price
    )
    return NodeGroup(
        role=role, instance_type=kind, node_count=node_count, gpus_per_node=0.0, offer=offer
    )


def plan_of(
    *nodes: NodeGroup,
    functions: FunctionGroup | None = None,
    cost_usd: Interval = COST_USD,
) -> Plan:
    prediction = replace(
        predicted("resnet50.yaml", "g5.xlarge"),
        fleet=Fleet(nodes=nodes, functions=functions),
        cost_usd=cost_usd,
    )
    return plan_with(prediction)


def rendered(
    plan: Plan,
    *,
    fleet_name: str = "resnet50",
    plan_id: str = "p-1",
    max_price: Callable[[Offer], float] = lambda offer: PRICES[offer.instance_type.name],
) -> str:
    return tfvars_json(
        plan, fleet_name=fleet_name, plan_id=plan_id, max_price_usd_per_hour=max_price
    )


def variables(plan: Plan, **changes: Any) -> Any:
    return json.loads(rendered(plan, **changes))


def own_price(offer: Offer) -> float:
    return offer.price_usd_per_hour


COSTS_USD = st.lists(st.floats(0, 1e9), min_size=3, max_size=3).map(
    lambda usd: Interval(*sorted(usd))
)
FUNCTIONS = st.none() | st.builds(
    FunctionGroup, memory_mb=st.integers(128, 10240), function_count=st.integers(1, 5000)
)
GROUPS = st.lists(
    st.builds(
        group,
        st.sampled_from(["g5.xlarge", "g4dn.12xlarge", "p5.48xlarge", "u-6tb1.metal"]),
        role=st.sampled_from(Role),
        market=st.sampled_from(Market),
        node_count=st.integers(1, 1000),
        zone=st.sampled_from(["use1-az1", "use1-az4", "use1-bos1-az1"]),
        price=st.floats(1e-12, 1e6),
    ),
    min_size=1,
    max_size=12,
)
