"""A session ends with its status whatever is being written at that moment, over a real socket."""

import asyncio
from contextlib import suppress

import grpc
import pytest

from spotwright.adapters.grpc.telemetry.agent_sessions import AgentSession
from spotwright.domain.telemetry import AgentFacts
from spotwright.v1 import telemetry_pb2 as v1

METHOD = "/spotwright.v1.TelemetryService/Session"


class BrokenOff(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Ends every session so many turns of the loop after it began to write the welcome."""

    def __init__(self, turn_count: int) -> None:
        self._turn_count = turn_count

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        return grpc.stream_stream_rpc_method_handler(
            self._hold, response_serializer=v1.SessionResponse.SerializeToString
        )

    async def _hold(self, requests: object, context: grpc.aio.ServicerContext) -> None:
        facts = AgentFacts(agent_id="gpu-7", boot_id="b")
        session = AgentSession(facts, context, sampling=v1.Sampling())
        await session.begin()
        session.welcome(0, max_batch_bytes=1, unix_ms=1)
        for _ in range(self._turn_count):
            await asyncio.sleep(0)
        session.stop_writing()
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the batch cannot be read")


def code_of_session(address: str) -> grpc.StatusCode:
    """Blocks: grpc.aio hides the status after a failed write."""
    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream(METHOD)(iter([b"hello"]), timeout=10.0)
        with suppress(grpc.RpcError):
            for _ in call:
                pass
        return call.code()


@pytest.mark.parametrize("turn_count", [0, 1, 2, 3])
def test_a_session_that_fails_while_the_welcome_is_written_ends_with_its_status(
    turn_count: int,
) -> None:
    async def scene() -> grpc.StatusCode:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((BrokenOff(turn_count),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            return await asyncio.to_thread(code_of_session, f"127.0.0.1:{port}")
        finally:
            await server.stop(0)

    assert asyncio.run(scene()) is grpc.StatusCode.INVALID_ARGUMENT
