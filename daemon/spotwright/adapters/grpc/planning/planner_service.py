"""PlannerService: worker processes compute, the store keeps."""

import asyncio
import secrets
import time
from collections.abc import Callable
from datetime import datetime

import grpc

from spotwright.adapters.grpc.access.callers import current_principal
from spotwright.adapters.grpc.messages.job_document import job_to_proto
from spotwright.adapters.grpc.messages.plan import STATUSES, summary_to_proto
from spotwright.adapters.grpc.messages.scalars import time_to_proto
from spotwright.adapters.grpc.names import checked
from spotwright.adapters.grpc.pages import page_size_of, start_of, start_token
from spotwright.adapters.grpc.planning.shared_work import SharedWork
from spotwright.adapters.grpc.planning.workers import SEARCH, Workers, answered
from spotwright.domain.errors import BadInputError
from spotwright.domain.job_run import PlanRecord
from spotwright.domain.plan import PlanStatus
from spotwright.domain.questions import JobDocument, PlanSummary
from spotwright.usecases.store_ports import PlanStore
from spotwright.v1 import planner_pb2 as pb
from spotwright.v1 import planner_pb2_grpc

_PAGE_SIZE = 50
_LONGEST_SEARCH_S = 3600.0
_INFEASIBLE, _FAILED = "infeasible", "failed"

ObservePlan = Callable[[str, float], None]  # how a search ended, and after how many seconds


class PlannerService(planner_pb2_grpc.PlannerServiceServicer):
    """Predictions and plans."""

    def __init__(
        self,
        workers: Workers,
        plans: PlanStore,
        *,
        clock: Callable[[], datetime],
        observe: ObservePlan = lambda _status, _seconds: None,
    ) -> None:
        self._workers, self._plans, self._clock = workers, plans, clock
        self._observe = observe
        self._searches: SharedWork[pb.CreatePlanResponse] = SharedWork()

    async def Predict(  # noqa: N802
        self, request: pb.PredictRequest, context: grpc.aio.ServicerContext
    ) -> pb.PredictResponse:
        """Predict time, loss and cost of one fleet."""
        answer = await answered(self._workers, "Predict", request, context)
        return pb.PredictResponse.FromString(answer)

    async def PredictConfigurations(  # noqa: N802
        self, request: pb.PredictConfigurationsRequest, context: grpc.aio.ServicerContext
    ) -> pb.PredictConfigurationsResponse:
        """Predict a table of configurations."""
        method = "PredictConfigurations"  # of many rows it takes long
        answer = await answered(self._workers, method, request, context, lane=SEARCH)
        return pb.PredictConfigurationsResponse.FromString(answer)

    async def CompareFleets(  # noqa: N802
        self, request: pb.CompareFleetsRequest, context: grpc.aio.ServicerContext
    ) -> pb.CompareFleetsResponse:
        """Predict several fleets and tell which of them will do."""
        answer = await answered(self._workers, "CompareFleets", request, context)
        return pb.CompareFleetsResponse.FromString(answer)

    async def CreatePlan(  # noqa: N802
        self, request: pb.CreatePlanRequest, context: grpc.aio.ServicerContext
    ) -> pb.CreatePlanResponse:
        """Find the fleet to rent and keep the answer; the same request twice is one search."""
        if request.time_limit_s > _LONGEST_SEARCH_S:
            raise BadInputError(
                f"time_limit_s must be at most {_LONGEST_SEARCH_S:g} on a daemon, which others "
                f"wait for; got {request.time_limit_s:g}"
            )
        if not request.request_id:
            return await self._created(request, context, key="")
        # Each caller has names of its own.
        key = f"{current_principal.get().name}/{checked('request_id', request.request_id)}"
        return await self._searches.run(key, lambda: self._created_once(request, context, key=key))

    async def GetPlan(  # noqa: N802
        self,
        request: pb.GetPlanRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> pb.GetPlanResponse:
        """Get a plan that was made before."""
        return _kept(await asyncio.to_thread(self._plans.plan, request.plan_id))

    async def ListPlans(  # noqa: N802
        self,
        request: pb.ListPlansRequest,
        context: grpc.aio.ServicerContext,  # noqa: ARG002
    ) -> pb.ListPlansResponse:
        """List plans, newest first."""
        size = page_size_of(request.page_size, usual=_PAGE_SIZE)
        after = start_of(request.page_token)
        records = await asyncio.to_thread(
            self._plans.plans, job_name=request.job_name, after=after, limit=size + 1
        )
        page, rest = records[:size], records[size:]
        return pb.ListPlansResponse(
            plans=[summary_to_proto(_summary(record)) for record in page],
            next_page_token=start_token(page[-1].create_time, page[-1].plan_id) if rest else "",
        )

    async def RenderTfvars(  # noqa: N802
        self, request: pb.RenderTfvarsRequest, context: grpc.aio.ServicerContext
    ) -> pb.RenderTfvarsResponse:
        """Render the Terraform variables that rent a plan's fleet."""
        kept = _kept(await asyncio.to_thread(self._plans.plan, request.plan_id))
        answer = await answered(self._workers, "RenderTfvars", kept, context)
        return pb.RenderTfvarsResponse.FromString(answer)

    async def _created_once(
        self, request: pb.CreatePlanRequest, context: grpc.aio.ServicerContext, *, key: str
    ) -> pb.CreatePlanResponse:
        before = await asyncio.to_thread(self._plans.plan_of_request, key)
        if before is None:
            return await self._created(request, context, key=key)
        if (before.job_text, before.model) != (request.job.text, request.job.model):
            raise BadInputError(
                f"request_id {request.request_id!r} made plan {before.plan_id} of another job; "
                "choose a new one for each question"
            )
        return pb.CreatePlanResponse(plan=pb.Plan.FromString(before.document))

    async def _created(
        self, request: pb.CreatePlanRequest, context: grpc.aio.ServicerContext, *, key: str
    ) -> pb.CreatePlanResponse:
        response = await self._searched(request, context)
        if not response.HasField("plan"):
            return response
        plan, now = response.plan, self._clock()
        plan.plan_id = f"p-{secrets.token_hex(8)}"
        plan.create_time.CopyFrom(time_to_proto(now))
        record = PlanRecord(
            plan_id=plan.plan_id,
            job_name=plan.job_name,
            create_time=now,
            status=STATUSES.from_proto(plan.status),
            cost_usd=plan.cost_usd,
            duration_s=plan.prediction.duration_s.mid,
            document=plan.SerializeToString(),
            job_text=request.job.text,
            job_path=request.job.name,
            model=request.job.model,
        )
        kept = await asyncio.to_thread(self._plans.add_plan, record, request_id=key)
        return pb.CreatePlanResponse(plan=pb.Plan.FromString(kept.document))

    async def _searched(
        self, request: pb.CreatePlanRequest, context: grpc.aio.ServicerContext
    ) -> pb.CreatePlanResponse:
        """Search in a worker, and count how it ended, the waiting for a worker included."""
        started_s, status = time.monotonic(), _FAILED
        try:
            answer = await answered(self._workers, "CreatePlan", request, context, lane=SEARCH)
            response = pb.CreatePlanResponse.FromString(answer)
            planned = response.HasField("plan")
            status = STATUSES.from_proto(response.plan.status) if planned else _INFEASIBLE
            return response
        finally:
            self._observe(status, time.monotonic() - started_s)


def _kept(record: PlanRecord) -> pb.GetPlanResponse:
    job = JobDocument(text=record.job_text, name=record.job_path, model=record.model or None)
    return pb.GetPlanResponse(plan=pb.Plan.FromString(record.document), job=job_to_proto(job))


def _summary(record: PlanRecord) -> PlanSummary:
    return PlanSummary(
        plan_id=record.plan_id,
        create_time=record.create_time,
        job_name=record.job_name,
        status=PlanStatus(record.status),
        cost_usd=record.cost_usd,
        duration_s=record.duration_s,
    )
