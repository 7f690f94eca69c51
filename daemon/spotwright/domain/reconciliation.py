"""A rented fleet set against the file that asked for it: counts, money and what differs."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from spotwright.domain.rental import GrantedNode, Refusal, WantedFleet, WantedPool


class DifferenceKind(StrEnum):
    """In what way a fleet is not the one that was asked for."""

    MISSING_NODES = "missing-nodes"
    SURPLUS_NODES = "surplus-nodes"
    ON_DEMAND_FALLBACK = "on-demand-fallback"  # spot was asked for
    UNWANTED_SPOT = "unwanted-spot"  # on-demand was asked for
    WRONG_TYPE = "wrong-type"
    WRONG_ZONE = "wrong-zone"
    DESIRED_COUNT = "desired-count"  # somebody told the group another count
    PRICE_ABOVE_CEILING = "price-above-ceiling"
    PRICE_UNKNOWN = "price-unknown"
    STRAY_NODES = "stray-nodes"  # of a pool that the file does not have
    STRAY_GROUP = "stray-group"
    NOT_IN_STATE = "not-in-state"  # of the folder: an apply was cut off, or another folder rents


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not as wanted, and what to do about it."""

    kind: DifferenceKind
    pool_key: str | None  # None: what has no pool's tag
    instance_ids: tuple[str, ...]
    text: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What nodes cost per hour, as far as their prices are known."""

    usd_per_hour: float | None  # of those with a price; None: none of them has one
    is_complete: bool

    @classmethod
    def of(cls, prices_usd_per_hour: Iterable[float | None]) -> Self:
        """Add up the prices of nodes; None is a price that nobody knows."""
        prices = list(prices_usd_per_hour)
        known = [price for price in prices if price is not None]
        is_complete = len(known) == len(prices)
        total = math.fsum(known) if known or is_complete else None
        return cls(usd_per_hour=total, is_complete=is_complete)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPool:
    """One pool of the file, and what runs under its key."""

    wanted: WantedPool
    nodes: tuple[GrantedNode, ...]  # those with its key, right or wrong
    desired_count: int | None  # what its group was told; None: it has no group
    refusal: Refusal | None
    planned_usd_per_hour: float | None  # at the prices of now; None: there is none
    billed: Bill
    group_names: tuple[str, ...] = ()  # more than one: rented twice, or one takes over

    @property
    def granted_count(self) -> int:
        """How many nodes have the type, the zone and the market that were asked for."""
        return sum(node.pool == self.wanted.pool for node in self.nodes)

    @property
    def missing_count(self) -> int:
        """How many nodes are not there at all; wrong ones are there."""
        return max(0, self.wanted.node_count - len(self.nodes))

    @property
    def surplus_count(self) -> int:
        """How many nodes too many are there."""
        return max(0, len(self.nodes) - self.wanted.node_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """A whole fleet compared."""

    wanted: WantedFleet
    pools: tuple[ComparedPool, ...]  # as in the file
    billed: Bill  # of every node under the fleet's name, strays included
    differences: tuple[Difference, ...]

    @property
    def planned_usd_per_hour(self) -> float | None:
        """What the file's nodes cost at the prices of now; None: one of them has no price."""
        planned = Bill.of(pool.planned_usd_per_hour for pool in self.pools)
        return planned.usd_per_hour if planned.is_complete else None

    @property
    def as_wanted(self) -> bool:
        """Tell whether nothing differs."""
        return not self.differences
