"""What is paid for under a fleet's name and is not in the state of its folder.

An apply that is cut off may leave a group whose name Terraform never heard. Names end in a number
of the provider's own, so the next apply would not collide with it: it would make a second one.
"""

from collections.abc import Collection

from spotwright.domain.fleet import Role
from spotwright.domain.rental import GrantedFleet, RentedKind, UnheldRental, WantedFleet


def find_unheld(
    granted: GrantedFleet, *, held_ids: Collection[str], wanted: WantedFleet
) -> tuple[UnheldRental, ...]:
    """Return the groups and parameter servers of a fleet that a state does not hold.

    What has no pool's tag was not made by the module, and a worker without a group was taken out
    of it by somebody: neither is what an apply leaves.

    Args:
        granted: what runs under the fleet's name.
        held_ids: ids of what the state holds.
        wanted: tells which pools are those of parameter servers.
    """
    servers = {pool.key for pool in wanted.pools if pool.role is Role.PS}
    return tuple(
        rental
        for rental in still_rented(granted)
        if rental.rental_id not in held_ids
        and rental.pool_key is not None
        and (rental.kind is RentedKind.GROUP or rental.pool_key in servers)
    )


def still_rented(granted: GrantedFleet) -> tuple[UnheldRental, ...]:
    """Return all that runs under a fleet's name where no state holds any of it."""
    groups = [
        UnheldRental(
            kind=RentedKind.GROUP,
            rental_id=group.name,
            pool_key=group.pool_key,
            instance_ids=tuple(n.instance_id for n in granted.nodes if n.group_name == group.name),
        )
        for group in granted.groups
    ]
    nodes = [
        UnheldRental(
            kind=RentedKind.NODE,
            rental_id=node.instance_id,
            pool_key=node.pool_key,
            instance_ids=(node.instance_id,),
        )
        for node in granted.nodes
        if node.group_name is None
    ]
    return (*groups, *nodes)
