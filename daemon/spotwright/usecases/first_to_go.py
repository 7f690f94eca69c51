"""Which nodes end where a fleet gets smaller.

A group that is told to keep fewer nodes ends any of them. What is known to go anyway is therefore
ended by name first, as far as nodes are to go; only the rest is left to the cloud.
"""

from collections.abc import Sequence

from spotwright.domain.rental import GrantedFleet, WantedFleet


def first_to_go(granted: GrantedFleet, wanted: WantedFleet, going: Sequence[str]) -> list[str]:
    """Return the nodes to be ended by name, each for one that its group shall no longer keep.

    Args:
        granted: what runs.
        wanted: what is to run. The groups of pools that it does not have end as a whole.
        going: nodes that are no loss, by their instance ids, the first ones first.
    """
    counts = {pool.key: pool.node_count for pool in wanted.pools}
    surplus = {
        group.name: group.desired_count - counts[group.pool_key]
        for group in granted.groups
        if group.pool_key in counts
    }
    groups = {node.instance_id: node.group_name for node in granted.nodes}
    found = []
    for instance_id in dict.fromkeys(going):
        group = groups.get(instance_id)
        if group is not None and surplus.get(group, 0) > 0:
            surplus[group] -= 1
            found.append(instance_id)
    return found
