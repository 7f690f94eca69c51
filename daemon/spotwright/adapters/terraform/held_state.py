"""What a state holds, and where in it something belongs that it does not hold.

`terraform state pull` tells ids as well as addresses, and starts no provider.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from spotwright.domain.errors import TerraformError
from spotwright.domain.fleet import Role
from spotwright.domain.rental import RentedKind, UnheldRental, WantedFleet, WantedPool

_SHAPE = ".terraform_data.shape"  # made before whatever a pool rents


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldState:
    """The resources of a state, data sources left out."""

    addresses: frozenset[str]
    ids: frozenset[str]  # also of what a replacement has yet to remove


def read_state(text: str) -> HeldState:
    """Read what `terraform state pull` says; nothing at all where there is no state yet.

    Raises:
        TerraformError: it is not a state.
    """
    try:
        document = json.loads(text) if text.strip() else {}
        found = list(_instances(document))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TerraformError(f"the state cannot be read: {error!r}") from error
    return HeldState(
        addresses=frozenset(address for address, _ in found),
        ids=frozenset(held for _, held in found if held is not None),
    )


def _instances(document: dict[str, Any]) -> Iterable[tuple[str, str | None]]:
    for resource in document.get("resources", ()):
        if resource["mode"] != "managed":
            continue
        parts = [resource["module"]] if "module" in resource else []
        name = ".".join([*parts, resource["type"], resource["name"]])
        for instance in resource["instances"]:
            key = instance.get("index_key")
            held = (instance.get("attributes") or {}).get("id")
            yield name if key is None else f"{name}[{json.dumps(key)}]", held


def free_address(rental: UnheldRental, state: HeldState, *, wanted: WantedFleet) -> str | None:
    """Return where in the state a rental belongs; None: in no place that is free.

    Args:
        rental: what the state does not hold.
        state: what it does.
        wanted: what the folder's variables ask for.
    """
    role = Role.WORKER if rental.kind is RentedKind.GROUP else Role.PS
    for pool in wanted.pools:
        if (pool.key, pool.role) == (rental.pool_key, role):
            module = _module(pool.key, state, is_serverless=wanted.functions is not None)
            places = (f"{module}.{place}" for place in _places(pool))
            return next((place for place in places if place not in state.addresses), None)
    return None


def is_made(pool_key: str, addresses: Iterable[str]) -> bool:
    """Tell whether a group of that pool, or an instance (POOL/0), is among addresses."""
    kinds = ("aws_autoscaling_group.", "aws_instance.")
    nodes = (f'["{pool_key}"]', f'["{pool_key}/')
    return any(
        any(kind in address for kind in kinds) and any(node in address for node in nodes)
        for address in addresses
    )


def held_part(fleet: WantedFleet, addresses: Collection[str]) -> WantedFleet:
    """Return what of a fleet is among addresses: whole groups, and servers one by one."""
    counts = [(pool, _held_count(pool, addresses)) for pool in fleet.pools]
    return replace(fleet, pools=tuple(replace(pool, node_count=n) for pool, n in counts if n))


def _held_count(pool: WantedPool, addresses: Collection[str]) -> int:
    servers = sum("aws_instance." in a and f'["{pool.key}/' in a for a in addresses)
    return servers or (pool.node_count if is_made(pool.key, addresses) else 0)


def _places(pool: WantedPool) -> list[str]:
    if pool.role is Role.WORKER:
        return [f'aws_autoscaling_group.this["{pool.key}"]']
    return [f'aws_instance.this["{pool.key}/{number}"]' for number in range(pool.node_count)]


def _module(pool_key: str, state: HeldState, *, is_serverless: bool) -> str:
    """Return the module that rents a pool, by what the state holds of it."""
    end = f'{_SHAPE}["{pool_key}"]'
    calls = sorted(a.removesuffix(end) for a in state.addresses if a.endswith(end))
    return calls[0] if calls else "module.fleet.module.fleet" if is_serverless else "module.fleet"
