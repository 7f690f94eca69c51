"""The daemon, called from programs with an event loop."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Self, TypeVar

import grpc

from spotwright.adapters.grpc.errors import error_of
from spotwright.client import catalog_calls, planner_calls
from spotwright.client.aio_job_methods import AioJobMethods
from spotwright.client.calls import Call, StreamCall
from spotwright.client.catalog_calls import ListedOffers
from spotwright.client.channel import open_aio_channel
from spotwright.domain.address import Address
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import OfferQuery
from spotwright.domain.questions import (
    Comparison,
    JobDocument,
    NoFleet,
    PlannedFleet,
    PlanQuestion,
    PlanSummary,
    PredictedFleet,
    PredictedTable,
)

T = TypeVar("T")
_AS_USUAL = PlanQuestion()


class AioClient(AioJobMethods):
    """Calls one daemon, as `Client` does; each method is awaited. To cancel ends the call."""

    def __init__(
        self, address: str, *, tls_dir: Path | None = None, token: str | None = None
    ) -> None:
        """Name the daemon as HOST:PORT, in a running loop; the first call connects."""
        self._address = address
        self._channel = open_aio_channel(Address.parse(address), tls=tls_dir, token=token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connection; calls under way are cancelled."""
        await self._channel.close()

    async def run(self, call: Call[T]) -> T:
        """Make a call and wait for its answer."""
        send = self._channel.unary_unary(
            call.method,
            request_serializer=call.request.__class__.SerializeToString,
            response_deserializer=call.response.FromString,
        )
        try:
            response = await send(call.request, timeout=call.timeout_s)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, address=self._address) from None
        return call.read(response)

    async def stream(self, call: StreamCall[T]) -> AsyncIterator[T]:
        """Make a call and return its answers as they come; to leave off cancels it."""
        send = self._channel.unary_stream(
            call.method,
            request_serializer=call.request.__class__.SerializeToString,
            response_deserializer=call.response.FromString,
        )
        responses = send(call.request, timeout=call.timeout_s)
        try:
            async for response in responses:
                yield call.read(response)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, address=self._address) from None
        finally:
            responses.cancel()

    async def predict(self, job: JobDocument, fleet: str) -> PredictedFleet:
        """Predict what a fleet, written as an expression, does with a job."""
        return await self.run(planner_calls.predict(job, fleet))

    async def predict_configurations(
        self, job: JobDocument, csv: str, *, csv_name: str
    ) -> PredictedTable:
        """Predict each row of a measurements file, given as its text and name."""
        return await self.run(planner_calls.predict_configurations(job, csv, csv_name=csv_name))

    async def compare_fleets(self, job: JobDocument, fleets: Sequence[str]) -> Comparison:
        """Predict several fleets and tell which of them will do."""
        return await self.run(planner_calls.compare_fleets(job, fleets))

    async def create_plan(
        self,
        job: JobDocument,
        question: PlanQuestion = _AS_USUAL,
        *,
        request_id: str | None = None,
    ) -> PlannedFleet | NoFleet:
        """Find the fleet to rent; the same `request_id` again gets the plan that was made."""
        return await self.run(planner_calls.create_plan(job, question, request_id=request_id))

    async def get_plan(self, plan_id: str) -> tuple[PlannedFleet, JobDocument]:
        """Get a plan that was made before, with the job that it was made for."""
        return await self.run(planner_calls.get_plan(plan_id))

    async def list_plans(
        self, *, page_size: int = 0, page_token: str = "", job_name: str = ""
    ) -> tuple[Sequence[PlanSummary], str]:
        """List plans, newest first; second, the token of the next page, empty on the last."""
        return await self.run(
            planner_calls.list_plans(page_size=page_size, page_token=page_token, job_name=job_name)
        )

    async def render_tfvars(self, plan_id: str) -> str:
        """Return the Terraform variables that rent the fleet of a plan."""
        return await self.run(planner_calls.render_tfvars(plan_id))

    async def list_offers(self, query: OfferQuery) -> ListedOffers:
        """List the offers that match, cheapest first, ties by type, zone and market."""
        return await self.run(catalog_calls.list_offers(query))

    async def list_instance_types(self, cloud: Cloud = Cloud.AWS) -> Sequence[InstanceType]:
        """List every instance type of a cloud, by name."""
        return await self.run(catalog_calls.list_instance_types(cloud))

    async def instance_type(self, name: str, cloud: Cloud = Cloud.AWS) -> InstanceType:
        """Get the facts of one instance type."""
        return await self.run(catalog_calls.get_instance_type(cloud, name))

    async def list_gpus(self, cloud: Cloud = Cloud.AWS) -> Sequence[Gpu]:
        """List every GPU that is known, by name."""
        return await self.run(catalog_calls.list_gpus(cloud))

    async def gpu(self, name: str, cloud: Cloud = Cloud.AWS) -> Gpu:
        """Get the figures of one GPU."""
        return await self.run(catalog_calls.get_gpu(cloud, name))
