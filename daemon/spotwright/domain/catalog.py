"""What one cloud offers: hardware facts, prices with their age, interruptions, quotas."""

from collections.abc import Mapping, Set
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
    """All that was known of one cloud when its prices were observed, region by region."""

    cloud: Cloud
    price_times: Mapping[str, datetime]  # region: when the types on sale there were priced
    retired_price_times: Mapping[str, datetime]  # type: the oldest of its last known prices
    sources: Mapping[str, str]  # what each part was made from
    gpus: Mapping[str, Gpu]
    instance_types: Mapping[str, InstanceType]
    prices: tuple[ZonePrice, ...]
    interruption_fraction: Mapping[tuple[str, str], float]  # (region, type), spot, per month
    vcpu_quotas: Mapping[QuotaKey, int] = field(default_factory=dict)  # empty in the bundled one
    placement_scores: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (type, zone)

    def __post_init__(self) -> None:
        for name, time in (*self.price_times.items(), *self.retired_price_times.items()):
            if time.tzinfo is None:
                raise ValueError(f"the price time of {name} needs a time zone, got {time}")
        retired = {t.name for t in self.instance_types.values() if t.retired}
        _require_times({p.region for p in self.prices}, self.price_times)
        _require_times({p.instance_type for p in self.prices} & retired, self.retired_price_times)

    @property
    def catalog_time(self) -> datetime:
        """When the oldest prices on sale were observed; those of retired types may be older."""
        return min(self.price_times.values())

    def price_time(self, instance_type: str, *, region: str) -> datetime:
        """Return when a type's prices in a region were observed, never a later time."""
        if self.instance_types[instance_type].retired:
            return self.retired_price_times[instance_type]
        return self.price_times[region]


def _require_times(priced: Set[str], times: Mapping[str, datetime]) -> None:
    undated = sorted(priced - times.keys())
    if undated:
        raise ValueError(f"prices without a time of observation: {', '.join(undated)}")
