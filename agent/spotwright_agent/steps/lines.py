"""Lines of JSON that training processes send, read. Anybody on the host may send anything."""

import json
from math import copysign, inf, isfinite
from typing import Any

from spotwright_agent.readings import StepReading

MAX_LINE_BYTES = 4_096
_MAX_RANK, _MAX_STEP = 1_000_000, 2**63 - 1
_MAX_S, _MAX_SAMPLES = 1e7, 1e15
_MAX_LOSS = 3.4e38  # what a float of the wire holds
_OLDEST_MS, _AHEAD_MS = 86_400_000, 60_000  # by which a sender's clock is believed


class LineError(Exception):
    """A line is neither a step nor a hello."""


def read_line(line: bytes, *, now_unix_ms: int) -> StepReading | None:
    """Return the step in a line; None: it is a hello.

    Raises:
        LineError: it is neither; the daemon would refuse a whole batch for it.
    """
    told = _told(line)
    if "step" not in told and told.get("hello"):
        return None
    return StepReading(
        time_unix_ms=_time_ms(told.get("time_unix_ms"), now_unix_ms),
        rank=_whole(told.get("rank", 0), _MAX_RANK),
        step=_whole(told.get("step"), _MAX_STEP),
        step_s=_figure(told.get("step_s"), _MAX_S),
        data_wait_s=_optional(told, "data_wait_s", _MAX_S),
        compute_s=_optional(told, "compute_s", _MAX_S),
        communication_s=_optional(told, "communication_s", _MAX_S),
        samples=_optional(told, "samples", _MAX_SAMPLES),
        loss=_loss(told.get("loss")),
    )


def _told(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise LineError("too long")
    try:
        told = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineError("not JSON") from error
    if not isinstance(told, dict):
        raise LineError("not an object")
    return told


def _whole(value: Any, most: int) -> int:
    if type(value) is int and 0 <= value <= most:
        return value
    raise LineError("not a whole number within limits")


def _figure(value: Any, most: float) -> float:
    if type(value) in (int, float) and 0 <= value <= most:  # false for NaN, too
        return float(value)
    raise LineError("not a figure within limits")


def _optional(told: dict[str, Any], name: str, most: float) -> float | None:
    value = told.get(name)
    return None if value is None else _figure(value, most)


def _loss(value: Any) -> float | None:
    """Return the loss, which may be negative, and NaN in a run that diverged."""
    if type(value) not in (int, float):
        return None
    if isinstance(value, int):
        return float(max(-(10**38), min(value, 10**38)))  # more is no loss, and not a float
    if isfinite(value) and abs(value) > _MAX_LOSS:
        return copysign(inf, value)
    return float(value)


def _time_ms(value: Any, now_unix_ms: int) -> int:
    if type(value) is int and -_OLDEST_MS <= value - now_unix_ms <= _AHEAD_MS:
        return value
    return now_unix_ms
