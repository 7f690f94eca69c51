"""Every value comes back from the wire as it went, every digit and every absence of it."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotwright.adapters.grpc.messages import catalog, fleet, job_document, plan, prediction
from spotwright.domain.errors import BadInputError, UnknownNameError
from spotwright.domain.offer import Market
from spotwright.domain.questions import JobDocument, NoFleet, PlanQuestion
from spotwright.v1 import catalog_pb2, planner_pb2
from tests.adapters.grpc.messages import drawn_values as drawn

PAIRS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], Message], Callable[[Any], Any]]] = {
    "gpu": (drawn.gpus, catalog.gpu_to_proto, catalog.gpu_from_proto),
    "instance type": (
        drawn.instance_types(),
        catalog.instance_type_to_proto,
        catalog.instance_type_from_proto,
    ),
    "query": (drawn.queries, catalog.query_to_proto, catalog.query_from_proto),
    "fleet": (drawn.fleets, fleet.fleet_to_proto, fleet.fleet_from_proto),
    "prediction": (
        drawn.predictions,
        prediction.prediction_to_proto,
        prediction.prediction_from_proto,
    ),
    "compared": (drawn.compared, prediction.compared_to_proto, prediction.compared_from_proto),
    "row": (drawn.rows, prediction.row_to_proto, prediction.row_from_proto),
    "job": (drawn.jobs, job_document.job_to_proto, job_document.job_from_proto),
    "goal": (drawn.goals, job_document.goal_to_proto, job_document.goal_from_proto),
    "plan": (drawn.planned, plan.planned_to_proto, plan.planned_from_proto),
    "summary": (drawn.summaries, plan.summary_to_proto, plan.summary_from_proto),
    "change": (drawn.changes, plan.change_to_proto, plan.change_from_proto),
    "rival": (drawn.rivals, plan.rival_to_proto, plan.rival_from_proto),
}


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_value_comes_back_as_it_went(name: str, data: st.DataObject) -> None:
    values, to_proto, from_proto = PAIRS[name]
    value = data.draw(values)

    message = to_proto(value)
    arrived = type(message).FromString(message.SerializeToString())

    assert from_proto(arrived) == value


@settings(max_examples=40, deadline=None)
@given(job=drawn.jobs, question=drawn.questions, request_id=drawn.texts)
def test_a_question_for_a_plan_comes_back_as_it_went(
    job: JobDocument, question: PlanQuestion, request_id: str
) -> None:
    message = job_document.question_to_proto(job, question, request_id=request_id)
    arrived = planner_pb2.CreatePlanRequest.FromString(message.SerializeToString())

    assert job_document.question_from_proto(arrived) == question
    assert job_document.job_from_proto(arrived.job) == job
    assert arrived.request_id == request_id


@settings(max_examples=40, deadline=None)
@given(nothing=drawn.no_fleets())
def test_why_there_is_no_plan_comes_back_as_it_went(nothing: NoFleet) -> None:
    message = plan.no_fleet_to_proto(nothing)
    back = plan.no_fleet_from_proto(planner_pb2.Infeasible.FromString(message.SerializeToString()))

    assert str(back.error) == str(nothing.error)
    assert vars(back.error) == vars(nothing.error)
    assert (back.job_name, back.objective, back.catalog_time) == (
        nothing.job_name,
        nothing.objective,
        nothing.catalog_time,
    )


def test_a_question_without_figures_is_asked_as_usual() -> None:
    assert job_document.question_from_proto(planner_pb2.CreatePlanRequest()) == PlanQuestion()


@pytest.mark.parametrize(
    "request_",
    [
        planner_pb2.CreatePlanRequest(gap_fraction=0.0),
        planner_pb2.CreatePlanRequest(gap_fraction=float("nan")),
        planner_pb2.CreatePlanRequest(time_limit_s=-1.0),
        planner_pb2.CreatePlanRequest(time_limit_s=float("inf")),
        planner_pb2.CreatePlanRequest(switching_s=-1.0),
        planner_pb2.CreatePlanRequest.FromString(b"\x20\x4d"),
        planner_pb2.CreatePlanRequest(goal=planner_pb2.GoalOverride(deadline_s=0.0)),
        planner_pb2.CreatePlanRequest(goal=planner_pb2.GoalOverride(budget_usd=float("nan"))),
        planner_pb2.CreatePlanRequest(goal=planner_pb2.GoalOverride(confidence_fraction=1.0)),
        planner_pb2.CreatePlanRequest(goal=planner_pb2.GoalOverride(target_loss=-2.0)),
    ],
    ids=str,
)
def test_a_figure_that_no_flag_could_say_is_bad_input(
    request_: planner_pb2.CreatePlanRequest,
) -> None:
    with pytest.raises(BadInputError, match=r"must|is no objective"):
        job_document.question_from_proto(request_)


def test_a_market_or_cloud_that_nobody_knows_is_bad_input() -> None:
    with pytest.raises(BadInputError, match=r"0 is no market; known: 1 \(spot\), 2 \(on-demand\)"):
        catalog.query_from_proto(catalog_pb2.OfferFilter(markets=[catalog_pb2.MARKET_UNSPECIFIED]))
    with pytest.raises(UnknownNameError, match="unknown cloud 'asw'; did you mean 'aws'"):
        catalog.query_from_proto(catalog_pb2.OfferFilter(cloud="asw"))
    assert catalog.MARKETS.from_proto(catalog_pb2.MARKET_SPOT) is Market.SPOT
