"""Two real daemons on one PostgreSQL, which goes away and comes back."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from spotwright.v1 import planner_pb2
from spotwright.v1.planner_pb2_grpc import PlannerServiceStub
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.agent_client import assert_all_stored_once, plain_channel, sending_fleet
from tests.e2e.bad_requests import JOB_TEXT
from tests.e2e.daemon_health import TELEMETRY, until_health
from tests.postgres_server import PostgresServer, postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]  # fixtures, used by their names

AGENT_COUNT = 10


@pytest.fixture
def replicas(
    postgres_server: PostgresServer, tmp_path: Path
) -> Iterator[tuple[DaemonProcess, DaemonProcess]]:
    url = postgres_server.url(tmp_path.name)
    with ExitStack() as ends:
        first, second = (
            ends.enter_context(running_daemon(tmp_path / name, "--store", url, "--replica", name))
            for name in ("a", "b")
        )
        yield first, second


def test_agents_that_move_between_replicas_lose_and_double_nothing(
    replicas: tuple[DaemonProcess, DaemonProcess],
) -> None:
    first, second = replicas

    async def scene() -> None:
        async with sending_fleet([first.address, second.address], AGENT_COUNT) as fleet:
            for daemon in (second, first, second, first):
                await fleet.until_each_acked(3)
                fleet.move(daemon.address)
            await fleet.until_each_acked(3)
        for daemon in replicas:
            await assert_all_stored_once(daemon.address, fleet.agents)

    asyncio.run(scene())


def test_agents_of_a_replica_that_is_killed_go_on_at_the_other(
    replicas: tuple[DaemonProcess, DaemonProcess],
) -> None:
    first, second = replicas

    async def scene() -> None:
        async with sending_fleet([first.address], AGENT_COUNT) as fleet:
            await fleet.until_each_acked(5)
            await asyncio.to_thread(first.kill)
            fleet.move(second.address)
            await fleet.until_each_acked(5)
        await assert_all_stored_once(second.address, fleet.agents)

    asyncio.run(scene())


def test_a_plan_made_at_one_replica_is_read_at_the_other(
    replicas: tuple[DaemonProcess, DaemonProcess],
) -> None:
    first, second = replicas

    async def scene() -> None:
        job = planner_pb2.JobDocument(text=JOB_TEXT, name="job.yaml")
        request = planner_pb2.CreatePlanRequest(request_id="once", job=job, time_limit_s=10)
        async with plain_channel(first.address) as a, plain_channel(second.address) as b:
            here, there = PlannerServiceStub(a), PlannerServiceStub(b)
            made = (await here.CreatePlan(request)).plan
            read = await there.GetPlan(planner_pb2.GetPlanRequest(plan_id=made.plan_id))
            again = await there.CreatePlan(request)
        assert read.plan == made
        assert again.plan == made

    asyncio.run(scene())


@pytest.mark.parametrize("crash", [False, True], ids=["in good order", "by a crash"])
def test_a_database_that_restarts_under_load_loses_and_doubles_nothing(
    replicas: tuple[DaemonProcess, DaemonProcess], postgres_server: PostgresServer, crash: bool
) -> None:
    async def scene() -> None:
        addresses = [daemon.address for daemon in replicas]
        async with sending_fleet(addresses, AGENT_COUNT) as fleet:
            await fleet.until_each_acked(5)
            await asyncio.to_thread(postgres_server.kill if crash else postgres_server.stop)
            try:
                for address in addresses:
                    await until_health(address, TELEMETRY, "NOT_SERVING")
            finally:
                await asyncio.to_thread(postgres_server.start)
            for address in addresses:
                await until_health(address, TELEMETRY, "SERVING")
            await fleet.until_each_acked(5)
        await assert_all_stored_once(addresses[0], fleet.agents)

    asyncio.run(scene())
    for daemon in replicas:
        assert daemon.is_running()
        assert [line for line in daemon.log if '"level": "error"' in line] == []
