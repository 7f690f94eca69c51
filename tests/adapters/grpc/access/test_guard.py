"""Who gets in, over real sockets with real certificates and tokens."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_urlsafe

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from spotwright.adapters.grpc.access.method_roles import AGENT_METHODS, LEAST_ROLES, OPEN_METHODS
from spotwright.domain.access import AccessRole
from tests.adapters.grpc.access.guarded_server import (
    HEALTH,
    METHODS,
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
DENIED = grpc.StatusCode.PERMISSION_DENIED
TOKEN_ROLES = [AccessRole.VIEWER, AccessRole.PLANNER, AccessRole.ADMIN]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("tls"))


async def call_with(channel: grpc.aio.Channel, metadata: Sequence[tuple[str, str]]) -> None:
    await channel.unary_unary(LIST_JOBS)(b"", metadata=metadata, timeout=20)


def test_the_table_has_every_method_of_every_service() -> None:
    ours = {method for method in LEAST_ROLES if method.startswith("/spotwright.")}

    assert ours == set(METHODS)
    assert set(METHODS) >= AGENT_METHODS


def test_an_agent_is_the_name_in_its_certificate(folder: Path) -> None:
    async def scene(world: World) -> None:
        for name in ("gpu-7", "gpu-8"):
            async with world.channel(f"agents/{name}") as channel:
                for method in AGENT_METHODS:
                    assert await call(channel, method) == f"agent:{name}"

    play(folder, scene)


def test_an_agent_may_call_nothing_but_session_and_progress(folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("agents/gpu-7") as channel:
            found = {method: await code_of(channel, method) for method in METHODS}
        assert {method for method, code in found.items() if code is OK} == AGENT_METHODS
        assert {code for method, code in found.items() if method not in AGENT_METHODS} == {DENIED}

    play(folder, scene)


def test_a_token_makes_no_more_of_an_agent(folder: Path) -> None:
    async def scene(world: World) -> None:
        token = world.token(AccessRole.ADMIN)
        async with world.channel("agents/gpu-7") as channel:
            assert await code_of(channel, LIST_JOBS, token=token) is DENIED

    play(folder, scene)


@pytest.mark.parametrize("role", TOKEN_ROLES)
def test_each_role_may_call_what_the_table_says_and_nothing_else(
    folder: Path, role: AccessRole
) -> None:
    reads = {m for m in METHODS if m.split("/")[2].startswith(("Get", "List", "Watch", "Predict"))}
    viewer = reads | {
        "/spotwright.v1.PlannerService/CompareFleets",
        "/spotwright.v1.PlannerService/RenderTfvars",
    }
    writes = set(METHODS) - viewer - {SESSION}
    expected = viewer if role is AccessRole.VIEWER else viewer | writes

    async def scene(world: World) -> None:
        token = world.token(role, name="anna")
        async with world.channel("client") as channel:
            found = {method: await code_of(channel, method, token=token) for method in METHODS}
            assert await call(channel, LIST_JOBS, token=token) == f"{role}:anna"
        assert {method for method, code in found.items() if code is OK} == expected
        assert {code for method, code in found.items() if method not in expected} == {DENIED}

    play(folder, scene)


@pytest.mark.parametrize("method", [LIST_JOBS, SESSION, CREATE_PLAN])
def test_a_client_certificate_alone_opens_nothing(folder: Path, method: str) -> None:
    async def scene(world: World) -> None:
        async with world.channel("client") as channel:
            with pytest.raises(grpc.aio.AioRpcError, match="tokens create") as refused:
                await call(channel, method)
        assert refused.value.code() is UNAUTHENTICATED

    play(folder, scene)


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer x", "Basic YTpi", "sw_0123456789ab_" + "a" * 43,
     "Bearer sw_0123456789ab_" + "a" * 43, "Bearer " + "x" * 5000],
)  # fmt: skip
def test_what_is_not_a_known_token_is_unauthenticated(folder: Path, header: str) -> None:
    async def scene(world: World) -> None:
        async with world.channel("client") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call_with(channel, [("authorization", header)])
        assert refused.value.code() is UNAUTHENTICATED

    play(folder, scene)


def test_two_tokens_at_once_are_unauthenticated(folder: Path) -> None:
    async def scene(world: World) -> None:
        tokens = [("authorization", f"Bearer {world.token(AccessRole.ADMIN)}") for _ in range(2)]
        async with world.channel("client") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call_with(channel, tokens)
        assert refused.value.code() is UNAUTHENTICATED

    play(folder, scene)


def test_the_right_id_with_another_secret_is_unauthenticated(folder: Path) -> None:
    async def scene(world: World) -> None:
        mine, other = world.token(AccessRole.ADMIN), world.token(AccessRole.VIEWER)
        mixed = "_".join([*mine.split("_", 2)[:2], other.split("_", 2)[2]])
        async with world.channel("client") as channel:
            assert await code_of(channel, LIST_JOBS, token=mixed) is UNAUTHENTICATED
            assert await code_of(channel, LIST_JOBS, token=mine) is OK

    play(folder, scene)


def test_an_expired_token_is_unauthenticated_and_says_so(folder: Path) -> None:
    async def scene(world: World) -> None:
        token = world.token(AccessRole.ADMIN, valid_s=-1.0)
        async with world.channel("client") as channel:
            with pytest.raises(grpc.aio.AioRpcError, match="the token of ci ended on") as refused:
                await call(channel, LIST_JOBS, token=token)
        assert refused.value.code() is UNAUTHENTICATED

    play(folder, scene)


def test_a_revoked_token_opens_nothing_after_ten_seconds(folder: Path) -> None:
    async def scene(world: World) -> None:
        token = world.token(AccessRole.ADMIN)
        async with world.channel("client") as channel:
            assert await code_of(channel, LIST_JOBS, token=token) is OK
            world.tokens.revoke_token(token.split("_")[1], time=datetime.now(UTC))
            world.clock.now_s += 10
            with pytest.raises(grpc.aio.AioRpcError, match="was revoked") as refused:
                await call(channel, LIST_JOBS, token=token)
        assert refused.value.code() is UNAUTHENTICATED

    play(folder, scene)


def test_a_hundred_calls_at_once_ask_the_store_once(folder: Path) -> None:
    async def scene(world: World) -> None:
        token = world.token(AccessRole.VIEWER)
        async with world.channel("client") as channel:
            found = await asyncio.gather(
                *(code_of(channel, LIST_JOBS, token=token) for _ in range(100))
            )
        assert set(found) == {OK}
        assert world.tokens.query_count == 1

    play(folder, scene)


def test_a_store_that_is_away_is_unavailable_and_asked_again_when_it_is_back(folder: Path) -> None:
    async def scene(world: World) -> None:
        token = world.token(AccessRole.VIEWER)
        async with world.channel("client") as channel:
            world.tokens.is_away = True
            assert await code_of(channel, LIST_JOBS, token=token) is grpc.StatusCode.UNAVAILABLE
            world.tokens.is_away = False
            assert await code_of(channel, LIST_JOBS, token=token) is OK

    play(folder, scene)


@pytest.mark.parametrize("file", ["client", "agents/gpu-7"])
def test_health_is_open_to_every_certificate(folder: Path, file: str) -> None:
    async def scene(world: World) -> None:
        async with world.channel(file) as channel:
            assert await code_of(channel, HEALTH) is OK

    assert HEALTH in OPEN_METHODS
    play(folder, scene)


@pytest.mark.parametrize(
    ("file", "role", "expected"),
    [
        ("client", None, UNAUTHENTICATED),
        ("client", AccessRole.VIEWER, DENIED),
        ("client", AccessRole.PLANNER, DENIED),
        ("agents/gpu-7", None, DENIED),
    ],
)
def test_who_is_no_admin_does_not_see_the_shape_of_the_interface(
    folder: Path, file: str, role: AccessRole | None, expected: grpc.StatusCode
) -> None:
    async def scene(world: World) -> None:
        async with world.channel(file) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await services_seen(channel, world.token(role) if role else None)
        assert refused.value.code() is expected

    play(folder, scene)


def test_an_admin_sees_the_shape_of_the_interface(folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("client") as channel:
            names = await services_seen(channel, world.token(AccessRole.ADMIN))
        assert "spotwright.v1.PlannerService" in names

    play(folder, scene)


async def services_seen(channel: grpc.aio.Channel, token: str | None) -> list[str]:
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    answers = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
        iter([asked]), metadata=[("authorization", f"Bearer {token}")] if token else [], timeout=20
    )
    [listed] = [answer async for answer in answers]
    return [service.name for service in listed.list_services_response.service]


def test_a_method_that_nobody_serves_is_unimplemented(folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("client") as channel:
            code = await code_of(channel, "/spotwright.v1.JobService/DropTables")
        assert code is grpc.StatusCode.UNIMPLEMENTED

    play(folder, scene)


def test_no_secret_is_ever_logged_or_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    secrets: list[str] = []

    async def scene(world: World) -> None:
        good, expired = world.token(AccessRole.VIEWER), world.token(AccessRole.ADMIN, valid_s=-1)
        revoked = world.token(AccessRole.ADMIN)
        world.tokens.revoke_token(revoked.split("_")[1], time=datetime.now(UTC))
        wrong = f"{good[:16]}{token_urlsafe(32)}"
        unknown, mangled = f"sw_0123456789ab_{token_urlsafe(32)}", token_urlsafe(40)
        async with world.channel("client") as channel:
            for token in (good, expired, revoked, wrong, unknown, mangled):
                secrets.append(token.split("_", 2)[-1])
                for method in (LIST_JOBS, CREATE_PLAN, SESSION):
                    try:
                        await call(channel, method, token=token)
                    except grpc.aio.AioRpcError as error:
                        told.append(f"{error.details()} {error.trailing_metadata()}")

    play(folder, scene)

    logged = [f"{record.__dict__} {record.getMessage()}" for record in caplog.records]
    assert any("a caller is not known" in line for line in logged)
    assert len(told) == 17  # all but the viewer's list
    for secret in secrets:
        assert not any(secret in line for line in [*logged, *told])


def test_each_refusal_is_counted_under_its_status(folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("client") as channel:
            await code_of(channel, LIST_JOBS)
        async with world.channel("agents/gpu-7") as channel:
            await code_of(channel, LIST_JOBS)

    world = play(folder, scene)

    # Counted once the answer is on its way, so the second caller may be counted first.
    assert sorted(world.observed) == [
        (LIST_JOBS, "PERMISSION_DENIED"),
        (LIST_JOBS, "UNAUTHENTICATED"),
    ]
