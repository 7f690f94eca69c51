"""The daemon, called from programs that wait for each answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self, TypeVar

import grpc

from spotwright.adapters.grpc.errors import error_of
from spotwright.client.calls import Call, StreamCall
from spotwright.client.channel import Address, open_channel
from spotwright.client.job_methods import JobMethods

T = TypeVar("T")


class Client(JobMethods):
    """Calls one daemon; threads may share it.

    Each method raises the errors of domain/errors.py: what the daemon complains of as the same
    command would in-process, and DaemonUnavailableError where none answers.
    """

    def __init__(
        self, address: str, *, tls_dir: Path | None = None, token: str | None = None
    ) -> None:
        """Name the daemon as HOST:PORT; the first call connects."""
        self._address = address
        self._channel = open_channel(Address.parse(address), tls=tls_dir, token=token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; calls under way are cancelled."""
        self._channel.close()

    def run(self, call: Call[T]) -> T:
        """Make a call and wait for its answer."""
        send = self._channel.unary_unary(
            call.method,
            request_serializer=call.request.__class__.SerializeToString,
            response_deserializer=call.response.FromString,
        )
        try:
            response = send(call.request, timeout=call.timeout_s)
        except grpc.RpcError as error:
            raise error_of(error, address=self._address) from None
        return call.read(response)

    def stream(self, call: StreamCall[T]) -> Iterator[T]:
        """Make a call and return its answers as they come; to leave off cancels it."""
        send = self._channel.unary_stream(
            call.method,
            request_serializer=call.request.__class__.SerializeToString,
            response_deserializer=call.response.FromString,
        )
        responses = send(call.request, timeout=call.timeout_s)
        try:
            for response in responses:
                yield call.read(response)
        except grpc.RpcError as error:
            raise error_of(error, address=self._address) from None
        finally:
            responses.cancel()
