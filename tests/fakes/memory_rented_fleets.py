"""A cloud that rents out nodes in memory: what a test starts, runs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.offer import Market, Pool
from spotwright.domain.rental import GrantedFleet, GrantedGroup, GrantedNode

_OF_GROUPS = Pool("g5.xlarge", "use1-az4", Market.ON_DEMAND)
_FIRST_LAUNCH = datetime(2026, 11, 18, tzinfo=UTC)


@dataclass
class MemoryRentedFleets:
    """Nodes and groups by the fleet they were started for; each node is a minute younger."""

    spot_prices: Mapping[Pool, float] = field(default_factory=dict)
    _nodes: dict[str, tuple[str, GrantedNode]] = field(default_factory=dict)
    _groups: list[tuple[str, GrantedGroup]] = field(default_factory=list)
    _started_count: int = 0

    def start(
        self, fleet_name: str, pool: Pool, *, pool_key: str | None, group_name: str | None = None
    ) -> str:
        self._started_count += 1
        node = GrantedNode(
            instance_id=f"i-{self._started_count:08x}",
            pool_key=pool_key,
            instance_type=pool.instance_type,
            zone=pool.zone,
            market=pool.market,
            launch_time=_FIRST_LAUNCH + timedelta(minutes=self._started_count),
            group_name=group_name,
        )
        self._nodes[node.instance_id] = fleet_name, node
        return node.instance_id

    def end(self, instance_id: str) -> None:
        del self._nodes[instance_id]

    def add_group(self, fleet_name: str, *, pool_key: str | None, desired_count: int) -> None:
        name = f"{fleet_name}-{pool_key}-{len(self._groups)}"
        group = GrantedGroup(
            name=name, pool_key=pool_key, desired_count=desired_count, refusal=None
        )
        self._groups.append((fleet_name, group))
        for _ in range(desired_count):
            self.start(fleet_name, _OF_GROUPS, pool_key=pool_key, group_name=name)

    def end_node(self, instance_id: str, *, is_replaced: bool) -> None:
        _, node = self._nodes.get(instance_id, ("", None))
        if node is None or node.group_name is None:
            raise OutsideWorldError(f"no group has a node {instance_id}")
        self.end(instance_id)
        for number, (fleet_name, group) in enumerate(self._groups):
            if group.name == node.group_name and is_replaced:
                self.start(
                    fleet_name, node.pool, pool_key=node.pool_key, group_name=node.group_name
                )
            elif group.name == node.group_name:
                fewer = replace(group, desired_count=group.desired_count - 1)
                self._groups[number] = fleet_name, fewer

    def granted(self, fleet_name: str) -> GrantedFleet:
        nodes = [node for name, node in self._nodes.values() if name == fleet_name]
        groups = [group for name, group in self._groups if name == fleet_name]
        return GrantedFleet(
            nodes=tuple(sorted(nodes, key=lambda node: node.instance_id)),
            groups=tuple(sorted(groups, key=lambda group: group.pool_key or "")),
        )

    def spot_prices_usd_per_hour(self, pools: Collection[Pool]) -> Mapping[Pool, float]:
        return {
            pool: price
            for pool, price in self.spot_prices.items()
            if pool in pools and pool.market is Market.SPOT
        }
