"""Connections: which handshakes succeed, how certificates change under them, what they may carry.

A client that is refused at the handshake sees only UNAVAILABLE; `certs show` tells it more.
"""

import asyncio
import logging
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from spotwright.adapters.grpc.access.credentials import ServerLimits, server_credentials
from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.certificate_files import ServerFiles, list_certificates
from spotwright.adapters.tls.issue_files import init_folder, issue, renew
from spotwright.domain.errors import BadInputError
from tests.adapters.grpc.access.guarded_server import (
    HEALTH,
    SESSION,
    Scene,
    World,
    call,
    make_folder,
    play,
)

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.fixture(scope="module")
def made_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def folder(made_folder: Path, tmp_path: Path) -> Path:
    """Return a folder of its own for a test that changes it."""
    return Path(shutil.copytree(made_folder, tmp_path / "tls"))


def play_and_serve_on(
    folder: Path,
    scene: Scene,
    *,
    limits: ServerLimits = ServerLimits(),  # noqa: B008
) -> World:
    """Run a scene against a server that must still serve afterwards."""

    async def and_then(world: World) -> None:
        await scene(world)
        async with world.channel("agents/gpu-8") as channel:
            await call(channel, HEALTH)

    return play(folder, and_then, limits=limits)


async def refused_by_handshake(channel: grpc.aio.Channel) -> bool:
    async with channel:
        try:
            await call(channel, HEALTH)
        except grpc.aio.AioRpcError as error:
            return error.code() is UNAVAILABLE
    return False


def serial_of(folder: Path, file: str) -> str:
    return next(facts.serial for facts in list_certificates(folder) if facts.file == file)


async def serial_shown(world: World) -> str:
    """Return the serial number that the server shows to a new connection."""

    def connect() -> str:
        with raw_connection(world) as secure:
            shown = secure.getpeercert()
        assert shown is not None
        return str(shown["serialNumber"]).lower().lstrip("0")

    return await asyncio.to_thread(connect)


@contextmanager
def raw_connection(world: World) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cafile=str(world.folder / "ca.crt"))
    context.load_cert_chain(world.folder / "client.crt", world.folder / "client.key")
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", world.port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        yield secure


def test_a_client_without_a_certificate_is_refused(made_folder: Path) -> None:
    async def scene(world: World) -> None:
        assert await refused_by_handshake(world.channel(None))

    assert play_and_serve_on(made_folder, scene).observed == [(HEALTH, "OK")]


def test_an_expired_certificate_is_refused(folder: Path) -> None:
    request = CertificateRequest(kind=CertificateKind.AGENT, name="old", days=1)
    issue(folder, [request], now=datetime.now(UTC) - timedelta(days=1, seconds=1))

    async def scene(world: World) -> None:
        assert await refused_by_handshake(world.channel("agents/old"))

    play_and_serve_on(folder, scene)


def test_a_certificate_of_another_authority_is_refused(folder: Path) -> None:
    make_folder(folder / "other")

    async def scene(world: World) -> None:
        channel = world.channel("other/agents/gpu-7", authority=folder)
        assert await refused_by_handshake(channel)

    play_and_serve_on(folder, scene)


def test_a_server_certificate_is_refused_as_a_client(made_folder: Path) -> None:
    async def scene(world: World) -> None:
        assert await refused_by_handshake(world.channel("server"))

    play_and_serve_on(made_folder, scene)


def test_a_client_refuses_a_server_of_another_authority(folder: Path) -> None:
    make_folder(folder / "other")

    async def scene(world: World) -> None:
        channel = world.channel("agents/gpu-7", authority=folder / "other")
        assert await refused_by_handshake(channel)

    play_and_serve_on(folder, scene)


def test_plaintext_to_a_tls_port_fails(made_folder: Path) -> None:
    async def scene(world: World) -> None:
        assert await refused_by_handshake(grpc.aio.insecure_channel(f"127.0.0.1:{world.port}"))

    play_and_serve_on(made_folder, scene)


@pytest.mark.parametrize(
    "garbage",
    [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", bytes(range(256)) * 50],
)
def test_garbage_instead_of_a_handshake_leaves_the_server_unharmed(
    made_folder: Path, garbage: bytes
) -> None:
    async def scene(world: World) -> None:
        for _ in range(20):
            _, writer = await asyncio.open_connection("127.0.0.1", world.port)
            writer.write(garbage)
            writer.close()
            await writer.wait_closed()

    world = play_and_serve_on(made_folder, scene)

    assert world.observed == [(HEALTH, "OK")]


def test_a_new_certificate_is_shown_to_new_connections_while_a_stream_goes_on(folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("agents/gpu-7") as channel:
            session = channel.stream_stream(SESSION)(timeout=60)
            await session.write(b"")
            await session.read()
            before = await serial_shown(world)
            renew(folder, names=["server"], within_days=None, now=datetime.now(UTC))
            after = await serial_shown(world)
            await session.write(b"")
            assert await session.read() == b""
            await session.done_writing()
            assert await session.code() is grpc.StatusCode.OK
        assert before == old != after == serial_of(folder, "server")

    old = serial_of(folder, "server")
    play_and_serve_on(folder, scene)


def test_a_new_authority_shuts_out_what_the_old_one_made(folder: Path) -> None:
    async def scene(world: World) -> None:
        old = world.channel("agents/gpu-7")
        init_folder(folder, hosts=(), now=datetime.now(UTC), replace_ca=True)
        assert await refused_by_handshake(old)
        renew(folder, names=(), within_days=30, now=datetime.now(UTC))

    play_and_serve_on(folder, scene)


def test_an_old_authority_is_trusted_for_as_long_as_it_stands_after_the_new_one(
    folder: Path,
) -> None:
    old = (folder / "ca.crt").read_bytes()

    async def scene(world: World) -> None:
        channel = world.channel("agents/gpu-7")
        init_folder(folder, hosts=(), now=datetime.now(UTC), replace_ca=True)
        new = (folder / "ca.crt").read_bytes()
        (folder / "ca.crt").write_bytes(new + old)
        async with world.channel("agents/gpu-7") as both_trusted:
            assert await call(both_trusted, SESSION) == "agent:gpu-7"
        renew(folder, names=["gpu-8"], within_days=None, now=datetime.now(UTC))
        (folder / "ca.crt").write_bytes(new)
        assert await refused_by_handshake(channel)

    play_and_serve_on(folder, scene)


def test_a_broken_new_file_keeps_the_old_certificate_and_is_logged_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = (folder / "server.crt").read_bytes()

    async def scene(world: World) -> None:
        (folder / "server.crt").write_text("x")
        for _ in range(3):
            assert await serial_shown(world) == serial
        (folder / "server.crt").write_bytes(good)

    serial = serial_of(folder, "server")
    with caplog.at_level(logging.ERROR):
        play_and_serve_on(folder, scene)
    problems = [getattr(record, "problem", "") for record in caplog.records]
    assert len(problems) == 1
    assert "server.crt is not a usable certificate" in problems[0]


def test_a_folder_that_cannot_be_used_is_an_error_before_anything_listens(folder: Path) -> None:
    (folder / "server.key").unlink()

    with pytest.raises(BadInputError, match=r"server\.key is missing"):
        server_credentials(ServerFiles(folder, clock=lambda: datetime.now(UTC)))


def test_a_message_beyond_the_limit_is_resource_exhausted(made_folder: Path) -> None:
    limit = ServerLimits().max_message_bytes

    async def scene(world: World) -> None:
        async with world.channel("agents/gpu-7") as channel:
            for size, code in ((limit, "NOT_FOUND"), (limit + 1, "RESOURCE_EXHAUSTED")):
                request = health_pb2.HealthCheckRequest(service="x" * (size - 4))
                assert request.ByteSize() == size
                check = health_pb2_grpc.HealthStub(channel).Check(request, timeout=20)
                assert (await check.code()).name == code

    play_and_serve_on(made_folder, scene)


def test_metadata_beyond_the_limit_does_not_reach_a_service(made_folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("agents/gpu-7") as channel:
            answered = channel.unary_unary(HEALTH)(
                b"", metadata=[("padding", "x" * 20_000)], timeout=20
            )
            assert await answered.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    assert play_and_serve_on(made_folder, scene).observed == [(HEALTH, "OK")]


def test_no_connection_outlives_its_age_and_grace(made_folder: Path) -> None:
    limits = ServerLimits(connection_age_s=0.5, connection_grace_s=0.5)

    async def scene(world: World) -> None:
        async with world.channel("agents/gpu-7") as channel:
            session = channel.stream_stream(SESSION)(timeout=20)
            assert await session.code() is UNAVAILABLE
            assert await call(channel, SESSION) == "agent:gpu-7"  # comes back by itself

    play_and_serve_on(made_folder, scene, limits=limits)


def test_streams_beyond_the_limit_wait_for_their_turn(made_folder: Path) -> None:
    async def scene(world: World) -> None:
        async with world.channel("agents/gpu-7") as channel:
            first = channel.stream_stream(SESSION)(timeout=20)
            await first.write(b"")
            assert await first.read() == b""
            second = asyncio.create_task(call(channel, SESSION))
            async with world.channel("agents/gpu-8") as other:
                await call(other, SESSION)  # another connection has streams of its own
            assert not second.done()
            await first.done_writing()
            assert await second == "agent:gpu-7"

    play_and_serve_on(made_folder, scene, limits=ServerLimits(max_streams_per_connection=1))


def test_a_client_that_pings_without_end_is_sent_away(made_folder: Path) -> None:
    async def scene(world: World) -> None:
        # A connection that is cut may take the reason with it: then another one is tried.
        said = [await asyncio.to_thread(last_words, world) for _ in range(5)]
        assert any(b"too_many_pings" in words for words in said)

    def last_words(world: World) -> bytes:
        """Send HTTP/2 pings until the server says goodbye; return what it said."""
        with raw_connection(world) as secure:
            secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kind=4))
            said = b""
            with suppress(OSError):
                while frame_start(kind=7) not in said:
                    secure.sendall(frame(kind=6, payload=bytes(8)))
                    said += secure.recv(65536)
            with suppress(OSError):
                while received := secure.recv(65536):
                    said += received
            return said

    def frame(*, kind: int, payload: bytes = b"") -> bytes:
        return len(payload).to_bytes(3) + bytes([kind, 0]) + bytes(4) + payload

    def frame_start(*, kind: int) -> bytes:
        return bytes([kind, 0]) + bytes(4)  # type, flags and stream 0, after the length

    play_and_serve_on(made_folder, scene)
