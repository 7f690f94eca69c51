"""What a status of the daemon asks an agent to do."""

from typing import NamedTuple

import grpc


class SessionEnd(NamedTuple):
    """Why a session ended."""

    code: str  # of gRPC; OK: in good order
    message: str = ""
    reason: str = ""  # the daemon's own; empty: it did not say
    sequence: int | None = None  # the batch that it refuses
    retry_after_s: float = 0.0

    @property
    def text(self) -> str:
        """What to tell people."""
        return f"{self.reason or self.code}: {self.message}"[:500]


def end_of(error: grpc.RpcError) -> SessionEnd:
    """Read the end of a call that failed."""
    # Imported late: an agent whose daemon is there needs none of it.
    from google.rpc import error_details_pb2  # noqa: PLC0415
    from grpc_status import rpc_status  # noqa: PLC0415

    end = SessionEnd(error.code().name, error.details() or "")
    try:
        status = rpc_status.from_call(error)
    except ValueError:  # details that contradict the status
        status = None
    for detail in status.details if status is not None else ():
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo.FromString(detail.value)
            number = info.metadata.get("sequence", "")
            refused = int(number) if number.isdecimal() else None
            end = end._replace(reason=info.reason, sequence=refused)
        if detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            delay = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
            end = end._replace(retry_after_s=delay.ToTimedelta().total_seconds())
    return end
