"""Replace the catalog by what the cloud says now, or keep the last good one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from spotwright.usecases.ports import PriceFeed, SnapshotStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshReport:
    """What a refresh changed."""

    catalog_time: datetime  # the oldest prices in the catalog, of regions not asked too
    previous_time: datetime | None  # the oldest prices replaced; None if no region had any
    price_count: int
    changed_price_count: int
    quota_count: int


def refresh_catalog(
    feed: PriceFeed, store: SnapshotStore, *, regions: Sequence[str]
) -> RefreshReport:
    """Fetch, then save; when the feed fails nothing is written and the error goes up."""
    last = store.load()
    fresh = feed.fetch(last, regions=regions)
    store.save(fresh)
    known = set(last.prices)
    replaced = [last.price_times[region] for region in regions if region in last.price_times]
    return RefreshReport(
        catalog_time=fresh.catalog_time,
        previous_time=min(replaced, default=None),
        price_count=len(fresh.prices),
        changed_price_count=sum(price not in known for price in fresh.prices),
        quota_count=len(fresh.vcpu_quotas),
    )
