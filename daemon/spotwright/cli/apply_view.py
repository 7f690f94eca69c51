"""What is about to be rented or given up, on one screen."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spotwright.adapters.terraform.changes import Action, ResourceChange
from spotwright.cli.sources import age_text
from spotwright.cli.terminal import console, print_table
from spotwright.domain.offer import Pool
from spotwright.domain.rental import WantedFleet, WantedPool
from spotwright.domain.units import format_usd
from spotwright.usecases.rent_prices import RentPrices

_MOST_LINES = 24  # of resources; more are counted by kind
_SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.REPLACE: "-/+", Action.DELETE: "-"}
_VERBS = {
    Action.CREATE: "to make",
    Action.UPDATE: "to change",
    Action.REPLACE: "to replace",
    Action.DELETE: "to remove",
    Action.FORGET: "to forget",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Renting:
    """A fleet that Terraform is about to change."""

    before: WantedFleet | None  # None: nothing was rented in this folder
    after: WantedFleet | None  # None: everything is given up
    prices: RentPrices
    changes: Sequence[ResourceChange]
    gone: Sequence[str] = ()  # addresses of what somebody else removed

    @property
    def fleet(self) -> WantedFleet:
        """The fleet that this is about."""
        fleet = self.after or self.before
        assert fleet is not None
        return fleet

    def usd_per_hour(self, fleet: WantedFleet | None) -> float | None:
        """Return what a fleet's nodes cost now; None: a price is not known."""
        pools = fleet.pools if fleet else ()
        prices = self.prices.usd_per_hour
        if any(pool.pool not in prices for pool in pools):
            return None
        return sum(prices[pool.pool] * pool.node_count for pool in pools)


def print_renting(renting: Renting) -> None:
    """Print the pools, the resources that change, and the money."""
    out, fleet = console(), renting.fleet
    out.print(f"{fleet.name} in {fleet.region}, plan {fleet.plan_id}")
    out.print()
    columns = ("pool", "nodes>", "$/h each>", "$/h>", "ceiling $/h>")
    print_table(columns, [_pool_row(*row, renting.prices.usd_per_hour) for row in _pools(renting)])
    if fleet.functions:
        functions = fleet.functions
        out.print(
            f"{functions.function_count} functions of {functions.memory_mb} MB, billed by use"
        )
    out.print()
    gone = [f"removed by somebody else: {address}" for address in renting.gone]
    for line in [*_change_lines(renting.changes), *gone, *_money(renting)]:
        out.print(line)


def renting_json(renting: Renting) -> dict[str, Any]:
    """Return what changed, as JSON."""
    fleet, after = renting.fleet, renting.after
    functions, observed = fleet.functions, renting.prices.catalog_time
    return {
        "fleet_name": fleet.name,
        "plan_id": fleet.plan_id,
        "region": fleet.region,
        "usd_per_hour": {
            "before": renting.usd_per_hour(renting.before),
            "after": renting.usd_per_hour(after),
            "ceiling": _ceiling_usd_per_hour(after),
        },
        "cost_usd": {"low": after.low_cost_usd, "high": after.high_cost_usd} if after else None,
        "catalog_time": observed and observed.isoformat(),
        "pools": [
            {"pool": key, "node_count_before": _count(was), "node_count": _count(becomes)}
            for key, was, becomes in _pools(renting)
        ],
        "functions": functions
        and {"memory_mb": functions.memory_mb, "function_count": functions.function_count},
        "changes": [
            {"address": c.address, "action": c.action, "reason": c.reason} for c in renting.changes
        ],
        "gone": list(renting.gone),
    }


def _pools(renting: Renting) -> list[tuple[str, WantedPool | None, WantedPool | None]]:
    was = {pool.key: pool for pool in renting.before.pools} if renting.before else {}
    becomes = {pool.key: pool for pool in renting.after.pools} if renting.after else {}
    return [(key, was.get(key), becomes.get(key)) for key in sorted({*was, *becomes})]


def _pool_row(
    key: str, was: WantedPool | None, becomes: WantedPool | None, prices: Mapping[Pool, float]
) -> tuple[str, ...]:
    pool = becomes or was
    assert pool is not None
    price, count = prices.get(pool.pool), _count(becomes)
    counts = f"{_count(was)} -> {count}" if _count(was) != count else str(count)
    if price is None:
        return key, counts, "unknown", "unknown", _ceiling_text(becomes)
    return key, counts, f"{price:.4f}", f"{price * count:.4f}", _ceiling_text(becomes)


def _count(pool: WantedPool | None) -> int:
    return pool.node_count if pool else 0


def _ceiling_text(pool: WantedPool | None) -> str:
    return f"{pool.max_price_usd_per_hour * pool.node_count:.4f}" if pool else "-"


def _ceiling_usd_per_hour(fleet: WantedFleet | None) -> float:
    pools = fleet.pools if fleet else ()
    return sum(pool.max_price_usd_per_hour * pool.node_count for pool in pools)


def _change_lines(changes: Sequence[ResourceChange]) -> Iterable[str]:
    if not changes:
        yield "nothing to change: what is rented is what is planned"
        return
    if len(changes) <= _MOST_LINES:
        width = max(len(c.address) for c in changes)
        for c in changes:
            yield f"{_SIGNS.get(c.action, '?'):>3} {c.address:<{width}}  {c.reason}".rstrip()
    else:
        for (action, kind), count in sorted(Counter((c.action, c.kind) for c in changes).items()):
            yield f"{_SIGNS.get(action, '?'):>3} {count} x {kind}"
    counts = Counter(c.action for c in changes)
    yield ", ".join(f"{counts[a]} {verb}" for a, verb in _VERBS.items() if counts[a])


def _money(renting: Renting) -> Iterable[str]:
    def told(fleet: WantedFleet | None) -> str:
        usd = renting.usd_per_hour(fleet)
        return "unknown" if usd is None else f"{format_usd(usd) if usd else '$0'}/h"

    after, observed = renting.after, renting.prices.catalog_time
    age = f" (prices of {observed:%Y-%m-%d}, {age_text(observed)})" if observed else ""
    yield f"rent: {told(renting.before)} -> {told(after)}{age}"
    if after:
        low, high = format_usd(after.low_cost_usd), format_usd(after.high_cost_usd)
        most = format_usd(_ceiling_usd_per_hour(after))
        yield f"price ceilings add up to {most}/h; the whole job {low} to {high}"
