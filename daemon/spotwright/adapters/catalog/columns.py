"""The catalog in numpy columns: facts per type, regions per zone, prices per offer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.adapters.catalog.names import Names
from spotwright.domain.catalog import ZonePrice
from spotwright.domain.hardware import InstanceType
from spotwright.domain.offer import Market, OfferQuery

MARKETS = (Market.ON_DEMAND, Market.SPOT)  # by name, the order in which ties are broken

Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]
Figures = NDArray[np.float64]


class TypeColumns:
    """What a query asks of instance types, one place per type in the order of their names."""

    def __init__(self, types: Sequence[InstanceType]) -> None:
        self.names = Names("instance type", (t.name for t in types))
        self.gpu_names = Names("GPU", (t.gpu_name for t in types if t.gpu_name is not None))
        # The code after the last GPU stands for none.
        code_of_none = len(self.gpu_names.sorted)
        self._gpu_code: Codes = np.array(
            [self.gpu_names.codes.get(t.gpu_name or "", code_of_none) for t in types], dtype=np.intp
        )
        self._has_gpu: Mask = self._gpu_code < code_of_none
        self._retired: Mask = np.array([t.retired for t in types], dtype=np.bool_)
        self._efa: Mask = np.array([t.efa_interface_count > 0 for t in types], dtype=np.bool_)
        self._memory_gib = _figures([t.memory_gib for t in types])
        self._gpu_memory_gib = _figures([t.gpu_memory_gib for t in types])
        self._gpu_count = _figures([t.gpu_count for t in types])

    def mask(self, query: OfferQuery) -> Mask:
        """Return True at the types a query admits."""
        mask = self._named(query)
        if query.gpus:
            mask &= np.append(self.gpu_names.mask(query.gpus), False)[self._gpu_code]
        if query.with_gpu is not None:
            mask &= self._has_gpu == query.with_gpu
        if query.efa_only:
            mask &= self._efa
        for column, least in (
            (self._memory_gib, query.min_memory_gib),
            (self._gpu_memory_gib, query.min_gpu_memory_gib),
            (self._gpu_count, query.min_gpu_count),
        ):
            if least is not None:
                mask &= column >= least
        return mask

    def _named(self, query: OfferQuery) -> Mask:
        if query.instance_types:
            return self.names.mask(query.instance_types)
        return np.ones_like(self._retired) if query.include_retired else ~self._retired


class ZoneColumns:
    """Zones and the region each is in."""

    def __init__(self, region_by_zone: dict[str, str]) -> None:
        self.names = Names("zone", region_by_zone)
        self.regions = tuple(region_by_zone[zone] for zone in self.names.sorted)
        self._region_names = Names("region", self.regions)
        codes = [self._region_names.codes[region] for region in self.regions]
        self._region_code: Codes = np.array(codes, dtype=np.intp)

    def mask(self, query: OfferQuery) -> Mask:
        """Return True at the zones a query admits."""
        mask: Mask = np.ones(len(self.regions), dtype=np.bool_)
        if query.regions:
            mask &= self._region_names.mask(query.regions)[self._region_code]
        if query.zones:
            mask &= self.names.mask(query.zones)
        return mask


@dataclass(frozen=True, slots=True)
class OfferColumns:
    """Every offer, sorted by price, type, zone and market; a market without a price has none."""

    type_code: Codes
    zone_code: Codes
    market_code: Codes
    price_usd_per_hour: Figures

    @classmethod
    def of(cls, prices: Sequence[ZonePrice], *, types: Names, zones: Names) -> "OfferColumns":
        """Lay out the two prices of each row as two offers, and sort."""
        type_code = np.array([types.codes[p.instance_type] for p in prices] * 2, dtype=np.intp)
        zone_code = np.array([zones.codes[p.zone] for p in prices] * 2, dtype=np.intp)
        market_code = np.repeat(np.arange(len(MARKETS), dtype=np.intp), len(prices))
        price = _figures(
            [p.on_demand_usd_per_hour for p in prices] + [p.spot_usd_per_hour for p in prices]
        )
        order = np.lexsort((market_code, zone_code, type_code, price))
        order = order[~np.isnan(price[order])]
        return cls(type_code[order], zone_code[order], market_code[order], price[order])

    def rows(self, places: Codes) -> Iterator[tuple[int, int, int, float]]:
        """Return type, zone, market and price of the offers at some places."""
        columns = (self.type_code, self.zone_code, self.market_code, self.price_usd_per_hour)
        return zip(*(column[places].tolist() for column in columns), strict=True)


def _figures(values: Sequence[float | None]) -> Figures:
    """Return a column of figures, NaN where there is none."""
    return np.array(values, dtype=np.float64)
