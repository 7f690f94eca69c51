"""Decisions about running jobs, made in worker processes."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

from google.protobuf import wrappers_pb2

from spotwright.adapters.grpc.messages.job_document import job_to_proto
from spotwright.adapters.grpc.messages.steering import (
    answer_of,
    job_text_of,
    prices_of,
    question_text,
)
from spotwright.adapters.grpc.planning.replies import response_of
from spotwright.adapters.grpc.planning.workers import STEER, Workers
from spotwright.domain.errors import BusyError
from spotwright.domain.job_run import PlanRecord
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument
from spotwright.domain.steering_question import SteeringAnswer, SteeringQuestion
from spotwright.v1 import planner_pb2

_LONGEST_S = 30.0  # a notice leaves two minutes


class WorkerDecider:
    """Asks processes; the event loop only waits."""

    def __init__(self, workers: Workers, *, clock: Callable[[], datetime]) -> None:
        self._workers, self._clock = workers, clock

    async def decide(self, question: SteeringQuestion) -> SteeringAnswer:
        """Return what a running job does next.

        Raises:
            SpotwrightError: what the process complains of; none was free, or none in time.
        """
        request = wrappers_pb2.StringValue(value=question_text(question))
        reply = await self._asked("SteerJob", request.SerializeToString())
        text = wrappers_pb2.StringValue.FromString(reply).value
        return answer_of(text, question.job, now=self._clock())

    async def prices(self, job: JobDocument) -> Mapping[Pool, float]:
        """Return what one node of each pool that a job could use costs, by the catalog."""
        request = wrappers_pb2.StringValue(value=job_text_of(job))
        reply = await self._asked("PoolPrices", request.SerializeToString())
        return prices_of(wrappers_pb2.StringValue.FromString(reply).value)

    async def variables(self, plan: PlanRecord) -> str:
        """Return the Terraform variables of a plan."""
        job = JobDocument(text=plan.job_text, name=plan.job_path, model=plan.model or None)
        kept = planner_pb2.GetPlanResponse(
            plan=planner_pb2.Plan.FromString(plan.document), job=job_to_proto(job)
        )
        reply = await self._asked("RenderTfvars", kept.SerializeToString())
        return planner_pb2.RenderTfvarsResponse.FromString(reply).tfvars_json

    async def _asked(self, method: str, request: bytes) -> bytes:
        try:
            async with asyncio.timeout(_LONGEST_S):
                reply = await self._workers.run(
                    method, request, lane=STEER, time_limit_s=_LONGEST_S
                )
        except TimeoutError:
            raise BusyError(
                f"{method} took longer than {_LONGEST_S:g} s", retry_after_s=_LONGEST_S
            ) from None
        return response_of(reply)
