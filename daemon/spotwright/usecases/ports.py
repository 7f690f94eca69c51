"""What the use cases need from outside, in the project's own words."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from spotwright.domain.catalog import Snapshot
from spotwright.domain.hardware import Gpu, InstanceType
from spotwright.domain.offer import Offer, OfferQuery


class OfferSource(Protocol):
    """Where offers and hardware facts come from."""

    @property
    def catalog_time(self) -> datetime:
        """When the oldest prices on sale were observed; those of retired types may be older."""

    def oldest_price_time(self, offers: Iterable[Offer]) -> datetime:
        """Return when the oldest price among this source's offers was observed.

        Of no offers it is `catalog_time`: that there are none is as old as the catalog.
        """

    def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return the matching offers, cheapest first, ties by type, zone and market.

        Raises:
            UnknownNameError: the query names a GPU, type, region or zone that does not exist.
        """

    def instance_type(self, name: str) -> InstanceType:
        """Return one type's facts, or raise UnknownNameError with the nearest name."""

    def gpu(self, name: str) -> Gpu:
        """Return one GPU's facts, or raise UnknownNameError with the nearest name."""

    def instance_types(self) -> Sequence[InstanceType]:
        """Return every type, by name."""


class PriceFeed(Protocol):
    """A live source of prices, such as AWS."""

    def fetch(self, last: Snapshot, *, regions: Sequence[str]) -> Snapshot:
        """Return what the feed says now; facts it cannot tell are carried over from `last`.

        Raises:
            OutsideWorldError: the feed failed, or answered with no prices at all.
        """


class SnapshotStore(Protocol):
    """Where a refreshed snapshot is kept."""

    def load(self) -> Snapshot:
        """Return the last good snapshot."""

    def save(self, snapshot: Snapshot) -> None:
        """Replace the last good snapshot in one step, or leave it untouched."""
