"""Calls of CatalogService."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from spotwright.adapters.grpc.messages.catalog import (
    gpu_from_proto,
    instance_type_from_proto,
    offer_from_proto,
    query_to_proto,
    times_from_proto,
)
from spotwright.adapters.grpc.messages.scalars import sayable
from spotwright.client.calls import Call
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Offer, OfferQuery
from spotwright.v1 import catalog_pb2 as pb

_SERVICE = "/spotwright.v1.CatalogService"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTimes:
    """When the prices of a catalog were observed."""

    regions: Mapping[str, datetime]  # when the types on sale there were priced
    retired_types: Mapping[str, datetime]  # the oldest of a type's last known prices

    def of(self, offer: Offer) -> datetime:
        """Return when the price of an offer was observed, never a later time."""
        if offer.instance_type.retired:
            return self.retired_types[offer.instance_type.name]
        return self.regions[offer.region]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffers:
    """Offers with the times of the catalog that they are from."""

    offers: Sequence[Offer]
    times: PriceTimes


def price_times(cloud: Cloud) -> Call[PriceTimes]:
    """Get when the prices of a cloud were observed."""
    return Call(
        method=f"{_SERVICE}/GetCatalog",
        request=pb.GetCatalogRequest(cloud=cloud),
        response=pb.GetCatalogResponse,
        read=lambda response: _times(response.catalog.price_times),
    )


def list_offers(query: OfferQuery) -> Call[ListedOffers]:
    """List the offers that match, cheapest first, ties by type, zone and market."""
    return Call(
        method=f"{_SERVICE}/ListOffers",
        request=pb.ListOffersRequest(filter=query_to_proto(query)),
        response=pb.ListOffersResponse,
        read=_listed,
    )


def list_instance_types(cloud: Cloud) -> Call[Sequence[InstanceType]]:
    """List every instance type of a cloud, by name."""
    return Call(
        method=f"{_SERVICE}/ListInstanceTypes",
        request=pb.ListInstanceTypesRequest(cloud=cloud),
        response=pb.ListInstanceTypesResponse,
        read=lambda response: [instance_type_from_proto(t) for t in response.instance_types],
    )


def get_instance_type(cloud: Cloud, name: str) -> Call[InstanceType]:
    """Get the facts of one instance type."""
    return Call(
        method=f"{_SERVICE}/GetInstanceType",
        request=pb.GetInstanceTypeRequest(cloud=cloud, name=sayable(name)),
        response=pb.GetInstanceTypeResponse,
        read=lambda response: instance_type_from_proto(response.instance_type),
    )


def list_gpus(cloud: Cloud) -> Call[Sequence[Gpu]]:
    """List every GPU that is known, by name."""
    return Call(
        method=f"{_SERVICE}/ListGpus",
        request=pb.ListGpusRequest(cloud=cloud),
        response=pb.ListGpusResponse,
        read=lambda response: [gpu_from_proto(gpu) for gpu in response.gpus],
    )


def get_gpu(cloud: Cloud, name: str) -> Call[Gpu]:
    """Get the figures of one GPU."""
    return Call(
        method=f"{_SERVICE}/GetGpu",
        request=pb.GetGpuRequest(cloud=cloud, name=sayable(name)),
        response=pb.GetGpuResponse,
        read=lambda response: gpu_from_proto(response.gpu),
    )


def _listed(response: pb.ListOffersResponse) -> ListedOffers:
    types = {t.name: instance_type_from_proto(t) for t in response.instance_types}
    return ListedOffers(
        offers=[offer_from_proto(o, types[o.instance_type]) for o in response.offers],
        times=_times(response.price_times),
    )


def _times(message: pb.PriceTimes) -> PriceTimes:
    regions, retired_types = times_from_proto(message)
    return PriceTimes(regions=regions, retired_types=retired_types)
