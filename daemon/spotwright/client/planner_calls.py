"""Calls of PlannerService."""

import secrets
from collections.abc import Sequence

from spotwright.adapters.grpc.messages.job_document import (
    job_from_proto,
    job_to_proto,
    question_to_proto,
)
from spotwright.adapters.grpc.messages.plan import (
    no_fleet_from_proto,
    planned_from_proto,
    summary_from_proto,
)
from spotwright.adapters.grpc.messages.prediction import (
    compared_from_proto,
    prediction_from_proto,
    row_from_proto,
)
from spotwright.adapters.grpc.messages.scalars import sayable, time_from_proto
from spotwright.client.calls import Call
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
from spotwright.v1 import planner_pb2 as pb

_SERVICE = "/spotwright.v1.PlannerService"
_TABLE_TIME_S = 300.0  # for a table of many rows
_QUEUE_TIME_S = 900.0  # a daemon lets few wait and refuses the rest; none is to search for less
_RIVALS_TIME_S = 15.0  # what asking other planners adds to a search


def predict(job: JobDocument, fleet: str) -> Call[PredictedFleet]:
    """Predict what a fleet, written as an expression, does with a job."""
    return Call(
        method=f"{_SERVICE}/Predict",
        request=pb.PredictRequest(job=job_to_proto(job), fleet=sayable(fleet)),
        response=pb.PredictResponse,
        read=_predicted,
    )


def predict_configurations(job: JobDocument, csv: str, *, csv_name: str) -> Call[PredictedTable]:
    """Predict each row of a measurements file, given as its text and name."""
    return Call(
        method=f"{_SERVICE}/PredictConfigurations",
        request=pb.PredictConfigurationsRequest(
            job=job_to_proto(job), csv=csv, csv_name=sayable(csv_name)
        ),
        response=pb.PredictConfigurationsResponse,
        read=_table,
        timeout_s=_TABLE_TIME_S,
    )


def compare_fleets(job: JobDocument, fleets: Sequence[str]) -> Call[Comparison]:
    """Predict several fleets and tell which of them will do."""
    return Call(
        method=f"{_SERVICE}/CompareFleets",
        request=pb.CompareFleetsRequest(
            job=job_to_proto(job), fleets=[sayable(fleet) for fleet in fleets]
        ),
        response=pb.CompareFleetsResponse,
        read=_comparison,
    )


def create_plan(
    job: JobDocument, question: PlanQuestion, *, request_id: str | None = None
) -> Call[PlannedFleet | NoFleet]:
    """Find the fleet to rent; the same `request_id` again gets the plan that was made."""
    told = question_to_proto(job, question, request_id=request_id or secrets.token_hex(16))
    rivals_s = _RIVALS_TIME_S if question.with_rivals else 0.0
    return Call(
        method=f"{_SERVICE}/CreatePlan",
        request=told,
        response=pb.CreatePlanResponse,
        read=_plan_or_why_not,
        timeout_s=question.time_limit_s + rivals_s + _QUEUE_TIME_S,
    )


def get_plan(plan_id: str) -> Call[tuple[PlannedFleet, JobDocument]]:
    """Get a plan that was made before, with the job that it was made for."""
    return Call(
        method=f"{_SERVICE}/GetPlan",
        request=pb.GetPlanRequest(plan_id=plan_id),
        response=pb.GetPlanResponse,
        read=lambda response: (planned_from_proto(response.plan), job_from_proto(response.job)),
    )


def list_plans(
    *, page_size: int, page_token: str, job_name: str
) -> Call[tuple[Sequence[PlanSummary], str]]:
    """List plans, newest first; second, the token of the next page, empty on the last."""
    return Call(
        method=f"{_SERVICE}/ListPlans",
        request=pb.ListPlansRequest(page_size=page_size, page_token=page_token, job_name=job_name),
        response=pb.ListPlansResponse,
        read=lambda response: (
            [summary_from_proto(plan) for plan in response.plans],
            response.next_page_token,
        ),
    )


def render_tfvars(plan_id: str) -> Call[str]:
    """Render the Terraform variables that rent a plan's fleet."""
    return Call(
        method=f"{_SERVICE}/RenderTfvars",
        request=pb.RenderTfvarsRequest(plan_id=plan_id),
        response=pb.RenderTfvarsResponse,
        read=lambda response: str(response.tfvars_json),
    )


def _predicted(response: pb.PredictResponse) -> PredictedFleet:
    return PredictedFleet(
        prediction=prediction_from_proto(response.prediction),
        catalog_time=time_from_proto(response.catalog_time),
    )


def _table(response: pb.PredictConfigurationsResponse) -> PredictedTable:
    return PredictedTable(
        rows=[row_from_proto(row) for row in response.predictions],
        warnings=list(response.warnings),
    )


def _comparison(response: pb.CompareFleetsResponse) -> Comparison:
    return Comparison(
        fleets=[compared_from_proto(fleet) for fleet in response.fleets],
        catalog_time=time_from_proto(response.catalog_time),
    )


def _plan_or_why_not(response: pb.CreatePlanResponse) -> PlannedFleet | NoFleet:
    if response.HasField("plan"):
        return planned_from_proto(response.plan)
    return no_fleet_from_proto(response.infeasible)
