"""Questions about running jobs on their way to a process that decides, and its replies.

They stay within one daemon, so they are no part of the wire contract: JSON, and plans as messages.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from spotwright.adapters.grpc.messages.plan import STATUSES, planned_to_proto
from spotwright.adapters.grpc.messages.scalars import time_to_proto
from spotwright.domain.errors import BadInputError
from spotwright.domain.job import Target, TargetKind
from spotwright.domain.job_run import PlanRecord
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument
from spotwright.domain.steering_question import Replanned, SteeringAnswer, SteeringQuestion
from spotwright.usecases.steering_json import (
    facts_document,
    facts_of,
    now_document,
    now_of,
    steering_document,
    steering_of,
    text_of,
)
from spotwright.v1 import planner_pb2


def question_text(question: SteeringQuestion) -> str:
    """Return a question as it is sent."""
    target = question.target
    return text_of(
        {
            "job": asdict(question.job),
            "now": now_document(question.now),
            "target": None if target is None else [target.kind, target.value],
            "deadline_s": question.deadline_s,
            "planned_s": question.planned_s,
            "forced": question.forced,
            "plan_id": question.plan_id,
        }
    )


def question_of(text: str) -> SteeringQuestion:
    """Read a question, or raise BadInputError."""
    with _readable("question about a running job"):
        values = json.loads(text)
        target = values["target"]
        known: dict[str, Any] = {
            "job": JobDocument(**values["job"]),
            "now": now_of(values["now"]),
            "target": target and Target(kind=TargetKind(target[0]), value=target[1]),
        }
        return SteeringQuestion(**{**values, **known})


def reply_text(found: Replanned) -> str:
    """Return a decision as it is sent."""
    plan = None
    if found.planned is not None:
        plan = base64.b64encode(planned_to_proto(found.planned).SerializeToString()).decode()
    return text_of(
        {
            "steering": steering_document(found.steering),
            "facts": facts_document(found.facts),
            "fleet_text": found.fleet_text,
            "plan": plan,
        }
    )


def answer_of(text: str, job: JobDocument, *, now: datetime) -> SteeringAnswer:
    """Read a decision about a job; its plan is ready to be kept."""
    values = json.loads(text)
    plan = values["plan"]
    return SteeringAnswer(
        steering=steering_of(values["steering"]),
        facts=facts_of(values["facts"]),
        fleet_text=values["fleet_text"],
        plan=None if plan is None else _record(base64.b64decode(plan), job, now),
    )


def job_text_of(job: JobDocument) -> str:
    """Return a job as it is sent."""
    return text_of(asdict(job))


def job_of(text: str) -> JobDocument:
    """Read a job, or raise BadInputError."""
    with _readable("job"):
        return JobDocument(**json.loads(text))


def prices_text(prices: Mapping[Pool, float]) -> str:
    """Return prices as they are sent."""
    return text_of({str(pool): usd for pool, usd in prices.items()})


def prices_of(text: str) -> dict[Pool, float]:
    """Read prices."""
    return {Pool.parse(name): usd for name, usd in json.loads(text).items()}


@contextmanager
def _readable(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"not a {what}: {error}") from error


def _record(document: bytes, job: JobDocument, now: datetime) -> PlanRecord:
    plan = planner_pb2.Plan.FromString(document)
    plan.create_time.CopyFrom(time_to_proto(now))
    return PlanRecord(
        plan_id=plan.plan_id,
        job_name=plan.job_name,
        create_time=now,
        status=STATUSES.from_proto(plan.status),
        cost_usd=plan.cost_usd,
        duration_s=plan.prediction.duration_s.mid,
        document=plan.SerializeToString(),
        job_text=job.text,
        job_path=job.name,
        model=job.model or "",
    )
