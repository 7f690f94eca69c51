"""The daemon, called from programs that wait for each answer."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self, TypeVar

import grpc

from spotwright.adapters.grpc.errors import error_of
from spotwright.client import planner_calls
from spotwright.client.calls import Call, StreamCall
from spotwright.client.channel import open_channel
from spotwright.client.job_methods import JobMethods
from spotwright.client.remote_catalog import RemoteCatalog
from spotwright.domain.address import Address
from spotwright.domain.hardware import Cloud
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
from spotwright.usecases.ports import OfferSource

T = TypeVar("T")
_AS_USUAL = PlanQuestion()


class Client(JobMethods):
    """Calls one daemon; threads may share it.

    Each method raises the errors of domain/errors.py: what the daemon complains of as the same
    command would in-process, and DaemonUnavailableError where none answers.
    """

    def __init__(
        self, address: str, *, tls_dir: Path | None = None, token: str | None = None
    ) -> None:
        """Name the daemon as HOST:PORT; the first call connects."""
        self._address = address
        self._channel = open_channel(Address.parse(address), tls=tls_dir, token=token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; calls under way are cancelled."""
        self._channel.close()

    def run(self, call: Call[T]) -> T:
        """Make a call and wait for its answer."""
        send = self._channel.unary_unary(
            call.method,
            request_serializer=call.request.__class__.SerializeToString,
            response_deserializer=call.response.FromString,
        )
        try:
            response = send(call.request, timeout=call.timeout_s)
        except grpc.RpcError as error:
            raise error_of(error, address=self._address) from None
        return call.read(response)

    def stream(self, call: StreamCall[T]) -> Iterator[T]:
        """Make a call and return its answers as they come; to leave off cancels it."""
        send = self._channel.unary_stream(
            call.method,
            request_serializer=call.request.__class__.SerializeToString,
            response_deserializer=call.response.FromString,
        )
        responses = send(call.request, timeout=call.timeout_s)
        try:
            for response in responses:
                yield call.read(response)
        except grpc.RpcError as error:
            raise error_of(error, address=self._address) from None
        finally:
            responses.cancel()

    def predict(self, job: JobDocument, fleet: str) -> PredictedFleet:
        """Predict what a fleet, written as an expression, does with a job."""
        return self.run(planner_calls.predict(job, fleet))

    def predict_configurations(
        self, job: JobDocument, csv: str, *, csv_name: str
    ) -> PredictedTable:
        """Predict each row of a measurements file, given as its text and name."""
        return self.run(planner_calls.predict_configurations(job, csv, csv_name=csv_name))

    def compare_fleets(self, job: JobDocument, fleets: Sequence[str]) -> Comparison:
        """Predict several fleets and tell which of them will do."""
        return self.run(planner_calls.compare_fleets(job, fleets))

    def create_plan(
        self,
        job: JobDocument,
        question: PlanQuestion = _AS_USUAL,
        *,
        request_id: str | None = None,
    ) -> PlannedFleet | NoFleet:
        """Find the fleet to rent; the same `request_id` again gets the plan that was made."""
        return self.run(planner_calls.create_plan(job, question, request_id=request_id))

    def get_plan(self, plan_id: str) -> tuple[PlannedFleet, JobDocument]:
        """Get a plan that was made before, with the job that it was made for."""
        return self.run(planner_calls.get_plan(plan_id))

    def list_plans(
        self, *, page_size: int = 0, page_token: str = "", job_name: str = ""
    ) -> tuple[Sequence[PlanSummary], str]:
        """List plans, newest first; second, the token of the next page, empty on the last."""
        return self.run(
            planner_calls.list_plans(page_size=page_size, page_token=page_token, job_name=job_name)
        )

    def render_tfvars(self, plan_id: str) -> str:
        """Return the Terraform variables that rent the fleet of a plan."""
        return self.run(planner_calls.render_tfvars(plan_id))

    def catalog(self, cloud: Cloud = Cloud.AWS) -> OfferSource:
        """Return the offers that the daemon plans with."""
        return RemoteCatalog(cloud, self.run)
