"""Errors on the wire: one table, both ways.

A status carries the message that the same command would print in-process, an ErrorInfo with the
error's `reason` and facts and, where waiting helps, a RetryInfo.
"""

from collections.abc import Mapping
from typing import NoReturn

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from spotwright.domain.errors import (
    BadInputError,
    BusyError,
    DaemonUnavailableError,
    JobEndedError,
    NotAllowedError,
    NotFoundError,
    OutsideWorldError,
    SolverGaveUpError,
    SpotwrightError,
    StoreUnavailableError,
    UnknownNameError,
    WorkerDiedError,
)

_DOMAIN = "spotwright"
_RETRY_S = 1.0
_LONGEST_LINE_BYTES = 1_000
# The first kind that fits decides.
_CODES: tuple[tuple[type[SpotwrightError], grpc.StatusCode], ...] = (
    (NotFoundError, grpc.StatusCode.NOT_FOUND),
    (JobEndedError, grpc.StatusCode.FAILED_PRECONDITION),
    (BadInputError, grpc.StatusCode.INVALID_ARGUMENT),
    (BusyError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (NotAllowedError, grpc.StatusCode.PERMISSION_DENIED),
    (StoreUnavailableError, grpc.StatusCode.UNAVAILABLE),
    (WorkerDiedError, grpc.StatusCode.UNAVAILABLE),
    (SolverGaveUpError, grpc.StatusCode.DEADLINE_EXCEEDED),
    (OutsideWorldError, grpc.StatusCode.UNAVAILABLE),
    (SpotwrightError, grpc.StatusCode.INTERNAL),
)
# Errors whose every fact is text: they arrive as what they were.
_WHOLE: tuple[type[SpotwrightError], ...] = (NotFoundError, JobEndedError, UnknownNameError)


class StatusError(Exception):
    """A status that is ready to be sent, such as one that a worker process made."""

    def __init__(self, status: status_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status


def status_of(error: SpotwrightError) -> status_pb2.Status:
    """Return the status that an error is told by."""
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return make_status(
        code,
        str(error),
        reason=error.reason,
        retry_after_s=_retry_after_s(error),
        facts=_facts(error),
    )


def make_status(
    code: grpc.StatusCode,
    message: str,
    *,
    reason: str,
    retry_after_s: float | None = None,
    facts: Mapping[str, str] | None = None,
) -> status_pb2.Status:
    """Return a status with its reason, its facts and, where waiting helps, for how long."""
    status = status_pb2.Status(code=code.value[0], message=_shortened(message))
    told = {name: _shortened(fact) for name, fact in (facts or {}).items()}
    info = error_details_pb2.ErrorInfo(reason=reason, domain=_DOMAIN, metadata=told)
    status.details.append(_packed(info))
    if retry_after_s is not None:
        delay = Duration()
        delay.FromNanoseconds(int(retry_after_s * 1e9))
        status.details.append(_packed(error_details_pb2.RetryInfo(retry_delay=delay)))
    return status


def _shortened(text: str) -> str:
    """Return a line that repeats something long without its middle; several lines stay whole.

    A status travels as metadata, twice, of which most clients take 8 KiB and see RESOURCE_EXHAUSTED
    beyond; those of ours take the many lines that a job file can be wrong in.
    """
    data = text.encode(errors="replace")  # half a character of UTF-16 is none of UTF-8
    if "\n" not in text and len(data) > _LONGEST_LINE_BYTES:
        half = _LONGEST_LINE_BYTES // 2
        data = data[:half] + b" ... " + data[-half:]
    return data.decode(errors="ignore")


async def abort(context: grpc.aio.ServicerContext, status: status_pb2.Status) -> NoReturn:
    """End a call with a status."""
    told = rpc_status.to_status(status)
    await context.abort(told.code, told.details, told.trailing_metadata)
    raise AssertionError("abort never returns")


def error_of(call: grpc.RpcError | grpc.aio.AioRpcError, *, address: str) -> SpotwrightError:
    """Return the error that a failed call to the daemon at `address` stands for."""
    code, message = call.code(), call.details() or "no reason was given"
    status = rpc_status.from_call(call)
    if status is None:  # not said by the daemon, but by the way there
        return DaemonUnavailableError(_unreached(code, message, address))
    if code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED):
        return NotAllowedError(message)
    return _rebuilt(_info(status), message, retry_after_s=_retry_delay_s(status))


def _rebuilt(
    info: error_details_pb2.ErrorInfo, message: str, *, retry_after_s: float | None
) -> SpotwrightError:
    """Return the error, or one of the nearest general kind, with the message as it was told."""
    reason = info.reason
    whole = next((kind for kind in _WHOLE if kind.reason == reason), None)
    if whole is not None:
        return _whole(whole, message, info.metadata)
    if reason == BusyError.reason:
        return BusyError(
            message.rpartition("; try again in")[0], retry_after_s=retry_after_s or 1.0
        )
    kinds: tuple[type[SpotwrightError], ...] = (SolverGaveUpError, StoreUnavailableError)
    kind = next((kind for kind in kinds if kind.reason == reason), None)
    if kind is None:
        kind = BadInputError if reason in _bad_input_reasons() else OutsideWorldError
    error = kind(message)
    error.reason = reason
    return error


def _whole(kind: type[SpotwrightError], message: str, facts: Mapping[str, str]) -> SpotwrightError:
    error = kind.__new__(kind, message)  # its own text is made of more than was told
    if isinstance(error, UnknownNameError):
        error.nearest = None
    for name, fact in facts.items():
        setattr(error, name, fact)
    return error


def _facts(error: SpotwrightError) -> dict[str, str]:
    if not isinstance(error, _WHOLE):
        return {}
    return {name: fact for name, fact in vars(error).items() if fact is not None}


def _bad_input_reasons() -> set[str]:
    kinds = [BadInputError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    return {kind.reason for kind in kinds}


def _unreached(code: grpc.StatusCode, message: str, address: str) -> str:
    if code is grpc.StatusCode.UNAVAILABLE:
        return (
            f"no daemon answers at {address} ({message}); is `spotwright serve` running there, and "
            "do --tls-dir and its certificates fit? An expired certificate looks the same"
        )
    return f"the daemon at {address} ended the call: {code.name} ({message})"


def _retry_after_s(error: SpotwrightError) -> float | None:
    if isinstance(error, BusyError):
        return error.retry_after_s
    return _RETRY_S if isinstance(error, StoreUnavailableError | WorkerDiedError) else None


def _packed(
    message: error_details_pb2.ErrorInfo | error_details_pb2.RetryInfo,
) -> Any:
    packed = Any()
    packed.Pack(message)
    return packed


def _info(status: status_pb2.Status) -> error_details_pb2.ErrorInfo:
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        if detail.Unpack(info):
            break
    return info


def _retry_delay_s(status: status_pb2.Status) -> float | None:
    for detail in status.details:
        info = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            return float(info.retry_delay.ToNanoseconds()) / 1e9
    return None
