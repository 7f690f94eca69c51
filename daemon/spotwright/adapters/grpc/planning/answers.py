"""From the bytes of a request to the bytes of its answer, in a process that may take its time.

Everything here runs in a worker; the process with the event loop reads replies only, and imports
nothing that computes.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import grpc
from google.protobuf import wrappers_pb2
from google.protobuf.message import DecodeError, Message

from spotwright.adapters.grpc.errors import make_status, status_of
from spotwright.adapters.grpc.messages.catalog import (
    cloud_from_proto,
    gpu_to_proto,
    instance_type_to_proto,
    offer_to_proto,
    query_from_proto,
    times_to_proto,
)
from spotwright.adapters.grpc.messages.job_document import job_from_proto, question_from_proto
from spotwright.adapters.grpc.messages.plan import (
    no_fleet_to_proto,
    planned_from_proto,
    planned_to_proto,
)
from spotwright.adapters.grpc.messages.prediction import (
    compared_to_proto,
    prediction_to_proto,
    row_to_proto,
)
from spotwright.adapters.grpc.messages.scalars import time_to_proto
from spotwright.adapters.grpc.messages.steering import (
    job_of,
    prices_text,
    question_of,
    reply_text,
)
from spotwright.adapters.grpc.planning.replies import failed, responded
from spotwright.domain.catalog import Snapshot
from spotwright.domain.errors import BadInputError, SpotwrightError
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument, NoFleet, PlannedFleet
from spotwright.domain.steering_question import Replanned, SteeringQuestion
from spotwright.usecases.planner_port import Planner
from spotwright.usecases.ports import OfferSource
from spotwright.v1 import catalog_pb2, planner_pb2

_log = logging.getLogger(__name__)


class ServedCatalog(OfferSource, Protocol):
    """A catalog that also shows what it was made from."""

    @property
    def snapshot(self) -> Snapshot:
        """All that it knows."""


class RunningJobs(Protocol):
    """Decides about jobs that run."""

    def decided(self, question: SteeringQuestion) -> Replanned:
        """Answer a question."""

    def prices(self, job: JobDocument) -> Mapping[Pool, float]:
        """Return what one node of each pool that a job could use costs, in USD per hour."""


class Answers:
    """Answers requests with a planner and the catalogs that it plans with."""

    def __init__(
        self,
        planner: Planner,
        *,
        catalog_of: Callable[[Cloud], ServedCatalog],
        tfvars_of: Callable[[JobDocument, PlannedFleet], str],
        steering: RunningJobs | None = None,
    ) -> None:
        """Answer with a planner; without `steering`, nothing is said about running jobs."""
        self._planner, self._catalog_of, self._tfvars_of = planner, catalog_of, tfvars_of
        self._steering = steering

    def reply(self, method: str, request: bytes) -> bytes:
        """Answer the request of a method by its name, such as Predict; never raises."""
        kind, answer = METHODS[method]
        try:
            message = kind.FromString(request)
            return responded(answer(self, message))
        except SpotwrightError as error:
            status = status_of(error)
        except DecodeError as error:
            status = status_of(BadInputError(f"not a request of {method}: {error}"))
        except Exception:
            _log.exception("a request could not be answered", extra={"method": method})
            text = "the daemon failed to answer; its log says why"
            status = make_status(grpc.StatusCode.INTERNAL, text, reason=SpotwrightError.reason)
        return failed(status)

    def predict(self, request: planner_pb2.PredictRequest) -> planner_pb2.PredictResponse:
        """Predict one fleet."""
        answer = self._planner.predict(job_from_proto(request.job), request.fleet)
        return planner_pb2.PredictResponse(
            prediction=prediction_to_proto(answer.prediction),
            catalog_time=time_to_proto(answer.catalog_time),
        )

    def predict_configurations(
        self, request: planner_pb2.PredictConfigurationsRequest
    ) -> planner_pb2.PredictConfigurationsResponse:
        """Predict a table of configurations."""
        table = self._planner.predict_configurations(
            job_from_proto(request.job), request.csv, csv_name=request.csv_name or "configs.csv"
        )
        return planner_pb2.PredictConfigurationsResponse(
            predictions=[row_to_proto(row) for row in table.rows], warnings=table.warnings
        )

    def compare_fleets(
        self, request: planner_pb2.CompareFleetsRequest
    ) -> planner_pb2.CompareFleetsResponse:
        """Predict several fleets."""
        answer = self._planner.compare_fleets(job_from_proto(request.job), list(request.fleets))
        return planner_pb2.CompareFleetsResponse(
            fleets=[compared_to_proto(fleet) for fleet in answer.fleets],
            catalog_time=time_to_proto(answer.catalog_time),
        )

    def create_plan(self, request: planner_pb2.CreatePlanRequest) -> planner_pb2.CreatePlanResponse:
        """Find the fleet to rent."""
        job = job_from_proto(request.job)
        answer = self._planner.create_plan(job, question_from_proto(request))
        if isinstance(answer, NoFleet):
            return planner_pb2.CreatePlanResponse(infeasible=no_fleet_to_proto(answer))
        return planner_pb2.CreatePlanResponse(plan=planned_to_proto(answer))

    def render_tfvars(self, kept: planner_pb2.GetPlanResponse) -> planner_pb2.RenderTfvarsResponse:
        """Render the Terraform variables of a plan that was kept, with its job."""
        text = self._tfvars_of(job_from_proto(kept.job), planned_from_proto(kept.plan))
        return planner_pb2.RenderTfvarsResponse(tfvars_json=text)

    def steer_job(self, request: wrappers_pb2.StringValue) -> wrappers_pb2.StringValue:
        """Decide what a running job does next."""
        assert self._steering is not None
        found = self._steering.decided(question_of(request.value))
        return wrappers_pb2.StringValue(value=reply_text(found))

    def pool_prices(self, request: wrappers_pb2.StringValue) -> wrappers_pb2.StringValue:
        """Tell what the pools that a job could use cost."""
        assert self._steering is not None
        found = self._steering.prices(job_of(request.value))
        return wrappers_pb2.StringValue(value=prices_text(found))

    def get_catalog(self, request: catalog_pb2.GetCatalogRequest) -> catalog_pb2.GetCatalogResponse:
        """Tell what a catalog was made from."""
        snapshot = self._catalog(request.cloud).snapshot
        catalog = catalog_pb2.Catalog(
            cloud=snapshot.cloud, price_times=_times(snapshot), sources=snapshot.sources
        )
        return catalog_pb2.GetCatalogResponse(catalog=catalog)

    def list_offers(self, request: catalog_pb2.ListOffersRequest) -> catalog_pb2.ListOffersResponse:
        """List the offers that match."""
        catalog = self._catalog(request.filter.cloud)
        offers = catalog.offers(query_from_proto(request.filter))
        types = {offer.instance_type.name: offer.instance_type for offer in offers}
        return catalog_pb2.ListOffersResponse(
            offers=[offer_to_proto(offer) for offer in offers],
            instance_types=[instance_type_to_proto(types[name]) for name in sorted(types)],
            price_times=_times(catalog.snapshot),
        )

    def list_instance_types(
        self, request: catalog_pb2.ListInstanceTypesRequest
    ) -> catalog_pb2.ListInstanceTypesResponse:
        """List every instance type."""
        types = self._catalog(request.cloud).instance_types()
        return catalog_pb2.ListInstanceTypesResponse(
            instance_types=[instance_type_to_proto(each) for each in types]
        )

    def get_instance_type(
        self, request: catalog_pb2.GetInstanceTypeRequest
    ) -> catalog_pb2.GetInstanceTypeResponse:
        """Tell the facts of one instance type."""
        found = self._catalog(request.cloud).instance_type(request.name)
        return catalog_pb2.GetInstanceTypeResponse(instance_type=instance_type_to_proto(found))

    def list_gpus(self, request: catalog_pb2.ListGpusRequest) -> catalog_pb2.ListGpusResponse:
        """List every GPU, by name."""
        gpus = sorted(self._catalog(request.cloud).snapshot.gpus.items())
        return catalog_pb2.ListGpusResponse(gpus=[gpu_to_proto(gpu) for _, gpu in gpus])

    def get_gpu(self, request: catalog_pb2.GetGpuRequest) -> catalog_pb2.GetGpuResponse:
        """Tell the figures of one GPU."""
        found = self._catalog(request.cloud).gpu(request.name)
        return catalog_pb2.GetGpuResponse(gpu=gpu_to_proto(found))

    def _catalog(self, cloud: str) -> ServedCatalog:
        return self._catalog_of(cloud_from_proto(cloud))


def _times(snapshot: Snapshot) -> catalog_pb2.PriceTimes:
    return times_to_proto(regions=snapshot.price_times, retired_types=snapshot.retired_price_times)


METHODS: Mapping[str, tuple[type[Message], Callable[[Answers, Any], Message]]] = {
    "Predict": (planner_pb2.PredictRequest, Answers.predict),
    "PredictConfigurations": (
        planner_pb2.PredictConfigurationsRequest,
        Answers.predict_configurations,
    ),
    "CompareFleets": (planner_pb2.CompareFleetsRequest, Answers.compare_fleets),
    "CreatePlan": (planner_pb2.CreatePlanRequest, Answers.create_plan),
    "RenderTfvars": (planner_pb2.GetPlanResponse, Answers.render_tfvars),
    "SteerJob": (wrappers_pb2.StringValue, Answers.steer_job),
    "PoolPrices": (wrappers_pb2.StringValue, Answers.pool_prices),
    "GetCatalog": (catalog_pb2.GetCatalogRequest, Answers.get_catalog),
    "ListOffers": (catalog_pb2.ListOffersRequest, Answers.list_offers),
    "ListInstanceTypes": (catalog_pb2.ListInstanceTypesRequest, Answers.list_instance_types),
    "GetInstanceType": (catalog_pb2.GetInstanceTypeRequest, Answers.get_instance_type),
    "ListGpus": (catalog_pb2.ListGpusRequest, Answers.list_gpus),
    "GetGpu": (catalog_pb2.GetGpuRequest, Answers.get_gpu),
}
