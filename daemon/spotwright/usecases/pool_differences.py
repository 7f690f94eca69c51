"""How what runs under a pool's key differs from what the file asks for, in words."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from spotwright.domain.fleet import Role
from spotwright.domain.offer import Market, Pool
from spotwright.domain.reconciliation import Bill, ComparedPool, Difference, DifferenceKind
from spotwright.domain.rental import GrantedNode, RefusalCause
from spotwright.domain.units import format_usd

PUT_BACK = "run `spotwright apply`, or `terraform apply` in the folder for just what the file asks"
END_THEM = "end them (`aws ec2 terminate-instances`) if nobody needs them"
_TELL_APART = (
    "wait if an apply is at work: one group takes over from the other; else `spotwright reconcile` "
    "without --no-drift tells which of them the folder's state does not hold"
)
_REPLACE = "end them, and let the group or `terraform apply` start others in their place"
_LOOK_UP = "run `spotwright catalog refresh`, or look the price up with the cloud"
_WAYS_OUT = {
    RefusalCause.CAPACITY: (
        "wait, the group keeps trying; or plan again with the pool in limits.exclude_pools"
    ),
    RefusalCause.QUOTA: (
        "ask the cloud for a larger vCPU quota; or plan again after `spotwright catalog refresh`, "
        "which reads the quotas"
    ),
    RefusalCause.PRICE: (
        "wait for the price to fall; or raise limits.max_price of the job and plan again"
    ),
    RefusalCause.OTHER: "mend what the cloud names; the group keeps trying",
}


def pool_differences(pool: ComparedPool, prices: Mapping[Pool, float]) -> Iterator[Difference]:
    """Yield what is not as wanted of one pool; nothing where all is."""
    if pool.missing_count:
        yield _missing(pool)
    if pool.surplus_count:
        yield _surplus(pool, prices)
    wanted = pool.wanted
    other_market = [node for node in pool.nodes if node.market is not wanted.market]
    if other_market and wanted.market is Market.SPOT:
        yield _fallback(pool, other_market, prices)
    elif other_market:
        yield _unwanted_spot(pool, other_market)
    yield from _wrong_kinds(pool)
    if pool.desired_count not in (None, wanted.node_count):
        yield _desired_count(pool)
    price = prices.get(wanted.pool)
    is_spot = wanted.market is Market.SPOT
    if is_spot and price is not None and price > wanted.max_price_usd_per_hour:
        yield _above_ceiling(pool, price)
    unpriced = [node for node in pool.nodes if node.pool not in prices]
    if unpriced or price is None:
        planned = [wanted.pool] if price is None else []
        yield price_unknown(wanted.key, unpriced, also=planned)


def price_unknown(
    pool_key: str | None, nodes: Sequence[GrantedNode], *, also: Iterable[Pool] = ()
) -> Difference:
    """Say that the money of nodes, and of other pools that were asked for, cannot be told."""
    names = sorted({node.pool for node in nodes} | set(also))
    return Difference(
        kind=DifferenceKind.PRICE_UNKNOWN,
        pool_key=pool_key,
        instance_ids=ids(nodes),
        text=f"the price of {', '.join(map(str, names))} is not known: totals are without it",
        way_out=_LOOK_UP,
    )


def ids(nodes: Iterable[GrantedNode]) -> tuple[str, ...]:
    """Return the names of nodes, sorted."""
    return tuple(sorted(node.instance_id for node in nodes))


def bill_text(nodes: Iterable[GrantedNode], prices: Mapping[Pool, float]) -> str:
    """Return what nodes cost per hour, or the least that it can be."""
    bill = Bill.of(prices.get(node.pool) for node in nodes)
    if bill.usd_per_hour is None:
        return "at a price that is not known"
    return f"{'' if bill.is_complete else 'at least '}{format_usd(bill.usd_per_hour)}/h"


def _missing(pool: ComparedPool) -> Difference:
    count, total = pool.missing_count, pool.wanted.node_count
    verb = "does not run" if count == 1 else "do not run"
    why, way_out = _why_missing(pool)
    return _difference(
        pool, DifferenceKind.MISSING_NODES, text=f"{_of(count, total)} {verb}{why}", way_out=way_out
    )


def _why_missing(pool: ComparedPool) -> tuple[str, str]:
    """Return why nodes are missing, as far as that is known, and what to do."""
    if pool.refusal is not None:
        return f"; the cloud says: {pool.refusal.text}", _WAYS_OUT[pool.refusal.cause]
    if pool.desired_count is None:
        return ": no group keeps them" if pool.wanted.role is Role.WORKER else "", PUT_BACK
    if pool.desired_count < pool.wanted.node_count:
        return f": the group was told to keep {pool.desired_count}", PUT_BACK
    return ": the group has yet to start them", "wait a few minutes and look again"


def _surplus(pool: ComparedPool, prices: Mapping[Pool, float]) -> Difference:
    """Name the youngest nodes as those too many: they have done least."""
    by_age = sorted(pool.nodes, key=lambda node: (node.launch_time, node.instance_id))
    extra = by_age[pool.wanted.node_count :]
    wanted_count = pool.wanted.node_count
    if len(pool.group_names) > 1:
        way_out = _TELL_APART
    elif pool.desired_count is None:
        way_out = END_THEM
    elif pool.desired_count > wanted_count:
        way_out = PUT_BACK
    else:
        way_out = f"wait, the group ends what it does not need; or {END_THEM}"
    return _difference(
        pool,
        DifferenceKind.SURPLUS_NODES,
        nodes=extra,
        text=f"{_of(len(extra), len(pool.nodes))} too many, {bill_text(extra, prices)}",
        way_out=way_out,
    )


def _fallback(
    pool: ComparedPool, nodes: Sequence[GrantedNode], prices: Mapping[Pool, float]
) -> Difference:
    price, billed = prices.get(pool.wanted.pool), Bill.of(prices.get(n.pool) for n in nodes)
    cost = bill_text(nodes, prices)
    if price is not None and billed.is_complete and billed.usd_per_hour is not None:
        more = billed.usd_per_hour - price * len(nodes)
        cost += f", {format_usd(abs(more))}/h {'more' if more >= 0 else 'less'} than spot"
    return _difference(
        pool,
        DifferenceKind.ON_DEMAND_FALLBACK,
        nodes=nodes,
        text=f"{_of(len(nodes), len(pool.nodes))} billed on-demand where spot is wanted: {cost}",
        way_out=_REPLACE,
    )


def _unwanted_spot(pool: ComparedPool, nodes: Sequence[GrantedNode]) -> Difference:
    return _difference(
        pool,
        DifferenceKind.UNWANTED_SPOT,
        nodes=nodes,
        text=f"{_of(len(nodes), len(pool.nodes))} on spot where on-demand is wanted: "
        "the cloud may take them back",
        way_out=_REPLACE,
    )


def _wrong_kinds(pool: ComparedPool) -> Iterator[Difference]:
    wanted = pool.wanted
    wrong_type = [node for node in pool.nodes if node.instance_type != wanted.instance_type]
    if wrong_type:
        found = _tally(node.instance_type for node in wrong_type)
        text = f"{found} where {wanted.instance_type} is wanted"
        yield _difference(
            pool, DifferenceKind.WRONG_TYPE, nodes=wrong_type, text=text, way_out=_REPLACE
        )
    wrong_zone = [node for node in pool.nodes if node.zone != wanted.zone]
    if wrong_zone:
        found = _tally(node.zone for node in wrong_zone)
        text = f"{found} where zone {wanted.zone} is wanted: traffic between zones is billed"
        yield _difference(
            pool, DifferenceKind.WRONG_ZONE, nodes=wrong_zone, text=text, way_out=_REPLACE
        )


def _desired_count(pool: ComparedPool) -> Difference:
    names = pool.group_names
    if len(names) > 1:
        return _difference(
            pool,
            DifferenceKind.DESIRED_COUNT,
            text=f"{len(names)} groups ({', '.join(names)}) were told to keep "
            f"{pool.desired_count} where the file says {pool.wanted.node_count}",
            way_out=_TELL_APART,
        )
    return _difference(
        pool,
        DifferenceKind.DESIRED_COUNT,
        text=f"the group was told to keep {pool.desired_count} where the file says "
        f"{pool.wanted.node_count}: somebody changed one of them since",
        way_out=PUT_BACK,
    )


def _above_ceiling(pool: ComparedPool, price: float) -> Difference:
    ceiling = format_usd(pool.wanted.max_price_usd_per_hour)
    return _difference(
        pool,
        DifferenceKind.PRICE_ABOVE_CEILING,
        text=f"spot costs {format_usd(price)}/h a node now, above the ceiling of {ceiling}: "
        "none is to be had, and those that run may be taken back",
        way_out=_WAYS_OUT[RefusalCause.PRICE],
    )


def _difference(
    pool: ComparedPool,
    kind: DifferenceKind,
    *,
    nodes: Iterable[GrantedNode] = (),
    text: str,
    way_out: str,
) -> Difference:
    return Difference(
        kind=kind, pool_key=pool.wanted.key, instance_ids=ids(nodes), text=text, way_out=way_out
    )


def _of(count: int, total: int) -> str:
    return f"{count} of {total} node{'' if total == 1 else 's'}"


def _tally(names: Iterable[str]) -> str:
    """Return `2 x m5.large, 1 x m5.xlarge`, by name."""
    return ", ".join(f"{count} x {name}" for name, count in sorted(Counter(names).items()))
