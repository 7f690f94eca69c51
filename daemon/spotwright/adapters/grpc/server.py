"""The gRPC server: services, their health, reflection, and an orderly end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from spotwright.adapters.grpc.interceptor import CallInterceptor
from spotwright.domain.errors import OutsideWorldError


class Service(NamedTuple):
    """A servicer, and how the generated code adds it to a server."""

    name: str  # full name, such as spotwright.v1.JobService
    servicer: Any
    add: Callable[[Any, grpc.aio.Server], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to listen, and with which certificates."""

    address: str  # host:port
    credentials: grpc.ServerCredentials | None  # None: plaintext
    options: Sequence[tuple[str, Any]]
    max_concurrent_calls: int = 20_000  # open streams count: an agent has one


class DaemonServer:
    """A server that tells the health of each of its services."""

    def __init__(
        self, endpoint: Endpoint, services: Sequence[Service], interceptor: CallInterceptor
    ) -> None:
        self._endpoint = endpoint
        self._server = grpc.aio.server(
            interceptors=(interceptor,),
            # Off, so that a port that is taken is an error and not silently shared.
            options=(("grpc.so_reuseport", 0), *endpoint.options),
            maximum_concurrent_rpcs=endpoint.max_concurrent_calls,
        )
        self._health = health.aio.HealthServicer()
        self._names = [service.name for service in services]
        for service in services:
            service.add(service.servicer, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        shown = (*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(shown, self._server)

    async def start(self) -> int:
        """Listen, and return the port.

        Raises:
            OutsideWorldError: the address cannot be had.
        """
        address, credentials = self._endpoint.address, self._endpoint.credentials
        try:
            if credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OutsideWorldError(
                f"cannot listen on {address}: another program has the port, or the host has no "
                "such address; name another with --listen HOST:PORT"
            ) from error
        await self._server.start()
        return int(port)

    async def set_serving(self, serving: bool, *, only: str | None = None) -> None:
        """Tell the health of all services, or of one."""
        statuses = health_pb2.HealthCheckResponse
        status = statuses.SERVING if serving else statuses.NOT_SERVING
        for name in [only] if only else ["", *self._names]:
            await self._health.set(name, status)

    async def stop(self, *, grace_s: float) -> None:
        """Take no more calls, let those that run end, and cut off what is left after a while."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)
