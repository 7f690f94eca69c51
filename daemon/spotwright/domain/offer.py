"""What can be rented: pools, their prices, and questions asked of a catalog."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from spotwright.domain.errors import BadInputError
from spotwright.domain.hardware import Cloud, InstanceType


class Market(StrEnum):
    """How an instance is paid for, and whether it can be taken away."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


POOL_PATTERN = rf"([^\s@/]+)@([^\s@/]+)/({'|'.join(Market)})"


@dataclass(frozen=True, slots=True, order=True)
class Pool:
    """Type x zone x market: the unit that is offered, filled and revoked."""

    instance_type: str
    zone: str
    market: Market

    def __str__(self) -> str:
        return f"{self.instance_type}@{self.zone}/{self.market}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pool as `str` prints it."""
        found = re.fullmatch(POOL_PATTERN, text)
        if found is None:
            raise BadInputError(
                f"{text!r} is not a pool; write TYPE@ZONE/MARKET, such as g5.xlarge@use1-az4/spot "
                f"(a market is {' or '.join(Market)})"
            )
        return cls(found[1], found[2], Market(found[3]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One instance type in one zone in one market, at the price last observed there."""

    instance_type: InstanceType
    region: str
    zone: str
    market: Market
    price_usd_per_hour: float
    interruption_fraction: float | None = None  # of spot nodes, per month; None for on-demand

    def __post_init__(self) -> None:
        if not self.price_usd_per_hour > 0:
            raise ValueError(f"price_usd_per_hour must be positive, got {self.price_usd_per_hour}")
        if self.interruption_fraction is not None and not 0 <= self.interruption_fraction < 1:
            raise ValueError(f"interruption_fraction must be in [0, 1), got {self}")

    @property
    def pool(self) -> Pool:
        """The pool this offer is a price for."""
        return Pool(self.instance_type.name, self.zone, self.market)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferQuery:
    """Which offers are wanted; an empty set or None does not restrict."""

    cloud: Cloud = Cloud.AWS
    gpus: frozenset[str] = frozenset()
    instance_types: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()
    markets: frozenset[Market] = frozenset()
    max_price_usd_per_hour: float | None = None
    min_memory_gib: float | None = None
    min_gpu_memory_gib: float | None = None
    min_gpu_count: float | None = None
    efa_only: bool = False
    with_gpu: bool | None = None  # True: GPU types, False: parameter-server candidates
    include_retired: bool = False  # a retired type named in instance_types is always included
