"""Answers without a server or a process: bytes in, bytes out, never an exception."""

import logging
import math

import grpc
import pytest
from google.rpc import status_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotwright.adapters.grpc.errors import StatusError
from spotwright.adapters.grpc.planning.answers import METHODS, Answers
from spotwright.adapters.grpc.planning.replies import response_of
from spotwright.adapters.processes.worker import Control, Handler
from spotwright.cli.daemon.planning_worker import TaskWatch, make_handler
from spotwright.v1 import catalog_pb2, planner_pb2
from tests.cli.small_job import EXAMPLES

JOB = (EXAMPLES / "resnet50.yaml").read_text(encoding="utf-8")
PREDICT = planner_pb2.PredictRequest(
    job=planner_pb2.JobDocument(text=JOB, name="job.yaml"), fleet="g5.xlarge*3/spot"
)
EXPECTED = {
    grpc.StatusCode.INVALID_ARGUMENT.value[0],
    grpc.StatusCode.NOT_FOUND.value[0],
    grpc.StatusCode.DEADLINE_EXCEEDED.value[0],  # the time was too short for any plan
}


@pytest.fixture(scope="module")
def handler() -> Handler:
    return make_handler()


def status_of_reply(reply: bytes) -> status_pb2.Status | None:
    try:
        response_of(reply)
    except StatusError as error:
        return error.status
    return None


def test_a_prediction_is_the_response(handler: Handler) -> None:
    reply = handler("Predict", PREDICT.SerializeToString(), Control(math.inf))

    response = planner_pb2.PredictResponse.FromString(response_of(reply))
    assert response.prediction.fleet.nodes[0].node_count == 3


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(method=st.sampled_from(sorted(METHODS)), request=st.binary(max_size=200))
def test_any_bytes_get_a_response_or_a_proper_status(
    handler: Handler, method: str, request: bytes
) -> None:
    status = status_of_reply(handler(method, request, Control(0.0)))

    assert status is None or status.code in EXPECTED, status


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_request_with_changed_bytes_gets_a_response_or_a_proper_status(
    handler: Handler, data: st.DataObject
) -> None:
    request = bytearray(PREDICT.SerializeToString())
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(request) - 1))
        request[place] = data.draw(st.integers(0, 255))

    status = status_of_reply(handler("Predict", bytes(request), Control(0.0)))

    assert status is None or status.code in EXPECTED, status


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(fleet=st.text(), model=st.text(), csv=st.text(), name=st.text())
def test_any_text_gets_a_response_or_a_proper_status(
    handler: Handler, fleet: str, model: str, csv: str, name: str
) -> None:
    job = planner_pb2.JobDocument(text=JOB, model=model if len(model) > 3 else "")
    requests = {
        "Predict": planner_pb2.PredictRequest(job=job, fleet=fleet),
        "CompareFleets": planner_pb2.CompareFleetsRequest(job=job, fleets=[fleet, name]),
        "PredictConfigurations": planner_pb2.PredictConfigurationsRequest(job=job, csv=csv),
        "GetGpu": catalog_pb2.GetGpuRequest(name=name),
        "GetInstanceType": catalog_pb2.GetInstanceTypeRequest(name=name, cloud=csv),
    }
    for method, request in requests.items():
        status = status_of_reply(handler(method, request.SerializeToString(), Control(0.0)))
        assert status is None or status.code in EXPECTED, status


def test_what_nobody_raised_on_purpose_is_logged_and_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise ZeroDivisionError("secret detail")

    answers = Answers(Broken(), catalog_of=lambda _: None, tfvars_of=lambda *_: "")  # type: ignore[arg-type,return-value]
    with caplog.at_level(logging.ERROR):
        status = status_of_reply(answers.reply("Predict", b""))

    assert status is not None
    assert status.code == grpc.StatusCode.INTERNAL.value[0]
    assert "secret detail" not in status.message
    assert "secret detail" in caplog.text


def test_a_search_ends_at_its_limit_when_it_is_due_and_when_nobody_waits() -> None:
    unwanted = Control(math.inf, told_to_stop=lambda: True)

    assert TaskWatch(Control(math.inf), 0.0).watch.stopped()
    assert TaskWatch(Control(0.0), 100.0).watch.stopped()
    assert TaskWatch(unwanted, 100.0).watch.stopped()
    assert not TaskWatch(Control(math.inf), 100.0).watch.stopped()
