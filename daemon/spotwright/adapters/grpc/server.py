"""The gRPC server: services, their health, reflection, and an orderly end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from spotwright.adapters.grpc.interceptor import CallInterceptor
from spotwright.domain.errors import OutsideWorldError
from spotwright.v1 import catalog_pb2_grpc, job_pb2_grpc, planner_pb2_grpc, telemetry_pb2_grpc

TELEMETRY = "spotwright.v1.TelemetryService"
_ADD = {
    "spotwright.v1.CatalogService": catalog_pb2_grpc.add_CatalogServiceServicer_to_server,
    "spotwright.v1.PlannerService": planner_pb2_grpc.add_PlannerServiceServicer_to_server,
    "spotwright.v1.JobService": job_pb2_grpc.add_JobServiceServicer_to_server,
    TELEMETRY: telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server,
}


class Servicers(NamedTuple):
    """What answers the calls of each service."""

    catalog: catalog_pb2_grpc.CatalogServiceServicer
    planner: planner_pb2_grpc.PlannerServiceServicer
    jobs: job_pb2_grpc.JobServiceServicer
    telemetry: telemetry_pb2_grpc.TelemetryServiceServicer


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
        self, endpoint: Endpoint, servicers: Servicers, interceptor: CallInterceptor
    ) -> None:
        self._endpoint = endpoint
        self._server = grpc.aio.server(
            interceptors=(interceptor,),
            # Off, so that a port that is taken is an error and not silently shared.
            options=(("grpc.so_reuseport", 0), *endpoint.options),
            maximum_concurrent_rpcs=endpoint.max_concurrent_calls,
        )
        self._health = health.aio.HealthServicer()
        for add, servicer in zip(_ADD.values(), servicers, strict=True):
            add(servicer, self._server)  # type: ignore[no-untyped-call]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        shown = (*_ADD, health.SERVICE_NAME, reflection.SERVICE_NAME)
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
        for name in [only] if only else ["", *_ADD]:
            await self._health.set(name, status)

    async def stop(self, *, grace_s: float) -> None:
        """Take no more calls, let those that run end, and cut off what is left after a while."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)
