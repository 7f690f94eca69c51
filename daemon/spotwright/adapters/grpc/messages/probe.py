"""Measurements of the network between hosts, to and from the wire."""

import math
from datetime import UTC, datetime

from spotwright.adapters.grpc.messages.scalars import optional
from spotwright.domain.errors import BadInputError
from spotwright.domain.telemetry import NetworkProbe
from spotwright.v1 import telemetry_pb2 as v1

_MOST = {"sent_mbps": 1e8, "received_mbps": 1e8, "round_trip_s": 3600.0}
_LIMITS = ("", "rate-limit", "cpu")
_LONGEST_LINE, _LONGEST_PROBLEM = 256, 1_000


def probe_from_proto(message: v1.ProbeResult, *, time: datetime, where: str) -> NetworkProbe:
    """Return a result that was measured at `time`; BadInputError names what cannot be right."""
    for name, most in _MOST.items():
        if message.HasField(name):
            _check_figure(f"{where}.{name}", getattr(message, name), most)
    for name in ("command_id", "peer"):
        _check_line(f"{where}.{name}", getattr(message, name))
    if len(message.problem) > _LONGEST_PROBLEM or "\0" in message.problem:
        raise BadInputError(
            f"{where}.problem must be at most {_LONGEST_PROBLEM:,} characters without NUL"
        )
    if message.limited_by not in _LIMITS:
        raise BadInputError(
            f"{where}.limited_by must be rate-limit, cpu or empty, got {message.limited_by[:80]!r}"
        )
    return NetworkProbe(
        command_id=message.command_id,
        peer=message.peer,
        time=time,
        sent_mbps=optional(message, "sent_mbps"),
        received_mbps=optional(message, "received_mbps"),
        round_trip_s=optional(message, "round_trip_s"),
        limited_by=message.limited_by,
        problem=message.problem,
    )


def probe_to_proto(probe: NetworkProbe) -> v1.ProbeResult:
    """Return a result as a message."""
    return v1.ProbeResult(
        command_id=probe.command_id,
        peer=probe.peer,
        time_unix_ms=round(probe.time.astimezone(UTC).timestamp() * 1000),
        sent_mbps=probe.sent_mbps,
        received_mbps=probe.received_mbps,
        round_trip_s=probe.round_trip_s,
        limited_by=probe.limited_by,
        problem=probe.problem,
    )


def _check_figure(name: str, value: float, most: float) -> None:
    if not (math.isfinite(value) and 0 <= value <= most):
        raise BadInputError(
            f"{name} is {value}; it must be from 0 to {most:g}, and is left out where it was not "
            "measured"
        )


def _check_line(name: str, text: str) -> None:
    if len(text) > _LONGEST_LINE or not text.isprintable():
        raise BadInputError(f"{name} must be at most {_LONGEST_LINE} printable characters")
