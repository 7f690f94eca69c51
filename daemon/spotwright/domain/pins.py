"""Pins that no fleet can keep, because the other limits of the same job forbid it."""

from collections.abc import Iterator, Mapping

from spotwright.domain.errors import PinnedPoolError
from spotwright.domain.job import Limits, Placement
from spotwright.domain.offer import Pool


def pin_clashes(limits: Limits) -> Iterator[PinnedPoolError]:
    """Yield what is wrong with the pins; what the market offers is not looked at."""
    pins = limits.min_count_by_pool
    for pool, count in pins.items():
        for problem in _forbidden(limits, pool, count):
            yield pin_clash(pool, problem)
    for name, most in limits.max_count_by_type.items():
        of_type = {pool: count for pool, count in pins.items() if pool.instance_type == name}
        yield from _too_many_nodes(of_type, most, f"limits.max_count of {name}")
    yield from _too_many_nodes(pins, limits.max_nodes, "limits.max_nodes")
    yield from _too_many_pools(limits)
    yield from _too_far_apart(limits)


def pin_clash(pool: Pool, problem: str) -> PinnedPoolError:
    """Return the error for one pool that may not be rented at all, or not as often."""
    text = f"{pool} is pinned, but {problem}; drop the pin or change that limit"
    return PinnedPoolError(text, pool=str(pool))


def _forbidden(limits: Limits, pool: Pool, count: int) -> Iterator[str]:
    if pool in limits.excluded_pools and limits.excluded_pools[pool] is None:
        yield "also in limits.exclude_pools"
    if pool.instance_type in limits.excluded_types:
        yield f"{pool.instance_type} is in limits.exclude_types"
    for limit, allowed, name in (
        ("limits.types", limits.instance_types, pool.instance_type),
        ("limits.zones", limits.zones, pool.zone),
        ("limits.markets", limits.markets, pool.market),
    ):
        if allowed and name not in allowed:
            yield f"{name} is not in {limit}"
    if limits.max_count_per_pool is not None and count > limits.max_count_per_pool:
        yield f"{count} nodes are more than limits.max_count_per_pool, {limits.max_count_per_pool}"


def _too_many_nodes(pins: Mapping[Pool, int], most: int, limit: str) -> Iterator[PinnedPoolError]:
    pinned = sum(pins.values())
    if pinned > most:
        text = f"{pinned} nodes are pinned, more than {limit}, {most}; pin fewer or raise it"
        yield PinnedPoolError(text, pool=str([*pins][-1]))


def _too_many_pools(limits: Limits) -> Iterator[PinnedPoolError]:
    pools, most = [*limits.min_count_by_pool], limits.max_pools
    if most is not None and len(pools) > most:
        text = f"{len(pools)} pools are pinned, more than limits.max_pools, {most}; pin fewer"
        yield PinnedPoolError(f"{text} or raise it", pool=str(pools[-1]))


def _too_far_apart(limits: Limits) -> Iterator[PinnedPoolError]:
    pools = [*limits.min_count_by_pool]
    zones = sorted({pool.zone for pool in pools})
    if limits.placement is Placement.ONE_ZONE and len(zones) > 1:
        text = f"pins in {', '.join(zones)} need another limits.placement than one-zone"
        yield PinnedPoolError(text, pool=str(pools[-1]))
