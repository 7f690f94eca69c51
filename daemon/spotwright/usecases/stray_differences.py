"""What runs under a fleet's name without a place in the file that asks for the fleet."""

from collections.abc import Collection, Iterator, Mapping

from spotwright.domain.offer import Pool
from spotwright.domain.reconciliation import Difference, DifferenceKind
from spotwright.domain.rental import GrantedFleet, GrantedGroup, GrantedNode
from spotwright.usecases.pool_differences import END_THEM, PUT_BACK, bill_text, ids, price_unknown


def stray_differences(
    granted: GrantedFleet, prices: Mapping[Pool, float], *, known_keys: Collection[str]
) -> Iterator[Difference]:
    """Yield the nodes and groups whose pool the file does not have, by the key they bear."""
    nodes = [node for node in granted.nodes if node.pool_key not in known_keys]
    groups = [group for group in granted.groups if group.pool_key not in known_keys]
    keys = {node.pool_key for node in nodes} | {group.pool_key for group in groups}
    for key in sorted(keys, key=lambda key: key or ""):
        ours = [node for node in nodes if node.pool_key == key]
        kept_by = [group for group in groups if group.pool_key == key]
        if ours:
            yield _stray_nodes(key, ours, prices, is_kept=bool(kept_by))
        if kept_by:
            yield _stray_group(key, kept_by)
        unpriced = [node for node in ours if node.pool not in prices]
        if unpriced:
            yield price_unknown(key, unpriced)


def _stray_nodes(
    key: str | None, nodes: list[GrantedNode], prices: Mapping[Pool, float], *, is_kept: bool
) -> Difference:
    count = len(nodes)
    verb = "node runs" if count == 1 else "nodes run"
    return Difference(
        kind=DifferenceKind.STRAY_NODES,
        pool_key=key,
        instance_ids=ids(nodes),
        text=f"{count} {verb} under the fleet's name {_without(key)}: paid for and not in the "
        f"plan, {bill_text(nodes, prices)}",
        way_out=PUT_BACK if is_kept else END_THEM,
    )


def _stray_group(key: str | None, groups: list[GrantedGroup]) -> Difference:
    count = sum(group.desired_count for group in groups)
    return Difference(
        kind=DifferenceKind.STRAY_GROUP,
        pool_key=key,
        instance_ids=(),
        text=f"a group {_without(key)} was told to keep {count}",
        way_out=PUT_BACK,
    )


def _without(key: str | None) -> str:
    return "without a pool" if key is None else f"for {key}, a pool that the file does not have"
