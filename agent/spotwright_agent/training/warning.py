"""What the agent warns a training process of."""

import json
import time
from dataclasses import dataclass

KINDS = ("hint", "interruption", "withdrawn", "checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWarning:
    """One warning, as it came from the agent."""

    kind: str  # hint: may be taken away; interruption: will be; withdrawn: not so; checkpoint: save
    deadline_unix_ms: int | None = None  # when the host is gone, or the hint expires
    interval_s: float | None = None  # between checkpoints from now on; None: as before
    time_unix_ms: float | None = None  # when the agent said so
    source: str = ""
    detail: str = ""

    @property
    def seconds_left(self) -> float | None:
        """Until the deadline, never below 0; None: nobody knows, or nothing hurries."""
        if self.deadline_unix_ms is None:
            return None
        return max(0.0, self.deadline_unix_ms / 1000 - time.time())

    @property
    def expired(self) -> bool:
        """Whether it is a hint whose time is over."""
        return self.kind == "hint" and self.seconds_left == 0.0


def read_warning(document: bytes) -> TrainingWarning | None:
    """Return the warning in a document; None where it is not one."""
    try:
        told = json.loads(document)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("kind") not in KINDS:
        return None
    return TrainingWarning(
        kind=told["kind"],
        deadline_unix_ms=_deadline_unix_ms(told),
        interval_s=_number(told.get("interval_s")),
        time_unix_ms=_number(told.get("time_unix_ms")),
        source=str(told.get("source", "")),
        detail=str(told.get("detail", "")),
    )


def _deadline_unix_ms(told: dict[str, object]) -> int | None:
    """Return when time is up: seconds_left counts from when it was said, if that is known."""
    deadline_ms = _number(told.get("deadline_unix_ms"))
    if deadline_ms is not None:
        return int(deadline_ms)
    left_s, said_ms = _number(told.get("seconds_left")), _number(told.get("time_unix_ms"))
    if left_s is None:
        return None
    return int((time.time() * 1000 if said_ms is None else said_ms) + left_s * 1000)


def _number(value: object) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return value if usable and 0 <= value < 1e15 else None  # type: ignore[return-value, operator]
