"""A small daemon over real sockets: every service of ours, guarded, with nothing behind it.

A caller learns who it was taken for from the trailing metadata `principal` of each answer.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from spotwright.adapters.grpc.access.callers import current_principal
from spotwright.adapters.grpc.access.credentials import (
    ServerLimits,
    server_credentials,
    server_options,
)
from spotwright.adapters.grpc.access.guard import CallGuard, LoopbackGuard
from spotwright.adapters.grpc.access.rate_limit import DEFAULT_RATES, CallKind, Rate, RateLimiter
from spotwright.adapters.grpc.interceptor import CallInterceptor
from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.certificate_files import ServerFiles
from spotwright.adapters.tls.issue_files import init_folder, issue
from spotwright.domain.access import AccessRole
from spotwright.usecases.tokens import create_token
from spotwright.v1 import catalog_pb2_grpc, job_pb2_grpc, planner_pb2_grpc, telemetry_pb2_grpc
from tests.fakes.memory_token_store import MemoryTokenStore

_STUBS = {
    "spotwright/v1/catalog.proto": catalog_pb2_grpc,
    "spotwright/v1/job.proto": job_pb2_grpc,
    "spotwright/v1/planner.proto": planner_pb2_grpc,
    "spotwright/v1/telemetry.proto": telemetry_pb2_grpc,
}
SERVICES: list[ServiceDescriptor] = [
    service
    for file in _STUBS
    for service in descriptor_pool.Default().FindFileByName(file).services_by_name.values()
]
METHODS: dict[str, MethodDescriptor] = {
    f"/{service.full_name}/{method.name}": method
    for service in SERVICES
    for method in service.methods
}
HEALTH = "/grpc.health.v1.Health/Check"
_LET_IN = ("let-in", "yes")
SESSION = "/spotwright.v1.TelemetryService/Session"


Scene = Callable[["World"], Awaitable[None]]


class Clock:
    """Time that passes when told, for tokens and limits."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class World:
    """What a test sets up before the server starts, and may change while it runs."""

    folder: Path
    tokens: MemoryTokenStore = field(default_factory=MemoryTokenStore)
    clock: Clock = field(default_factory=Clock)
    port: int = 0
    observed: list[tuple[str, str]] = field(default_factory=list)  # method, status

    def token(self, role: AccessRole, *, valid_s: float | None = None, name: str = "ci") -> str:
        made = create_token(
            self.tokens, name=name, role=role, valid_s=valid_s, now=datetime.now(UTC)
        )
        return made.text

    def channel(self, file: str | None, *, authority: Path | None = None) -> grpc.aio.Channel:
        """Return a channel that shows a certificate of the folder, or none."""
        credentials = grpc.ssl_channel_credentials(
            ((authority or self.folder) / "ca.crt").read_bytes(),
            *([_bytes(self.folder, f"{file}.{end}") for end in ("key", "crt")] if file else ()),
        )
        return grpc.aio.secure_channel(f"127.0.0.1:{self.port}", credentials, options=_OWN_SOCKET)


# Channels to one address share a connection unless told otherwise, and with it the certificate.
_OWN_SOCKET = (("grpc.use_local_subchannel_pool", 1),)
PLENTY: Mapping[CallKind, Rate] = dict.fromkeys(CallKind, Rate(1e6, 1_000_000))


def make_folder(folder: Path) -> Path:
    """Make certificates, with those of the agents gpu-7 and gpu-8."""
    now = datetime.now(UTC)
    init_folder(folder, hosts=(), now=now)
    agents = [
        CertificateRequest(kind=CertificateKind.AGENT, name=name, days=1)
        for name in ("gpu-7", "gpu-8")
    ]
    issue(folder, agents, now=now)
    return folder


@asynccontextmanager
async def served(
    world: World,
    *,
    rates: Mapping[CallKind, Rate] = DEFAULT_RATES,
    limits: ServerLimits = ServerLimits(),  # noqa: B008
    plaintext: bool = False,
) -> AsyncIterator[World]:
    limiter = RateLimiter(rates, clock_s=world.clock)
    guard: CallGuard | LoopbackGuard = LoopbackGuard(limiter)
    if not plaintext:
        guard = CallGuard(
            world.tokens, limiter=limiter, clock=lambda: datetime.now(UTC), clock_s=world.clock
        )

    def observe(method: str, status: str, _seconds: float) -> None:
        world.observed.append((method, status))

    server = grpc.aio.server(
        interceptors=(CallInterceptor(guard, observe),), options=server_options(limits)
    )
    await _add_services(server)
    if plaintext:
        world.port = server.add_insecure_port("127.0.0.1:0")
    else:
        files = ServerFiles(world.folder, clock=lambda: datetime.now(UTC))
        world.port = server.add_secure_port("127.0.0.1:0", server_credentials(files))
    await server.start()
    try:
        yield world
    finally:
        await server.stop(0)


async def call(
    channel: grpc.aio.Channel, method: str, *, token: str | None = None, timeout_s: float = 20
) -> str:
    """Call a method with an empty request; return who the caller was taken for."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    answered = _asked(channel, method, metadata=metadata, timeout=timeout_s)
    if isinstance(answered, grpc.aio.UnaryUnaryCall):
        await answered
    elif isinstance(answered, grpc.aio.StreamStreamCall):
        await _converse(answered)
    else:
        async for _ in answered:
            pass
    return str(dict(await answered.trailing_metadata() or ()).get("principal", ""))


def play(
    folder: Path,
    scene: Scene,
    *,
    rates: Mapping[CallKind, Rate] = PLENTY,
    limits: ServerLimits = ServerLimits(),  # noqa: B008
    plaintext: bool = False,
) -> World:
    """Run a scene against a server that listens."""
    world = World(folder)

    async def run() -> None:
        async with served(world, rates=rates, limits=limits, plaintext=plaintext):
            await scene(world)

    asyncio.run(run())
    return world


async def code_of(channel: grpc.aio.Channel, method: str, *, token: str | None = None) -> object:
    try:
        await call(channel, method, token=token)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def _asked(channel: grpc.aio.Channel, method: str, **how: Any) -> Any:
    """Call a method with one request of no bytes, which every message can be read from."""
    descriptor = METHODS.get(method)
    if descriptor is not None and descriptor.client_streaming:
        return channel.stream_stream(method)(**how)
    if descriptor is not None and descriptor.server_streaming:
        return channel.unary_stream(method)(b"", **how)
    return channel.unary_unary(method)(b"", **how)


async def _converse(session: Any) -> None:
    """Say one thing once let in: what is written to a call that was refused hides its status."""
    if _LET_IN in tuple(await session.initial_metadata() or ()):
        await session.write(b"")
        await session.done_writing()
    while await session.read() is not grpc.aio.EOF:
        pass


async def _add_services(server: grpc.aio.Server) -> None:
    for service in SERVICES:
        stubs = _STUBS[service.file.name]
        base = getattr(stubs, f"{service.name}Servicer")
        add = getattr(stubs, f"add_{service.name}Servicer_to_server")
        add(_trivial(base, service.methods)(), server)
    checks = health.aio.HealthServicer()
    await checks.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    names = [service.full_name for service in SERVICES]
    reflection.enable_server_reflection([*names, reflection.SERVICE_NAME], server)


def _trivial(base: type, methods: Sequence[MethodDescriptor]) -> type:
    """Return a servicer that answers with empty messages, in a session each request with one."""
    return type(base.__name__, (base,), {method.name: _behavior(method) for method in methods})


def _behavior(method: MethodDescriptor) -> Callable[..., Any]:
    response = message_factory.GetMessageClass(method.output_type)

    def tell(context: grpc.aio.ServicerContext) -> None:
        principal = current_principal.get()
        context.set_trailing_metadata((("principal", f"{principal.role}:{principal.name}"),))

    async def answer(_self: object, _request: Any, context: grpc.aio.ServicerContext) -> Any:
        tell(context)
        return response()

    async def watch(
        _self: object, _request: Any, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Any]:
        tell(context)
        yield response()

    async def converse(
        _self: object, requests: Any, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Any]:
        tell(context)
        await context.send_initial_metadata((_LET_IN,))
        async for _ in requests:
            yield response()

    if method.client_streaming:
        return converse
    return watch if method.server_streaming else answer


def _bytes(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes()
