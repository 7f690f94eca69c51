"""The daemon, called from programs with an event loop."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self, TypeVar

import grpc

from spotwright.adapters.grpc.errors import error_of
from spotwright.client.aio_job_methods import AioJobMethods
from spotwright.client.calls import Call, StreamCall
from spotwright.client.channel import Address, open_aio_channel

T = TypeVar("T")


class AioClient(AioJobMethods):
    """Calls one daemon, as `Client` does; each method is awaited. To cancel ends the call."""

    def __init__(
        self, address: str, *, tls_dir: Path | None = None, token: str | None = None
    ) -> None:
        """Name the daemon as HOST:PORT, in a running loop; the first call connects."""
        self._address = address
        self._channel = open_aio_channel(Address.parse(address), tls=tls_dir, token=token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connection; calls under way are cancelled."""
        await self._channel.close()

    async def run(self, call: Call[T]) -> T:
        """Make a call and wait for its answer."""
        send = self._channel.unary_unary(
            call.method,
            request_serializer=call.request.__class__.SerializeToString,
            response_deserializer=call.response.FromString,
        )
        try:
            response = await send(call.request, timeout=call.timeout_s)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, address=self._address) from None
        return call.read(response)

    async def stream(self, call: StreamCall[T]) -> AsyncIterator[T]:
        """Make a call and return its answers as they come; to leave off cancels it."""
        send = self._channel.unary_stream(
            call.method,
            request_serializer=call.request.__class__.SerializeToString,
            response_deserializer=call.response.FromString,
        )
        responses = send(call.request, timeout=call.timeout_s)
        try:
            async for response in responses:
                yield call.read(response)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, address=self._address) from None
        finally:
            responses.cancel()
