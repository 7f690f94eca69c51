"""Counting what a daemon has, the way a client would."""

import time
from collections.abc import Iterable

import grpc

from benchmarks.daemon.served import ServedDaemon
from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub

_PAUSE_S = 0.5  # a caller may ask 50 times a second


def listed_row_count(daemon: ServedDaemon, agent_ids: Iterable[str]) -> int:
    """Return how many GPU samples ListSamples gives for agents."""
    files = [
        (daemon.tls_dir / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt")
    ]
    credentials = grpc.ssl_channel_credentials(*files)
    with grpc.secure_channel(daemon.address, credentials) as channel:
        stub = TelemetryServiceStub(channel)
        return sum(_rows_of(stub, agent_id, daemon.token) for agent_id in agent_ids)


def _rows_of(stub: TelemetryServiceStub, agent_id: str, token: str) -> int:
    count, request = 0, v1.ListSamplesRequest(agent_id=agent_id, page_size=10_000)
    while True:
        page = _asked(stub, request, token)
        count += sum(len(sample.gpus) for sample in page.samples)
        if not page.next_page_token:
            return count
        request.page_token = page.next_page_token


def _asked(
    stub: TelemetryServiceStub, request: v1.ListSamplesRequest, token: str
) -> v1.ListSamplesResponse:
    while True:
        try:
            answer: v1.ListSamplesResponse = stub.ListSamples(
                request, metadata=(("authorization", f"Bearer {token}"),), timeout=30
            )
        except grpc.RpcError as problem:
            if problem.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
            time.sleep(_PAUSE_S)
        else:
            return answer
