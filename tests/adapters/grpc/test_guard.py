"""Who gets in, over real sockets with real certificates and tokens."""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_urlsafe
from typing import cast

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from spotwright.adapters.grpc.method_roles import AGENT_METHODS, LEAST_ROLES, OPEN_METHODS
from spotwright.adapters.grpc.rate_limit import DEFAULT_RATES, CallKind, Rate
from spotwright.domain.access import AccessRole
from tests.adapters.grpc.guarded_server import (
    HEALTH,
    METHODS,
    PLENTY,
    SESSION,
    World,
    call,
    make_folder,
    served,
)

LIST_JOBS = "/spotwright.v1.JobService/ListJobs"
CREATE_PLAN = "/spotwright.v1.PlannerService/CreatePlan"
OK = grpc.StatusCode.OK
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
TOKEN_ROLES = [AccessRole.VIEWER, AccessRole.PLANNER, AccessRole.ADMIN]
Scene = Callable[[World], Awaitable[None]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("tls"))


def play(
    folder: Path,
    scene: Scene,
    *,
    rates: Mapping[CallKind, Rate] = PLENTY,
    plaintext: bool = False,
) -> World:
    """Run a scene against a server that listens."""
    world = World(folder)

    async def run() -> None:
        async with served(world, rates=rates, plaintext=plaintext):
            await scene(world)

    asyncio.run(run())
    return world


async def code_of(channel: grpc.aio.Channel, method: str, *, token: str | None = None) -> object:
    try:
        await call(channel, method, token=token)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return OK


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


@pytest.mark.parametrize(
    "uris",
    [
        [],
        ["spiffe://spotwright/server/daemon"],
        ["spiffe://spotwright/admin/anna"],
        ["spiffe://spotwright/agent"],
        ["spiffe://elsewhere/agent/gpu-7"],
        ["https://spotwright/agent/gpu-7"],
        ["spiffe://spotwright/agent/gpu-7", "spiffe://spotwright/agent/gpu-8"],
    ],
)
def test_a_certificate_of_ours_that_names_neither_agent_nor_client_is_unauthenticated(
    folder: Path, tmp_path: Path, uris: list[str]
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tls")
    write_client(copy, uris)

    async def scene(world: World) -> None:
        async with world.channel("odd") as channel:
            for method in (SESSION, LIST_JOBS, HEALTH):
                found = await code_of(channel, method, token=world.token(AccessRole.ADMIN))
                assert found is UNAUTHENTICATED

    play(copy, scene)


def write_client(folder: Path, uris: list[str]) -> None:
    """Sign a certificate of an agent's common name and DNS name, with URIs that ours never have."""
    ca = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    ca_key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    names = [x509.DNSName("gpu-7"), *map(x509.UniformResourceIdentifier, uris)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpu-7")]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(cast(ec.EllipticCurvePrivateKey, ca_key), hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "odd.crt").write_bytes(certificate.public_bytes(pem))
    (folder / "odd.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def test_a_method_that_nobody_serves_is_unimplemented(folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("client") as channel:
            code = await code_of(channel, "/spotwright.v1.JobService/DropTables")
        assert code is grpc.StatusCode.UNIMPLEMENTED

    play(folder, scene)


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

    assert world.observed == [(LIST_JOBS, "UNAUTHENTICATED"), (LIST_JOBS, "PERMISSION_DENIED")]
