"""An OfferSource that knows only what the messages of catalog.proto can carry.

Each question and answer goes through bytes, so that a fact the wire contract lacks is lost here,
where tests see it, before a server and a client are written. Errors pass as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.domain.catalog import Snapshot
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.v1 import catalog_pb2 as pb

_MARKET_NUMBERS = {Market.SPOT: pb.MARKET_SPOT, Market.ON_DEMAND: pb.MARKET_ON_DEMAND}
_MARKETS = {number: market for market, number in _MARKET_NUMBERS.items()}


class _Server:
    """The side that has a catalog; takes and gives bytes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._catalog = snapshot, Catalog(snapshot)

    def get_catalog(self) -> bytes:
        catalog = pb.Catalog(cloud=self._snapshot.cloud, price_times=self._price_times())
        return pb.GetCatalogResponse(catalog=catalog).SerializeToString()

    def list_offers(self, request: bytes) -> bytes:
        offers = self._catalog.offers(_query(pb.ListOffersRequest.FromString(request).filter))
        types = {offer.instance_type.name: offer.instance_type for offer in offers}
        return pb.ListOffersResponse(
            offers=[pb.Offer(**_said(offer)) for offer in offers],
            instance_types=[pb.InstanceType(**_said(types[name])) for name in sorted(types)],
            price_times=self._price_times(),
        ).SerializeToString()

    def list_instance_types(self) -> bytes:
        types = [pb.InstanceType(**_said(t)) for t in self._catalog.instance_types()]
        return pb.ListInstanceTypesResponse(instance_types=types).SerializeToString()

    def get_instance_type(self, request: bytes) -> bytes:
        found = self._catalog.instance_type(pb.GetInstanceTypeRequest.FromString(request).name)
        response = pb.GetInstanceTypeResponse(instance_type=pb.InstanceType(**_said(found)))
        return response.SerializeToString()

    def get_gpu(self, request: bytes) -> bytes:
        found = self._catalog.gpu(pb.GetGpuRequest.FromString(request).name)
        return pb.GetGpuResponse(gpu=pb.Gpu(**_said(found))).SerializeToString()

    def _price_times(self) -> pb.PriceTimes:
        return pb.PriceTimes(
            region_times=_stamps(self._snapshot.price_times),
            retired_type_times=_stamps(self._snapshot.retired_price_times),
        )


class WireSource:
    """The side that asks; what it tells is made from the answers alone."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._server = _Server(snapshot)
        catalog = pb.GetCatalogResponse.FromString(self._server.get_catalog()).catalog
        self._cloud, self._times = Cloud(catalog.cloud), catalog.price_times

    @property
    def catalog_time(self) -> datetime:
        return min(_utc(time) for time in self._times.region_times.values())

    def oldest_price_time(self, offers: Iterable[Offer]) -> datetime:
        return min((self._price_time(offer) for offer in offers), default=self.catalog_time)

    def offers(self, query: OfferQuery) -> Sequence[Offer]:
        request = pb.ListOffersRequest(filter=pb.OfferFilter(**_said(query)))
        answer = self._server.list_offers(request.SerializeToString())
        response = pb.ListOffersResponse.FromString(answer)
        self._times = response.price_times
        types = {t.name: _instance_type(t) for t in response.instance_types}
        return [_offer(offer, types) for offer in response.offers]

    def instance_type(self, name: str) -> InstanceType:
        request = pb.GetInstanceTypeRequest(cloud=self._cloud, name=name)
        answer = self._server.get_instance_type(request.SerializeToString())
        return _instance_type(pb.GetInstanceTypeResponse.FromString(answer).instance_type)

    def gpu(self, name: str) -> Gpu:
        request = pb.GetGpuRequest(cloud=self._cloud, name=name)
        answer = self._server.get_gpu(request.SerializeToString())
        return Gpu(**_heard(pb.GetGpuResponse.FromString(answer).gpu))

    def instance_types(self) -> Sequence[InstanceType]:
        response = pb.ListInstanceTypesResponse.FromString(self._server.list_instance_types())
        return [_instance_type(message) for message in response.instance_types]

    def _price_time(self, offer: Offer) -> datetime:
        if offer.instance_type.retired:
            return _utc(self._times.retired_type_times[offer.instance_type.name])
        return _utc(self._times.region_times[offer.region])


def _stamps(times: Mapping[str, datetime]) -> dict[str, Timestamp]:
    return {name: Timestamp(seconds=int(time.timestamp())) for name, time in times.items()}


def _utc(time: Timestamp) -> datetime:
    return time.ToDatetime(tzinfo=UTC)


def _said(value: InstanceType | Gpu | Offer | OfferQuery) -> dict[str, Any]:
    """Return the fields of a message that has the names of the value's."""
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(_plain(element) for element in value)
    if isinstance(value, Market):
        return _MARKET_NUMBERS[value]
    return value.name if isinstance(value, InstanceType) else value


def _heard(message: Message) -> dict[str, Any]:
    """Return what a message says by name; None where a field is absent."""
    return {
        field.name: getattr(message, field.name)
        if not field.has_presence or message.HasField(field.name)
        else None
        for field in message.DESCRIPTOR.fields
    }


def _instance_type(message: pb.InstanceType) -> InstanceType:
    return InstanceType(**_heard(message) | {"cloud": Cloud(message.cloud)})


def _offer(message: pb.Offer, types: Mapping[str, InstanceType]) -> Offer:
    instance_type, market = types[message.instance_type], _MARKETS[message.market]
    return Offer(**_heard(message) | {"instance_type": instance_type, "market": market})


def _query(message: pb.OfferFilter) -> OfferQuery:
    heard = _heard(message)
    names = ("gpus", "instance_types", "regions", "zones")
    sets = {name: frozenset(heard[name]) for name in names}
    markets = frozenset(_MARKETS[number] for number in message.markets)
    return OfferQuery(**heard | sets | {"cloud": Cloud(message.cloud), "markets": markets})
