"""What a daemon says of itself: health by service, memory, metrics."""

import asyncio
import re
import urllib.request

from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e.agent_client import PATIENCE_S, plain_channel

# Lines of gRPC's C core, which writes to stderr by itself: ports taken, handshakes that failed.
OF_GRPC_ITSELF = re.compile(r"[IWE]\d{4} ")
TELEMETRY, PLANNER = "spotwright.v1.TelemetryService", "spotwright.v1.PlannerService"


async def health_of(address: str, service: str) -> str:
    """Return SERVING or NOT_SERVING."""
    async with plain_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=20)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


async def until_health(address: str, service: str, expected: str) -> None:
    """Wait until a service is SERVING or NOT_SERVING."""
    request = health_pb2.HealthCheckRequest(service=service)
    async with asyncio.timeout(PATIENCE_S), plain_channel(address) as channel:
        async for answer in health_pb2_grpc.HealthStub(channel).Watch(request):
            if health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status) == expected:
                return


def metric(metrics_address: str, line_start: str) -> float:
    """Return the figure of the metrics line that starts so."""
    url = f"http://{metrics_address}/metrics"
    with urllib.request.urlopen(url, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(line_start))
