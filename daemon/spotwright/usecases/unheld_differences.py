"""What runs under a fleet's name beside the state of its folder, in words."""

from collections.abc import Iterator, Mapping, Sequence

from spotwright.domain.fleet import Role
from spotwright.domain.offer import Pool
from spotwright.domain.reconciliation import Difference, DifferenceKind
from spotwright.domain.rental import GrantedFleet, RentedKind, UnheldRental, WantedFleet
from spotwright.usecases.pool_differences import bill_text

SEE_TO_UNHELD = (
    "see first to what is not in the state, below: plain `terraform apply` would rent it twice"
)
_TAKE_IN = (
    "run `spotwright apply` or `spotwright destroy`: an apply was cut off in this folder, or is "
    "at work, and both take into the state what was left"
)


def unheld_differences(
    unheld: Sequence[UnheldRental],
    granted: GrantedFleet,
    prices: Mapping[Pool, float],
    *,
    wanted: WantedFleet,
    is_cut_off: bool,
) -> Iterator[Difference]:
    """Yield each group and each server that the folder's state does not hold."""
    for rental in unheld:
        nodes = [node for node in granted.nodes if node.instance_id in rental.instance_ids]
        has_place = _has_place(rental, unheld, granted, wanted)
        yield Difference(
            kind=DifferenceKind.NOT_IN_STATE,
            pool_key=rental.pool_key,
            instance_ids=rental.instance_ids,
            text=f"{rental}, {bill_text(nodes, prices)}, is not in this folder's state",
            way_out=_TAKE_IN if is_cut_off and has_place else _by_hand(rental, wanted.region),
        )


def _by_hand(rental: UnheldRental, region: str) -> str:
    return (
        "work in the folder that it was rented from; if nobody needs it, "
        f"`{rental.removal_command(region)}`"
    )


def _has_place(
    rental: UnheldRental,
    unheld: Sequence[UnheldRental],
    granted: GrantedFleet,
    wanted: WantedFleet,
) -> bool:
    """Tell whether the state has room for it: a pool of workers is one group."""
    counts = {pool.key: (pool.role, pool.node_count) for pool in wanted.pools}
    role, node_count = counts.get(rental.pool_key or "", (None, 0))
    same_key = [other for other in unheld if other.pool_key == rental.pool_key]
    if rental.kind is RentedKind.GROUP:
        groups = [group for group in granted.groups if group.pool_key == rental.pool_key]
        return role is Role.WORKER and len(groups) == len(same_key) and same_key[0] == rental
    nodes = [node for node in granted.nodes if node.pool_key == rental.pool_key]
    return role is Role.PS and len(nodes) <= node_count
