import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from spotwright.adapters.grpc.messages.job_document import question_to_proto
from spotwright.adapters.grpc.planning.workers import QUICK, SEARCH
from spotwright.client import AioClient, Client
from spotwright.domain.errors import BadInputError, BusyError, NotFoundError, OutsideWorldError
from spotwright.domain.plan import PlanStatus
from spotwright.domain.questions import JobDocument, NoFleet, PlannedFleet, PlanQuestion
from spotwright.v1 import planner_pb2
from tests.cli.small_job import EXAMPLES, small_job
from tests.served_planner import ServedPlanner, served_planner

LONG = PlanQuestion(gap_fraction=1e-9, time_limit_s=100.0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlanner]:
    with served_planner(tmp_path_factory.mktemp("daemon"), max_waiting=2) as served:
        yield served


@pytest.fixture
def client(served: ServedPlanner) -> Iterator[Client]:
    with Client(served.address) as client:
        yield client


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> JobDocument:
    path = small_job(tmp_path_factory.mktemp("job"))
    return JobDocument(text=path.read_text(encoding="utf-8"), name=str(path))


@pytest.fixture(scope="module")
def large() -> JobDocument:
    """Return a job whose search takes much longer than any test."""
    text = (EXAMPLES / "bert.yaml").read_text(encoding="utf-8")
    return JobDocument(text=text, name="bert.yaml")


def until(happened: Callable[[], bool], *, within_s: float = 10.0) -> None:
    ends_s = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < ends_s
        time.sleep(0.005)


def planned(answer: PlannedFleet | NoFleet) -> PlannedFleet:
    assert isinstance(answer, PlannedFleet)
    return answer


class Search:
    """A search under way, asked for by a client of its own."""

    def __init__(self, served: ServedPlanner, job: JobDocument) -> None:
        self._channel = grpc.insecure_channel(served.address)
        create = self._channel.unary_unary(
            "/spotwright.v1.PlannerService/CreatePlan",
            request_serializer=planner_pb2.CreatePlanRequest.SerializeToString,
            response_deserializer=planner_pb2.CreatePlanResponse.FromString,
        )
        self.call = create.future(question_to_proto(job, LONG, request_id=""))

    def end(self) -> None:
        self.call.cancel()
        self._channel.close()


def test_a_plan_is_kept_and_got_again_with_its_job(client: Client, small: JobDocument) -> None:
    made = planned(client.create_plan(small))

    assert made.plan_id.startswith("p-")
    assert client.get_plan(made.plan_id) == (made, small)


def test_the_same_request_again_is_the_same_plan(client: Client, small: JobDocument) -> None:
    first = client.create_plan(small, request_id="again")

    assert client.create_plan(small, request_id="again") == first
    assert planned(client.create_plan(small)).plan_id != planned(first).plan_id


def test_a_request_name_that_made_another_jobs_plan_is_bad_input(
    client: Client, small: JobDocument
) -> None:
    client.create_plan(small, request_id="taken")
    other = replace(small, text=small.text + "\n# another\n")

    with pytest.raises(BadInputError, match=r"'taken' made plan p-\w+ of another job"):
        client.create_plan(other, request_id="taken")


@pytest.mark.parametrize("request_id", ["x" * 201, "a\0b"])
def test_a_request_name_that_no_store_can_keep_is_bad_input(
    client: Client, small: JobDocument, request_id: str
) -> None:
    with pytest.raises(BadInputError, match="request_id"):
        client.create_plan(small, request_id=request_id)


def test_a_search_for_longer_than_others_would_wait_is_bad_input(
    client: Client, small: JobDocument
) -> None:
    with pytest.raises(BadInputError, match="time_limit_s must be at most 3600"):
        client.create_plan(small, PlanQuestion(time_limit_s=3601.0))


def test_the_same_request_at_the_same_time_is_one_search(
    served: ServedPlanner, small: JobDocument
) -> None:
    def ask(_: int) -> PlannedFleet | NoFleet:
        with Client(served.address) as client:
            return client.create_plan(small, request_id="together")

    with ThreadPoolExecutor(4) as threads:
        answers = list(
            threads.map(ask, range(4))
        )  # one runs and two may wait: a fourth is too much

    assert len({planned(answer).plan_id for answer in answers}) == 1


def test_nothing_is_kept_where_no_fleet_meets_the_goal(client: Client, small: JobDocument) -> None:
    text = small.text.replace("deadline: 60h", "deadline: 1h")
    before = client.list_plans()

    answer = client.create_plan(JobDocument(text=text), request_id="infeasible")

    assert isinstance(answer, NoFleet)
    assert client.list_plans() == before


def test_plans_are_listed_newest_first_page_by_page(client: Client, small: JobDocument) -> None:
    text = small.text.replace("name: resnet50", "name: listed")
    made = [planned(client.create_plan(JobDocument(text=text))) for _ in range(3)]

    first, token = client.list_plans(job_name="listed", page_size=2)
    second, end = client.list_plans(job_name="listed", page_size=2, page_token=token)

    assert [each.plan_id for each in (*first, *second)] == [p.plan_id for p in reversed(made)]
    assert end == ""
    assert first[0].cost_usd == made[-1].plan.cost_usd
    assert first[0].status is PlanStatus.OPTIMAL


@pytest.mark.parametrize("token", ["x", "e30=", "WyJ4Il0=", "WyIyMDI2LTAxLTAxIiwgInAiXQ=="])
def test_a_page_token_that_no_list_gave_is_bad_input(client: Client, token: str) -> None:
    with pytest.raises(BadInputError, match="is not one that a list returned"):
        client.list_plans(page_token=token)


def test_a_plan_that_is_not_kept_is_not_found(client: Client) -> None:
    with pytest.raises(NotFoundError, match="no plan 'p-0'"):
        client.get_plan("p-0")
    with pytest.raises(NotFoundError):
        client.render_tfvars("p-0")


def test_a_cancelled_call_ends_its_search(
    served: ServedPlanner, client: Client, large: JobDocument, small: JobDocument
) -> None:
    pids = served.pool.pids(SEARCH)
    search = Search(served, large)
    until(lambda: served.pool.running_count(SEARCH) == 1)

    search.end()

    until(lambda: served.pool.running_count(SEARCH) == 0, within_s=1.9)
    assert served.pool.pids(SEARCH) == pids
    planned(client.create_plan(small))


def test_a_full_queue_says_when_to_come_back(
    served: ServedPlanner, client: Client, large: JobDocument, small: JobDocument
) -> None:
    searches = [Search(served, large) for _ in range(3)]
    try:
        until(lambda: served.pool.waiting_count(SEARCH) == 2)
        refused = Search(served, small)
        with pytest.raises(BusyError, match="2 requests wait") as busy:
            client.create_plan(small)
        status = rpc_status.from_call(refused.call)
        refused.end()
    finally:
        for search in searches:
            search.end()

    retry = error_details_pb2.RetryInfo()
    assert status.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert any(detail.Unpack(retry) for detail in status.details)
    assert retry.retry_delay.ToNanoseconds() > 0
    assert busy.value.retry_after_s > 0
    until(lambda: served.pool.running_count(SEARCH) == 0)


def test_a_prediction_does_not_wait_for_searches(
    served: ServedPlanner, client: Client, large: JobDocument, small: JobDocument
) -> None:
    search = Search(served, large)
    until(lambda: served.pool.running_count(SEARCH) == 1)

    client.predict(small, "g5.xlarge*3/spot")

    assert not search.call.done()
    search.end()
    until(lambda: served.pool.running_count(SEARCH) == 0)


def test_a_worker_that_is_killed_fails_the_call_and_is_replaced(
    served: ServedPlanner, client: Client, small: JobDocument
) -> None:
    def kill() -> None:
        until(lambda: served.pool.running_count(SEARCH) == 1)
        os.kill(served.pool.pids(SEARCH)[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(OutsideWorldError, match=r"died \(killed by signal 9") as died:
        client.create_plan(JobDocument(text=(EXAMPLES / "bert.yaml").read_text()), LONG)
    killer.join()

    assert died.value.reason == "WORKER_DIED"
    planned(client.create_plan(small))


def test_a_call_that_is_due_gets_the_best_so_far(served: ServedPlanner, large: JobDocument) -> None:
    with grpc.insecure_channel(served.address) as channel:
        create = channel.unary_unary(
            "/spotwright.v1.PlannerService/CreatePlan",
            request_serializer=planner_pb2.CreatePlanRequest.SerializeToString,
            response_deserializer=planner_pb2.CreatePlanResponse.FromString,
        )
        response = create(question_to_proto(large, LONG, request_id=""), timeout=3.0)

    assert response.plan.ended_early


def test_the_event_loop_is_never_held_up_by_a_plan(
    served: ServedPlanner, client: Client, large: JobDocument
) -> None:
    busy_s: list[float] = []
    done = threading.Event()

    async def beat() -> None:
        while not done.is_set():
            before_s = time.thread_time()  # not the clock: other programs may have the processor
            await asyncio.sleep(0.002)
            busy_s.append(time.thread_time() - before_s)

    beating = asyncio.run_coroutine_threadsafe(beat(), served.loop)
    planned(client.create_plan(large, PlanQuestion(gap_fraction=1e-9, time_limit_s=2.0)))
    done.set()
    beating.result()

    assert len(busy_s) > 100
    assert max(busy_s) < 0.05


def test_what_is_no_request_is_bad_input(served: ServedPlanner) -> None:
    with grpc.insecure_channel(served.address) as channel:
        call = channel.unary_unary("/spotwright.v1.PlannerService/CreatePlan").future
        empty = call(b"")
        with pytest.raises(grpc.RpcError) as refused:
            empty.result()

    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_the_client_that_is_awaited_gets_the_same(
    served: ServedPlanner, client: Client, small: JobDocument
) -> None:
    async def ask() -> PlannedFleet:
        async with AioClient(served.address) as awaited:
            made = planned(await awaited.create_plan(small, request_id="awaited"))
            assert await awaited.predict(small, "g5.xlarge") == client.predict(small, "g5.xlarge")
            assert "pools" in await awaited.render_tfvars(made.plan_id)
            return made

    assert asyncio.run(ask()) == client.create_plan(small, request_id="awaited")


def test_both_lanes_are_idle_in_the_end(served: ServedPlanner) -> None:
    pool = served.pool

    until(lambda: not any(pool.running_count(lane) for lane in (QUICK, SEARCH)))

    assert not any(pool.waiting_count(lane) for lane in (QUICK, SEARCH))
