"""A plan as the variables of the Terraform module: what belongs in fleet.auto.tfvars.json.

terraform/variables.tf says what each of them means; those of a plan with functions are read by
terraform/modules/serverless. Keys are sorted: the difference between two files is the decision.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Offer, Pool
from spotwright.domain.plan import Plan

SCHEMA_VERSION = 1
_MAX_NAME = 63
_COST_DECIMALS = 4  # a hundredth of a cent: for people who review


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
        BadInputError: nodes that AWS does not rent out, no node at all, or several regions.
    """
    fleet, cost_usd = plan.prediction.fleet, plan.cost_interval_usd
    rented = list(_rented(fleet))
    variables = {
        "schema_version": SCHEMA_VERSION,
        "fleet_name": _module_name(fleet_name),
        "plan_id": plan_id,
        "region": _only_region(offer for _, offer in rented),
        "cost_usd_low": round(cost_usd.low, _COST_DECIMALS),
        "cost_usd_high": round(cost_usd.high, _COST_DECIMALS),
        "pools": _pools(rented, max_price_usd_per_hour),
    }
    if fleet.functions is not None:
        variables["functions"] = {
            "memory_mb": fleet.functions.memory_mb,
            "function_count": fleet.functions.function_count,
        }
    return _text(variables)


def under_plan_in_force(fresh: str, *, in_force: str) -> str:
    """Return fresh variables with the plan id in force, if both ask for the same nodes.

    The id is a tag of every node, and another one would change them all for nothing.
    """
    new, old = json.loads(fresh), json.loads(in_force)
    if any(new.get(part) != old.get(part) for part in ("pools", "functions")):
        return fresh
    return _text(new | {"plan_id": old["plan_id"]})


def pool_key(role: Role, pool: Pool) -> str:
    """Return what the module knows a pool by: the same from plan to plan."""
    return f"{role}-{pool.instance_type.replace('.', '-')}-{pool.zone}-{pool.market}"


def _rented(fleet: Fleet) -> Iterator[tuple[NodeGroup, Offer]]:
    for group in fleet.nodes:
        name, cloud = group.instance_type.name, group.instance_type.cloud
        if group.offer is None:
            raise BadInputError(f"nobody rents out {name}; plan with types")
        if cloud is not Cloud.AWS:
            raise BadInputError(
                f"this plan rents {name} from {cloud}, and the Terraform module rents from aws; "
                "set limits.cloud to aws and plan again"
            )
        yield group, group.offer


def _only_region(offers: Iterable[Offer]) -> str:
    regions = sorted({offer.region for offer in offers})
    if not regions:
        raise BadInputError(
            "this plan rents no instance, so it names no region to run its functions in; give the "
            "job a parameter server, workload.parameter_server.type, and plan again"
        )
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
        pool = {
            "role": group.role,
            "instance_type": kind.name,
            "zone_id": offer.zone,
            "market": offer.market,
            "node_count": 0,
            "max_price_usd_per_hour": _decimal(max_price_usd_per_hour(offer)),
            "efa_interfaces": kind.efa_interface_count if group.role is Role.WORKER else 0,
        }
        wanted = pools.setdefault(pool_key(group.role, offer.pool), pool)
        wanted["node_count"] += group.node_count
    return pools


def _text(variables: Mapping[str, Any]) -> str:
    return json.dumps(variables, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _decimal(price: float) -> str:
    """Return a price without an exponent, which AWS would not read."""
    return format(Decimal(repr(float(price))), "f")


def _module_name(name: str) -> str:
    """Return a name of lower-case letters, digits and hyphens."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return plain[:_MAX_NAME].rstrip("-") or "fleet"
