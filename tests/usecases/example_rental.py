"""Small fleets that are wanted, and nodes as a cloud would grant them."""

from datetime import UTC, datetime, timedelta
from itertools import count

from spotwright.domain.fleet import Role
from spotwright.domain.offer import Market, Pool
from spotwright.domain.rental import (
    GrantedFleet,
    GrantedGroup,
    GrantedNode,
    Refusal,
    WantedFleet,
    WantedPool,
)

ZONE = "use1-az4"
G5_SPOT = Pool("g5.xlarge", ZONE, Market.SPOT)
G5_ON_DEMAND = Pool("g5.xlarge", ZONE, Market.ON_DEMAND)
M5 = Pool("m5.xlarge", ZONE, Market.ON_DEMAND)
PRICES = {G5_SPOT: 0.4, G5_ON_DEMAND: 1.0, M5: 0.2}
WORKERS, SERVERS = "worker-g5-xlarge-use1-az4-spot", "ps-m5-xlarge-use1-az4-on-demand"

_NUMBERS = count(1)


def wanted_pool(
    node_count: int, *, role: Role = Role.WORKER, pool: Pool = G5_SPOT, ceiling: float = 0.5
) -> WantedPool:
    return WantedPool(
        key=f"{role}-{pool.instance_type.replace('.', '-')}-{pool.zone}-{pool.market}",
        role=role,
        instance_type=pool.instance_type,
        zone=pool.zone,
        market=pool.market,
        node_count=node_count,
        max_price_usd_per_hour=ceiling,
    )


def wanted_fleet(worker_count: int = 3, server_count: int = 1, ceiling: float = 0.5) -> WantedFleet:
    return WantedFleet(
        name="resnet50",
        plan_id="p-1",
        region="us-east-1",
        low_cost_usd=31.0,
        high_cost_usd=38.5,
        pools=(
            wanted_pool(server_count, role=Role.PS, pool=M5),
            wanted_pool(worker_count, ceiling=ceiling),
        ),
    )


def nodes(node_count: int, *, key: str | None = WORKERS, pool: Pool = G5_SPOT) -> list[GrantedNode]:
    """Return nodes with names of their own, each younger than the one before."""
    return [
        GrantedNode(
            instance_id=f"i-{number:08x}",
            pool_key=key,
            instance_type=pool.instance_type,
            zone=pool.zone,
            market=pool.market,
            launch_time=datetime(2026, 11, 18, tzinfo=UTC) + timedelta(seconds=number),
        )
        for number in (next(_NUMBERS) for _ in range(node_count))
    ]


def group(
    desired_count: int,
    *,
    key: str | None = WORKERS,
    refusal: Refusal | None = None,
    name: str = "resnet50-w-1",
) -> GrantedGroup:
    return GrantedGroup(name=name, pool_key=key, desired_count=desired_count, refusal=refusal)


def granted(
    workers: list[GrantedNode], *others: GrantedNode, groups: tuple[GrantedGroup, ...] = ()
) -> GrantedFleet:
    """Return a fleet with the one parameter server that `wanted_fleet` asks for."""
    servers = nodes(1, key=SERVERS, pool=M5)
    return GrantedFleet(nodes=(*workers, *others, *servers), groups=groups)
