"""Hardware, offers and questions about them, to and from catalog.proto."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from spotwright.adapters.grpc.messages.enums import EnumPairs
from spotwright.adapters.grpc.messages.scalars import (
    by_name,
    sayable,
    time_from_proto,
    time_to_proto,
)
from spotwright.domain.errors import UnknownNameError
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.v1 import catalog_pb2 as pb

MARKETS = EnumPairs("market", {Market.SPOT: pb.MARKET_SPOT, Market.ON_DEMAND: pb.MARKET_ON_DEMAND})


def cloud_from_proto(name: str) -> Cloud:
    """Return a cloud by its name; AWS where none is given."""
    if not name:
        return Cloud.AWS
    try:
        return Cloud(name)
    except ValueError:
        raise UnknownNameError("cloud", name, known=Cloud) from None


def gpu_to_proto(gpu: Gpu) -> pb.Gpu:
    """Return a GPU as a message."""
    return pb.Gpu(**_fields(gpu))


def gpu_from_proto(message: pb.Gpu) -> Gpu:
    """Return a GPU of a message."""
    return Gpu(**by_name(message))


def instance_type_to_proto(instance_type: InstanceType) -> pb.InstanceType:
    """Return an instance type as a message."""
    return pb.InstanceType(**_fields(instance_type))


def instance_type_from_proto(message: pb.InstanceType) -> InstanceType:
    """Return an instance type of a message."""
    return InstanceType(**by_name(message) | {"cloud": cloud_from_proto(message.cloud)})


def offer_to_proto(offer: Offer) -> pb.Offer:
    """Return an offer as a message, which names its instance type."""
    return pb.Offer(
        instance_type=offer.instance_type.name,
        region=offer.region,
        zone=offer.zone,
        market=MARKETS.to_proto(offer.market),
        price_usd_per_hour=offer.price_usd_per_hour,
        interruption_fraction=offer.interruption_fraction,
    )


def offer_from_proto(message: pb.Offer, instance_type: InstanceType) -> Offer:
    """Return an offer of a message; `instance_type` is the one that it names."""
    told = {"instance_type": instance_type, "market": MARKETS.from_proto(message.market)}
    return Offer(**by_name(message) | told)


def query_to_proto(query: OfferQuery) -> pb.OfferFilter:
    """Return a question about offers as a message; sets in order."""
    return pb.OfferFilter(**_fields(query))


def query_from_proto(message: pb.OfferFilter) -> OfferQuery:
    """Return a question about offers of a message."""
    told = by_name(message)
    names = ("gpus", "instance_types", "regions", "zones")
    sets: dict[str, Any] = {name: frozenset(told[name]) for name in names}
    markets = frozenset(MARKETS.from_proto(number) for number in message.markets)
    cloud = cloud_from_proto(message.cloud)
    return OfferQuery(**told | sets | {"cloud": cloud, "markets": markets})


def times_to_proto(
    *, regions: Mapping[str, datetime], retired_types: Mapping[str, datetime]
) -> pb.PriceTimes:
    """Return when prices were observed as a message."""
    return pb.PriceTimes(
        region_times={name: time_to_proto(time) for name, time in regions.items()},
        retired_type_times={name: time_to_proto(time) for name, time in retired_types.items()},
    )


def times_from_proto(
    message: pb.PriceTimes,
) -> tuple[dict[str, datetime], dict[str, datetime]]:
    """Return when prices were observed: by region, and by type that is no longer sold."""
    return (
        {name: time_from_proto(time) for name, time in message.region_times.items()},
        {name: time_from_proto(time) for name, time in message.retired_type_times.items()},
    )


def _fields(value: InstanceType | Gpu | OfferQuery) -> dict[str, Any]:
    """Return the fields of a message that has the names of the value's."""
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(_plain(element) for element in value)
    if isinstance(value, Market):
        return MARKETS.to_proto(value)
    return sayable(value) if isinstance(value, str) else value
