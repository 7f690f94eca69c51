"""Whatever arrives on the wire is answered with a status that says whose fault it is."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.v1 import job_pb2, planner_pb2
from spotwright.v1.job_pb2_grpc import JobServiceStub
from spotwright.v1.planner_pb2_grpc import PlannerServiceStub
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.agent_client import OWN_CONNECTION, plain_channel, sending_fleet
from tests.e2e.bad_requests import JOB_TEXT, Known, Wire, bad_requests, hostile, valid_requests

PROPER = {
    "OK", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED",
    "DEADLINE_EXCEEDED",
}  # fmt: skip
_PER_CONNECTION = 100  # fewer than the rate limit lets through at once
_AT_ONCE = 4
_TIMEOUT_S = 10.0
_MAX_GROWTH_BYTES = 50 * 2**20


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        asyncio.run(_plan(daemon.address))  # workers have loaded what they need
        yield daemon


@pytest.fixture
def unharmed(daemon: DaemonProcess) -> Iterator[DaemonProcess]:
    """The daemon, which must be as well after the test as before it."""
    line_count, before_bytes = len(daemon.log), rss_bytes(daemon.pid)
    yield daemon
    assert asyncio.run(_plan(daemon.address)).HasField("plan")
    assert rss_bytes(daemon.pid) - before_bytes < _MAX_GROWTH_BYTES
    records = [json.loads(line) for line in daemon.log[line_count:]]
    assert [record for record in records if record["level"] == "error"] == []
    assert [record for record in records if "traceback" in record] == []


def rss_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


async def _plan(address: str) -> planner_pb2.CreatePlanResponse:
    job = planner_pb2.JobDocument(text=JOB_TEXT, name="job.yaml")
    async with plain_channel(address) as channel:
        stub = PlannerServiceStub(channel)
        return await stub.CreatePlan(planner_pb2.CreatePlanRequest(job=job, time_limit_s=10))


async def _make_known(address: str) -> Known:
    """Have the daemon know a plan, two jobs and an agent."""
    plan_id = (await _plan(address)).plan.plan_id
    async with plain_channel(address) as channel, sending_fleet([address], 1) as fleet:
        stub = JobServiceStub(channel)
        first, second = [
            await stub.CreateJob(job_pb2.CreateJobRequest(plan_id=plan_id)) for _ in range(2)
        ]
        await fleet.until_each_acked(10)
    return Known(
        plan_id=plan_id,
        job_id=first.job.job_id,
        stopped_job_id=second.job.job_id,
        agent_id=fleet.agents[0].agent_id,
    )


async def _ask_all(address: str, wires: Sequence[Wire]) -> Counter[tuple[str, str]]:
    """Return how often each method gave each status."""
    found: Counter[tuple[str, str]] = Counter()
    chunks = [wires[i : i + _PER_CONNECTION] for i in range(0, len(wires), _PER_CONNECTION)]
    turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(chunk: Sequence[Wire]) -> None:
        async with turns, grpc.aio.insecure_channel(address, options=OWN_CONNECTION) as channel:
            for wire in chunk:
                found[wire.method, await _status(channel, wire)] += 1

    await asyncio.gather(*map(ask, chunks))
    return found


async def _status(channel: grpc.aio.Channel, wire: Wire) -> str:
    try:
        await channel.unary_unary(wire.method)(wire.request, timeout=_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


def _check(daemon: DaemonProcess, *, seed: int, count: int) -> Counter[str]:
    known = asyncio.run(_make_known(daemon.address))
    wires = list(bad_requests(seed=seed, count=count, known=known))
    started_s = time.monotonic()
    found = asyncio.run(_ask_all(daemon.address, wires))
    statuses: Counter[str] = Counter()
    for (_, status), number in found.items():
        statuses[status] += number
    print(f"{count} requests in {time.monotonic() - started_s:.0f} s: {dict(statuses)}")
    improper = {key: number for key, number in found.items() if key[1] not in PROPER}
    assert not improper, improper
    assert statuses["OK"] + statuses["INVALID_ARGUMENT"] + statuses["NOT_FOUND"] > 0.9 * count
    return statuses


def test_bad_requests_are_answered_properly_and_do_no_harm(unharmed: DaemonProcess) -> None:
    statuses = _check(unharmed, seed=5, count=1_500)

    assert statuses["INVALID_ARGUMENT"] > 300
    assert statuses["OK"] > 100


@pytest.mark.soak
def test_ten_thousand_bad_requests_are_answered_properly_and_do_no_harm(
    unharmed: DaemonProcess,
) -> None:
    _check(unharmed, seed=7, count=10_000)


def _ask(daemon: DaemonProcess, method: str, request: bytes) -> str:
    with grpc.insecure_channel(daemon.address, options=OWN_CONNECTION) as channel:
        try:
            channel.unary_unary(method)(request, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


@given(st.sampled_from(sorted(valid_requests())), st.randoms(use_true_random=False))
def test_whatever_stands_in_a_request_is_answered_properly(
    daemon: DaemonProcess, method: str, draw: random.Random
) -> None:
    assert _ask(daemon, method, hostile(draw, valid_requests()[method])) in PROPER


@given(job=st.text(max_size=300), fleet=st.text(max_size=60), csv=st.text(max_size=200))
def test_any_text_as_a_job_a_fleet_or_a_table_is_a_bad_request(
    daemon: DaemonProcess, job: str, fleet: str, csv: str
) -> None:
    bad, good = planner_pb2.JobDocument(text=job), planner_pb2.JobDocument(text=JOB_TEXT)
    asked = {
        "Predict": planner_pb2.PredictRequest(job=bad, fleet=fleet),
        "CompareFleets": planner_pb2.CompareFleetsRequest(job=good, fleets=[fleet]),
        "PredictConfigurations": planner_pb2.PredictConfigurationsRequest(job=good, csv=csv),
    }
    for name, request in asked.items():
        method = f"/spotwright.v1.PlannerService/{name}"
        assert _ask(daemon, method, request.SerializeToString()) == "INVALID_ARGUMENT", name
