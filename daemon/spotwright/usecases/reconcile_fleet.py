"""Wanted against granted against billed: compare a file of variables with what a cloud runs.

A node counts for the pool whose key it is tagged with. It is granted when its type, zone and market
are those of the pool; otherwise it is there, paid for, and told as what it is. A pool is short only
of nodes that are not there at all.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from spotwright.domain.offer import Pool
from spotwright.domain.reconciliation import (
    Bill,
    ComparedPool,
    Difference,
    DifferenceKind,
    Reconciliation,
)
from spotwright.domain.rental import GrantedFleet, UnheldRental, WantedFleet, WantedPool
from spotwright.usecases.find_unheld import find_unheld
from spotwright.usecases.pool_differences import pool_differences
from spotwright.usecases.stray_differences import stray_differences
from spotwright.usecases.unheld_differences import SEE_TO_UNHELD, unheld_differences


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderState:
    """What the folder of a fleet knows of what it has rented."""

    held_ids: Collection[str]
    is_cut_off: bool  # an apply there did not end well: the next takes in what it left


def reconcile_fleet(
    wanted: WantedFleet,
    granted: GrantedFleet,
    *,
    prices: Mapping[Pool, float],
    state: FolderState | None = None,
) -> Reconciliation:
    """Return how a rented fleet differs from the one that was asked for.

    Args:
        wanted: what the file asks for.
        granted: what runs or starts under the fleet's name.
        prices: of one node per hour, now; a pool without one is left out, and so is its money.
        state: what the folder holds; None: not known, and all that runs is taken for held.
    """
    unheld = find_unheld(granted, held_ids=state.held_ids, wanted=wanted) if state else ()
    held = _without(granted, unheld)
    pools = tuple(_compared(pool, held, prices) for pool in wanted.pools)
    of_pools = [difference for pool in pools for difference in pool_differences(pool, prices)]
    of_pools = _after_unheld(of_pools, {rental.pool_key for rental in unheld})
    known_keys = {pool.key for pool in wanted.pools}
    return Reconciliation(
        wanted=wanted,
        pools=pools,
        billed=Bill.of(prices.get(node.pool) for node in granted.nodes),
        differences=(
            *of_pools,
            *stray_differences(held, prices, known_keys=known_keys),
            *unheld_differences(
                unheld, granted, prices, wanted=wanted, is_cut_off=bool(state and state.is_cut_off)
            ),
        ),
    )


def _after_unheld(
    differences: Sequence[Difference], unheld_keys: Collection[str | None]
) -> list[Difference]:
    """Return differences whose way out does not rent twice what is only not in the state."""
    return [
        replace(difference, way_out=SEE_TO_UNHELD)
        if difference.kind is DifferenceKind.MISSING_NODES and difference.pool_key in unheld_keys
        else difference
        for difference in differences
    ]


def _without(granted: GrantedFleet, unheld: Sequence[UnheldRental]) -> GrantedFleet:
    """Return what the folder rents: what is not its own is told by itself."""
    rental_ids = {rental.rental_id for rental in unheld}
    node_ids = {instance_id for rental in unheld for instance_id in rental.instance_ids}
    return GrantedFleet(
        nodes=tuple(node for node in granted.nodes if node.instance_id not in node_ids),
        groups=tuple(group for group in granted.groups if group.name not in rental_ids),
    )


def _compared(
    pool: WantedPool, granted: GrantedFleet, prices: Mapping[Pool, float]
) -> ComparedPool:
    nodes = tuple(node for node in granted.nodes if node.pool_key == pool.key)
    groups = [group for group in granted.groups if group.pool_key == pool.key]
    refusals = [group.refusal for group in groups if group.refusal is not None]
    price = prices.get(pool.pool)
    return ComparedPool(
        wanted=pool,
        nodes=nodes,
        desired_count=sum(group.desired_count for group in groups) if groups else None,
        refusal=refusals[-1] if refusals else None,
        planned_usd_per_hour=None if price is None else price * pool.node_count,
        billed=Bill.of(prices.get(node.pool) for node in nodes),
        group_names=tuple(group.name for group in groups),
    )
