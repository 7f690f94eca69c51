"""A new snapshot out of the last one and what AWS said of some regions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.adapters.aws.region_market import RegionMarket
from spotwright.domain.catalog import QuotaKey, Snapshot, ZonePrice


def merged(last: Snapshot, markets: Sequence[RegionMarket], *, catalog_time: datetime) -> Snapshot:
    """Return the last snapshot with the asked regions replaced by what AWS said of them.

    Other regions, interruption fractions, GPUs and types AWS no longer lists stay as they were.
    """
    described = {name: kind for market in reversed(markets) for name, kind in market.types.items()}
    return replace(
        last,
        catalog_time=catalog_time,
        sources=_sources(last, markets, catalog_time),
        instance_types={**last.instance_types, **described},
        prices=_prices(last, markets, described=described.keys()),
        vcpu_quotas=_quotas(last, markets),
        placement_scores=_scores(last, markets),
    )


def _prices(
    last: Snapshot, markets: Sequence[RegionMarket], *, described: Collection[str]
) -> tuple[ZonePrice, ...]:
    """Keep a retired type's prices: it is in the catalog for work that was measured on it."""
    asked = {market.region for market in markets}
    retired = {t.name for t in last.instance_types.values() if t.retired} - set(described)
    kept = [p for p in last.prices if p.region not in asked or p.instance_type in retired]
    fresh = [price for market in markets for price in market.prices]
    return tuple(sorted(kept + fresh, key=lambda p: (p.instance_type, p.region, p.zone)))


def _sources(
    last: Snapshot, markets: Sequence[RegionMarket], catalog_time: datetime
) -> dict[str, str]:
    """Say of each region when its prices were observed: a snapshot has only one time for all."""
    regions = {price.region for price in last.prices} - {market.region for market in markets}
    carried = {f"prices {r}": f"observed {last.catalog_time.isoformat()}" for r in regions}
    fresh = {
        f"prices {market.region}": f"AWS APIs, observed {catalog_time.isoformat()}"
        for market in markets
    }
    return {**carried, **last.sources, **fresh}


def _quotas(last: Snapshot, markets: Sequence[RegionMarket]) -> dict[QuotaKey, int]:
    asked = {market.region for market in markets}
    quotas = {key: count for key, count in last.vcpu_quotas.items() if key.region not in asked}
    for market in markets:
        quotas.update(market.vcpu_quotas)
    return quotas


def _scores(last: Snapshot, markets: Sequence[RegionMarket]) -> dict[tuple[str, str], int]:
    """Drop the old scores of asked regions even if AWS refused new ones: they age in minutes."""
    asked = {zone for market in markets for zone in market.zones}
    scores = {key: score for key, score in last.placement_scores.items() if key[1] not in asked}
    for market in markets:
        scores.update(market.placement_scores)
    return scores
