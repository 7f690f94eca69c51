"""CatalogService: every answer comes from a worker process."""

import grpc

from spotwright.adapters.grpc.planning.workers import Workers, answered
from spotwright.v1 import catalog_pb2 as pb
from spotwright.v1 import catalog_pb2_grpc


class CatalogService(catalog_pb2_grpc.CatalogServiceServicer):
    """Offers and the hardware behind them."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    async def GetCatalog(  # noqa: N802
        self, request: pb.GetCatalogRequest, context: grpc.aio.ServicerContext
    ) -> pb.GetCatalogResponse:
        """Get what a catalog was made from, and when."""
        answer = await answered(self._workers, "GetCatalog", request, context)
        return pb.GetCatalogResponse.FromString(answer)

    async def ListOffers(  # noqa: N802
        self, request: pb.ListOffersRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListOffersResponse:
        """List the offers that match a filter."""
        answer = await answered(self._workers, "ListOffers", request, context)
        return pb.ListOffersResponse.FromString(answer)

    async def ListInstanceTypes(  # noqa: N802
        self, request: pb.ListInstanceTypesRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListInstanceTypesResponse:
        """List every instance type of a cloud."""
        answer = await answered(self._workers, "ListInstanceTypes", request, context)
        return pb.ListInstanceTypesResponse.FromString(answer)

    async def GetInstanceType(  # noqa: N802
        self, request: pb.GetInstanceTypeRequest, context: grpc.aio.ServicerContext
    ) -> pb.GetInstanceTypeResponse:
        """Get the hardware facts of one instance type."""
        answer = await answered(self._workers, "GetInstanceType", request, context)
        return pb.GetInstanceTypeResponse.FromString(answer)

    async def ListGpus(  # noqa: N802
        self, request: pb.ListGpusRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListGpusResponse:
        """List every GPU that is known."""
        answer = await answered(self._workers, "ListGpus", request, context)
        return pb.ListGpusResponse.FromString(answer)

    async def GetGpu(  # noqa: N802
        self, request: pb.GetGpuRequest, context: grpc.aio.ServicerContext
    ) -> pb.GetGpuResponse:
        """Get the data-sheet figures of one GPU."""
        answer = await answered(self._workers, "GetGpu", request, context)
        return pb.GetGpuResponse.FromString(answer)
