"""A new snapshot out of the last one and what AWS said of some regions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.adapters.aws.region_market import RegionMarket
from spotwright.domain.catalog import QuotaKey, Snapshot, ZonePrice


def merged(last: Snapshot, markets: Sequence[RegionMarket], *, now: datetime) -> Snapshot:
    """Return the last snapshot with the asked regions replaced by what AWS says of them now.

    Other regions, interruption fractions, GPUs and types AWS no longer lists stay as they were,
    and prices that stay keep the time at which they were observed.
    """
    described = {name: kind for market in reversed(markets) for name, kind in market.types.items()}
    retired_times = last.retired_price_times.items()
    return replace(
        last,
        price_times={**last.price_times, **{market.region: now for market in markets}},
        retired_price_times={t: time for t, time in retired_times if t not in described},
        sources=_sources(last),
        instance_types={**last.instance_types, **described},
        prices=_prices(last, markets, described=described.keys()),
        vcpu_quotas=_quotas(last, markets),
        placement_scores=_scores(last, markets),
    )


def _prices(
    last: Snapshot, markets: Sequence[RegionMarket], *, described: Collection[str]
) -> tuple[ZonePrice, ...]:
    """Keep a retired type's prices: it is in the catalog for work that was measured on it.

    One that is sold again has prices only where AWS was asked: its old ones are from before.
    """
    asked = {market.region for market in markets}
    retired = {t.name for t in last.instance_types.values() if t.retired}
    gone = retired.difference(described)
    kept = [p for p in last.prices if p.instance_type in gone]
    kept += [p for p in last.prices if p.instance_type not in retired and p.region not in asked]
    fresh = [price for market in markets for price in market.prices]
    return tuple(sorted(kept + fresh, key=lambda p: (p.instance_type, p.region, p.zone)))


def _sources(last: Snapshot) -> dict[str, str]:
    """Say which regions AWS itself has priced, in words that later refreshes leave true."""
    before = max(last.price_times.values()).isoformat()
    return {"refreshed_prices": f"AWS APIs, where price_times are after {before}", **last.sources}


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
