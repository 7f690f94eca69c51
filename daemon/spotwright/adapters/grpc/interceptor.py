"""Around every call: who calls, may they, how errors are told, and what is counted.

The only place where an exception becomes a status. What nobody raised on purpose is logged with
its traceback and told as INTERNAL without it.
"""

import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import grpc
from google.protobuf.message import DecodeError

from spotwright.adapters.grpc.access.callers import current_principal
from spotwright.adapters.grpc.errors import StatusError, abort, make_status, status_of
from spotwright.domain.access import Principal
from spotwright.domain.errors import BadInputError, SpotwrightError

_log = logging.getLogger(__name__)

Observe = Callable[[str, str, float], None]  # method, status, seconds


class Guard(Protocol):
    """Decides who may call what."""

    async def admit(self, method: str, context: grpc.aio.ServicerContext) -> Principal:
        """Return who calls; StatusError or SpotwrightError where the call may not go on."""


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Lets a call in, runs it, and tells how it ended."""

    def __init__(self, guard: Guard, observe: Observe) -> None:
        self._guard, self._observe = guard, observe

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """Wrap the handler of a call."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        return self._wrapped(handler, handler_call_details.method)

    def _wrapped(self, handler: grpc.RpcMethodHandler, method: str) -> grpc.RpcMethodHandler:
        codec = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if not handler.request_streaming:  # a stream reads by itself, within its behavior
            codec["request_deserializer"] = _read_or_problem(handler.request_deserializer)
        if handler.unary_unary:
            answer = self._answering(handler.unary_unary, method)
            return grpc.unary_unary_rpc_method_handler(answer, **codec)
        if handler.stream_unary:
            answer = self._answering(handler.stream_unary, method)
            return grpc.stream_unary_rpc_method_handler(answer, **codec)
        if handler.unary_stream:
            stream = self._streaming(handler.unary_stream, method)
            return grpc.unary_stream_rpc_method_handler(stream, **codec)
        stream = self._streaming(handler.stream_stream, method)
        return grpc.stream_stream_rpc_method_handler(stream, **codec)

    def _answering(self, behavior: Any, method: str) -> Any:
        async def answer(request: Any, context: grpc.aio.ServicerContext) -> Any:
            with _Call(self._observe, method) as call:
                try:
                    current_principal.set(await self._guard.admit(method, context))
                    return await behavior(_readable(request), context)
                except Exception as error:
                    await call.tell(error, context)

        return answer

    def _streaming(self, behavior: Any, method: str) -> Any:
        if not inspect.isasyncgenfunction(behavior):  # it reads and writes by itself
            return self._answering(behavior, method)

        async def stream(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
            with _Call(self._observe, method) as call:
                try:
                    current_principal.set(await self._guard.admit(method, context))
                    async for response in behavior(_readable(request), context):
                        yield response
                except Exception as error:
                    await call.tell(error, context)

        return stream


class _Call:
    """One call being answered."""

    def __init__(self, observe: Observe, method: str) -> None:
        self._observe, self._method = observe, method
        self._started_s = time.monotonic()
        self._status = grpc.StatusCode.OK.name

    def __enter__(self) -> "_Call":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._status == grpc.StatusCode.OK.name:
            self._status = grpc.StatusCode.CANCELLED.name
        self._observe(self._method, self._status, time.monotonic() - self._started_s)

    async def tell(self, error: Exception, context: grpc.aio.ServicerContext) -> None:
        """End the call with the status that an error stands for."""
        if isinstance(error, grpc.aio.AbortError):
            self._status = context.code().name if context.code() else "ABORTED"
            raise error
        if isinstance(error, StatusError):
            status = error.status
        elif isinstance(error, SpotwrightError):
            status = status_of(error)
        else:
            _log.exception("a call failed", extra={"method": self._method})
            status = make_status(
                grpc.StatusCode.INTERNAL,
                "the daemon failed to answer; its log says why",
                reason="INTERNAL",
            )
        self._status = _name_of(status.code)
        await abort(context, status)


def _read_or_problem(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Have bytes that are no message told as bad input: gRPC itself would log a traceback."""

    def read_or_problem(data: bytes) -> Any:
        try:
            return read(data)
        except DecodeError as problem:
            return BadInputError(f"the request cannot be read: {problem}")

    return read_or_problem


def _readable(request: Any) -> Any:
    if isinstance(request, BadInputError):
        raise request
    return request


def _name_of(number: int) -> str:
    return str(next(code.name for code in grpc.StatusCode if code.value[0] == number))
