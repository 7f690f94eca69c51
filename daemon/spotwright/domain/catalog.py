"""A dated snapshot of what one cloud offers: hardware facts, prices, interruptions, quotas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Market


@dataclass(frozen=True, slots=True)
class ZonePrice:
    """What one instance type costs in one zone; None = not offered in that market."""

    instance_type: str
    region: str
    zone: str
    on_demand_usd_per_hour: float | None
    spot_usd_per_hour: float | None

    def __post_init__(self) -> None:
        for price in (self.on_demand_usd_per_hour, self.spot_usd_per_hour):
            if price is not None and not price > 0:
                raise ValueError(f"a price must be positive, got {self}")


@dataclass(frozen=True, slots=True)
class QuotaKey:
    """What an AWS vCPU quota applies to."""

    region: str
    quota_class: str
    market: Market


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that was known of one cloud at `catalog_time`."""

    cloud: Cloud
    catalog_time: datetime
    sources: Mapping[str, str]  # what each part was made from
    gpus: Mapping[str, Gpu]
    instance_types: Mapping[str, InstanceType]
    prices: tuple[ZonePrice, ...]
    interruption_fraction: Mapping[tuple[str, str], float]  # (region, type), spot, per month
    vcpu_quotas: Mapping[QuotaKey, int] = field(default_factory=dict)  # empty in the bundled one
    placement_scores: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (type, zone)
