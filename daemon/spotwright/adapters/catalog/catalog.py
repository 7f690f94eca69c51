"""Answers about offers, out of one snapshot.

Offers lie in columns, sorted once. A query becomes a mask over types, a mask over zones and a price
limit, and only the offers that pass are made into objects; benchmarks/catalog/test_catalog_speed.py
has the times.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np

from spotwright.adapters.catalog.columns import (
    MARKETS,
    Codes,
    OfferColumns,
    TypeColumns,
    ZoneColumns,
)
from spotwright.adapters.catalog.names import Names
from spotwright.domain.catalog import Snapshot
from spotwright.domain.errors import UnknownNameError
from spotwright.domain.hardware import Gpu, InstanceType
from spotwright.domain.offer import Market, Offer, OfferQuery


class Catalog:
    """The OfferSource over a snapshot of one cloud; names are found in any case."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._types = tuple(t for _, t in sorted(snapshot.instance_types.items()))
        self._gpu_names = Names("GPU", snapshot.gpus)
        self._type_columns = TypeColumns(self._types)
        self._zone_columns = ZoneColumns({price.zone: price.region for price in snapshot.prices})
        self._offer_columns = OfferColumns.of(
            snapshot.prices, types=self._type_columns.names, zones=self._zone_columns.names
        )

    @property
    def snapshot(self) -> Snapshot:
        """All that it knows."""
        return self._snapshot

    @property
    def catalog_time(self) -> datetime:
        """When the oldest prices on sale were observed; those of retired types may be older."""
        return self._snapshot.catalog_time

    def oldest_price_time(self, offers: Iterable[Offer]) -> datetime:
        """Return when the oldest price among this catalog's offers was observed."""
        places = {(offer.instance_type.name, offer.region) for offer in offers}
        times = [self._snapshot.price_time(name, region=region) for name, region in places]
        return min(times, default=self.catalog_time)

    def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return the matching offers, cheapest first, ties by type, zone and market.

        Raises:
            UnknownNameError: a name that this catalog does not offer, or another cloud.
        """
        if query.cloud is not self._snapshot.cloud:
            raise UnknownNameError("cloud", query.cloud, known=[self._snapshot.cloud])
        columns = self._offer_columns
        matches = self._type_columns.mask(query)[columns.type_code]
        matches &= self._zone_columns.mask(query)[columns.zone_code]
        if query.markets:
            matches &= np.isin(MARKETS, list(query.markets))[columns.market_code]
        if query.max_price_usd_per_hour is not None:
            matches &= columns.price_usd_per_hour <= query.max_price_usd_per_hour
        return self._materialise(np.flatnonzero(matches))

    def instance_type(self, name: str) -> InstanceType:
        """Return one type's facts, or raise UnknownNameError with the nearest name."""
        return self._types[self._type_columns.names.code(name)]

    def gpu(self, name: str) -> Gpu:
        """Return one GPU's facts, or raise UnknownNameError with the nearest name.

        GPUs that this cloud does not rent out are found too: work may have been measured on them.
        """
        return self._snapshot.gpus[self._gpu_names.sorted[self._gpu_names.code(name)]]

    def instance_types(self) -> Sequence[InstanceType]:
        """Return every type, by name."""
        return self._types

    def _materialise(self, places: Codes) -> list[Offer]:
        zones, regions = self._zone_columns.names.sorted, self._zone_columns.regions
        return [
            Offer(
                instance_type=self._types[type_code],
                region=regions[zone_code],
                zone=zones[zone_code],
                market=MARKETS[market_code],
                price_usd_per_hour=price,
                interruption_fraction=self._fraction(type_code, zone_code, MARKETS[market_code]),
            )
            for type_code, zone_code, market_code, price in self._offer_columns.rows(places)
        ]

    def _fraction(self, type_code: int, zone_code: int, market: Market) -> float | None:
        if market is not Market.SPOT:
            return None
        key = (self._zone_columns.regions[zone_code], self._types[type_code].name)
        return self._snapshot.interruption_fraction.get(key)
