"""Callers that call too often, over real sockets."""

from pathlib import Path
from secrets import token_urlsafe

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from spotwright.adapters.grpc.access.rate_limit import DEFAULT_RATES
from spotwright.domain.access import AccessRole
from tests.adapters.grpc.access.guarded_server import (
    SESSION,
    World,
    call,
    code_of,
    make_folder,
    play,
)

LIST_JOBS = "/spotwright.v1.JobService/ListJobs"
CREATE_PLAN = "/spotwright.v1.PlannerService/CreatePlan"
OK = grpc.StatusCode.OK
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("tls"))


def test_too_many_plans_are_told_when_to_come_back(folder: Path) -> None:
    async def scene(world: World) -> None:
        token = world.token(AccessRole.PLANNER)
        async with world.channel("client") as channel:
            found = [await code_of(channel, CREATE_PLAN, token=token) for _ in range(10)]
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(channel, CREATE_PLAN, token=token)
            assert await code_of(channel, LIST_JOBS, token=token) is OK
        assert set(found) == {OK}
        assert refused.value.code() is EXHAUSTED
        assert retry_s(refused.value) == 0.5

    play(folder, scene, rates=DEFAULT_RATES)


def retry_s(error: grpc.aio.AioRpcError) -> float | None:
    for detail in rpc_status.from_call(error).details:
        info = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            return float(info.retry_delay.ToTimedelta().total_seconds())
    return None


def test_one_agent_that_reconnects_without_end_does_not_hinder_another(folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("agents/gpu-7") as hasty, world.channel("agents/gpu-8") as calm:
            found = [await code_of(hasty, SESSION) for _ in range(11)]
            assert found == [OK] * 10 + [EXHAUSTED]
            assert await code_of(calm, SESSION) is OK

    play(folder, scene, rates=DEFAULT_RATES)


def test_a_session_is_counted_once_however_much_is_sent(folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("agents/gpu-7") as channel:
            session = channel.stream_stream(SESSION)(timeout=20)
            for _ in range(300):
                await session.write(b"")
                assert await session.read() == b""
            await session.done_writing()
            assert await session.code() is OK

    play(folder, scene, rates=DEFAULT_RATES)


def test_guessing_tokens_is_slowed_down_and_known_ones_still_work(folder: Path) -> None:
    async def scene(world: World) -> None:
        token = world.token(AccessRole.VIEWER)
        async with world.channel("client") as channel:
            assert await code_of(channel, LIST_JOBS, token=token) is OK
            guesses = [f"sw_{number:012x}_{token_urlsafe(32)}" for number in range(40)]
            found = [await code_of(channel, LIST_JOBS, token=guess) for guess in guesses]
            assert found == [UNAUTHENTICATED] * 20 + [EXHAUSTED] * 20
            assert world.tokens.query_count == 21
            assert await code_of(channel, LIST_JOBS, token=token) is OK

    play(folder, scene, rates=DEFAULT_RATES)


def test_on_plain_loopback_the_caller_is_admin_and_limited_by_connection(folder: Path) -> None:
    async def scene(world: World) -> None:
        address, apart = f"127.0.0.1:{world.port}", (("grpc.use_local_subchannel_pool", 1),)
        async with (
            grpc.aio.insecure_channel(address, options=apart) as one,
            grpc.aio.insecure_channel(address, options=apart) as other,
        ):
            assert await call(one, SESSION) == "admin:loopback"
            found = [await code_of(one, SESSION) for _ in range(10)]
            assert found == [OK] * 9 + [EXHAUSTED]
            assert await code_of(other, SESSION) is OK

    play(folder, scene, rates=DEFAULT_RATES, plaintext=True)
