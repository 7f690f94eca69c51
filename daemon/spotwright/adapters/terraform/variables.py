"""A plan as the variables of the Terraform module: what belongs in fleet.auto.tfvars.json.

terraform/variables.tf says what each of them means. Keys are sorted: the difference between two
files is the decision.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import NodeGroup
from spotwright.domain.offer import Offer
from spotwright.domain.plan import Plan

_SCHEMA_VERSION = 1
_MAX_NAME = 63


def tfvars_json(
    plan: Plan,
    *,
    fleet_name: str,
    plan_id: str,
    max_price_usd_per_hour: Callable[[Offer], float],
) -> str:
    """Return the text of the variables that rent a plan's fleet.

    Args:
        plan: whose fleet is rented.
        fleet_name: the job's name; what the module does not take is replaced.
        plan_id: which plan asks for the fleet.
        max_price_usd_per_hour: the most that one node of an offer may cost.

    Raises:
        BadInputError: functions, nodes that nobody rents out, or several regions.
    """
    rented = list(_rented(plan))
    cost_usd = plan.cost_interval_usd
    variables = {
        "schema_version": _SCHEMA_VERSION,
        "fleet_name": _module_name(fleet_name),
        "plan_id": plan_id,
        "region": _only_region(offer for _, offer in rented),
        "cost_usd_low": cost_usd.low,
        "cost_usd_high": cost_usd.high,
        "pools": _pools(rented, max_price_usd_per_hour),
    }
    return json.dumps(variables, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _rented(plan: Plan) -> Iterator[tuple[NodeGroup, Offer]]:
    fleet = plan.prediction.fleet
    if fleet.functions is not None:
        raise BadInputError(
            "this plan runs functions, and the Terraform module rents instances only; deploy the "
            "functions by other means, or plan with a strategy that trains on instances"
        )
    for group in fleet.nodes:
        if group.offer is None:
            raise BadInputError(f"nobody rents out {group.instance_type.name}; plan with types")
        yield group, group.offer


def _only_region(offers: Iterable[Offer]) -> str:
    regions = sorted({offer.region for offer in offers})
    if len(regions) != 1:
        raise BadInputError(
            f"this plan rents in {', '.join(regions)}, and the Terraform module rents in one "
            "region; set limits.placement to one-region and plan again"
        )
    return regions[0]


def _pools(
    rented: Iterable[tuple[NodeGroup, Offer]], max_price_usd_per_hour: Callable[[Offer], float]
) -> dict[str, dict[str, Any]]:
    pools: dict[str, dict[str, Any]] = {}
    for group, offer in rented:
        kind = offer.instance_type
        key = f"{group.role}-{kind.name.replace('.', '-')}-{offer.zone}-{offer.market}"
        pool = {
            "role": group.role,
            "instance_type": kind.name,
            "zone_id": offer.zone,
            "market": offer.market,
            "node_count": 0,
            "max_price_usd_per_hour": _decimal(max_price_usd_per_hour(offer)),
            "efa_interfaces": kind.efa_interface_count,
        }
        pools.setdefault(key, pool)["node_count"] += group.node_count
    return pools


def _decimal(price: float) -> str:
    """Return a price without an exponent, which AWS would not read."""
    return format(Decimal(repr(float(price))), "f")


def _module_name(name: str) -> str:
    """Return a name of lower-case letters, digits and hyphens."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return plain[:_MAX_NAME].rstrip("-") or "fleet"
