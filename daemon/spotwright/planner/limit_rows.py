"""A job's limits as rows over the counts of its pools.

    nodes        sum x                             <= max_nodes - servers
    type         sum over pools of it x            <= max_count
    vCPUs        sum vcpus x, by region and quota  <= max_vcpus - the servers' own
    per hour     sum price x, by market            <= max_usd_per_hour - the servers' own
    on-demand    sum over on-demand x - share * sum x >= 0
    pools        sum x / upper                     <= max_pools (the relaxed count of pools in use)

Counts per pool and pinned pools bound single columns.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import Limits
from spotwright.domain.offer import Market, Offer
from spotwright.domain.quota import QUOTA_CODES

Floats = NDArray[np.float64]

_ROUNDING = 1e-9


class Row(NamedTuple):
    """low <= coefficients . x <= high."""

    coefficients: Floats
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRows:
    """What the limits allow of some pools, with given servers."""

    matrix: Floats  # (rows, pools); the first row counts nodes
    low: Floats
    high: Floats
    lower: Floats  # by pool
    upper: Floats
    max_pools: int | None
    sparse: Any = field(init=False, repr=False)  # the matrix again: a pool is in few rows

    def __post_init__(self) -> None:
        object.__setattr__(self, "sparse", csr_matrix(self.matrix))

    def allow(self, counts: Floats) -> NDArray[np.bool_]:
        """Return which fleets, (pools, fleets), keep every limit."""
        sums = self.sparse @ counts
        room = _ROUNDING * np.maximum(1.0, np.abs(np.where(np.isfinite(self.high), self.high, 0.0)))
        kept = (sums <= (self.high + room)[:, None]) & (sums >= (self.low - room)[:, None])
        inside = (counts <= self.upper[:, None]) & (counts >= self.lower[:, None])
        allowed = np.asarray(kept.all(axis=0) & inside.all(axis=0))
        if self.max_pools is not None:
            allowed &= (counts > 0).sum(axis=0) <= self.max_pools
        return allowed


def limit_rows(limits: Limits, offers: Sequence[Offer], servers: Sequence[NodeGroup]) -> LimitRows:
    """Return the limits over these pools, what the servers take being gone already."""
    rows = [
        _nodes(limits, offers, servers),
        *_types(limits, offers),
        *_vcpus(limits, offers, servers),
        *_rents(limits, offers, servers),
        *_on_demand(limits, offers),
    ]
    upper = _within(rows, _upper(limits, offers))
    if limits.max_pools is not None:  # last: boxes hold it with their own counts
        rows.append(Row(pool_use(upper), -np.inf, float(limits.max_pools)))
    return LimitRows(
        matrix=np.array([row.coefficients for row in rows]),
        low=np.array([row.low for row in rows]),
        high=np.array([row.high for row in rows]),
        lower=np.array([float(limits.min_count_by_pool.get(o.pool, 0)) for o in offers]),
        upper=upper,
        max_pools=limits.max_pools,
    )


def pool_use(upper: Floats) -> Floats:
    """Return by how much of a pool in use one node counts, where at most so many can be."""
    return 1 / np.maximum(upper, 1.0)


def _within(rows: Sequence[Row], upper: Floats) -> Floats:
    """Return the most nodes of each pool that no limit forbids even by themselves."""
    for row in rows:
        if np.isfinite(row.high) and (row.coefficients >= 0).all():
            taken = row.coefficients > 0
            most = np.floor(row.high / row.coefficients[taken] + _ROUNDING)
            upper[taken] = np.minimum(upper[taken], np.maximum(most, 0.0))
    return upper


def _upper(limits: Limits, offers: Sequence[Offer]) -> Floats:
    most = float(min(limits.max_nodes, limits.max_count_per_pool or limits.max_nodes))
    by_type, by_pool = limits.max_count_by_type, limits.max_count_by_pool
    return np.array(
        [
            min(most, by_type.get(o.instance_type.name, most), by_pool.get(o.pool, most))
            for o in offers
        ],
        dtype=np.float64,
    )


def _nodes(limits: Limits, offers: Sequence[Offer], servers: Sequence[NodeGroup]) -> Row:
    server_count = sum(server.node_count for server in servers)
    return Row(np.ones(len(offers)), 1.0, float(limits.max_nodes - server_count))


def _types(limits: Limits, offers: Sequence[Offer]) -> Iterator[Row]:
    names = np.array([offer.instance_type.name for offer in offers])
    for name, count in zip(*np.unique(names, return_counts=True), strict=True):
        if count > 1 and name in limits.max_count_by_type:  # a lone pool is bounded already
            row = (names == name).astype(np.float64)
            yield Row(row, -np.inf, float(limits.max_count_by_type[name]))


def _vcpus(limits: Limits, offers: Sequence[Offer], servers: Sequence[NodeGroup]) -> Iterator[Row]:
    """Yield a row per region and AWS quota; classes that share a quota share the row."""
    for (quota_class, market), most in sorted(limits.max_vcpus.items()):
        code = QUOTA_CODES.get((quota_class, market), quota_class)
        regions = {offer.region for offer in offers} | {s.offer.region for s in servers if s.offer}
        for region in sorted(regions):
            row = np.array([_vcpus_of(o, code, market) * (o.region == region) for o in offers])
            taken = sum(
                server.node_count * _vcpus_of(server.offer, code, market)
                for server in servers
                if server.offer and server.offer.region == region
            )
            if row.any() or taken:
                yield Row(row, -np.inf, float(most - taken))


def _vcpus_of(offer: Offer, code: str, market: Market) -> float:
    if offer.market is not market:
        return 0.0
    mine = QUOTA_CODES.get((offer.instance_type.quota_class or "", market))
    return float(offer.instance_type.vcpu_count) if mine == code else 0.0


def _rents(limits: Limits, offers: Sequence[Offer], servers: Sequence[NodeGroup]) -> Iterator[Row]:
    for market, most in sorted(limits.max_usd_per_hour.items()):
        row = np.array([o.price_usd_per_hour * (o.market is market) for o in offers])
        taken = sum(s.usd_per_hour or 0.0 for s in servers if s.market is market)
        if row.any() or taken:
            yield Row(row, -np.inf, most - taken)


def _on_demand(limits: Limits, offers: Sequence[Offer]) -> Iterator[Row]:
    if limits.min_on_demand_fraction > 0:
        on_demand = _where(offer.market is Market.ON_DEMAND for offer in offers)
        yield Row(on_demand - limits.min_on_demand_fraction, 0.0, np.inf)


def _where(flags: Iterable[bool]) -> Floats:
    return np.array([float(flag) for flag in flags])
