"""The catalog of a daemon as a source of offers."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from spotwright.client import catalog_calls
from spotwright.client.calls import Call
from spotwright.client.catalog_calls import PriceTimes
from spotwright.domain.errors import UnknownNameError
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Offer, OfferQuery


class RemoteCatalog:
    """The OfferSource over the catalog of one cloud that a daemon has.

    Prices are as old as the daemon said when it last listed offers.
    """

    def __init__(self, cloud: Cloud, run: Callable[[Call[Any]], Any]) -> None:
        """Ask about a cloud; `run` makes a call."""
        self._cloud, self._run = cloud, run
        self._times: PriceTimes = run(catalog_calls.price_times(cloud))

    @property
    def catalog_time(self) -> datetime:
        """When the oldest prices on sale were observed; those of retired types may be older."""
        return min(self._times.regions.values())

    def oldest_price_time(self, offers: Iterable[Offer]) -> datetime:
        """Return when the oldest price among this catalog's offers was observed."""
        return min((self._times.of(offer) for offer in offers), default=self.catalog_time)

    def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return the matching offers, cheapest first, ties by type, zone and market."""
        if query.cloud is not self._cloud:
            raise UnknownNameError("cloud", query.cloud, known=[self._cloud])
        listed = self._run(catalog_calls.list_offers(query))
        self._times = listed.times
        offers: Sequence[Offer] = listed.offers
        return offers

    def instance_type(self, name: str) -> InstanceType:
        """Return one type's facts, or raise UnknownNameError with the nearest name."""
        found: InstanceType = self._run(catalog_calls.get_instance_type(self._cloud, name))
        return found

    def gpu(self, name: str) -> Gpu:
        """Return one GPU's facts, or raise UnknownNameError with the nearest name."""
        found: Gpu = self._run(catalog_calls.get_gpu(self._cloud, name))
        return found

    def instance_types(self) -> Sequence[InstanceType]:
        """Return every type, by name."""
        found: Sequence[InstanceType] = self._run(catalog_calls.list_instance_types(self._cloud))
        return found
