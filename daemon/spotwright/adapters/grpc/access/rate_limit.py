"""How often a caller may call: one bucket of tokens per caller and kind of call.

A bucket starts full with `burst_count`, loses one by each call and gains `calls_per_s`. A bucket
that has filled up again is as good as a new one, so it is forgotten; the number of those that are
remembered is bounded whatever callers do.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from spotwright.domain.errors import BusyError

_SESSION = "/spotwright.v1.TelemetryService/Session"
_CREATE_PLAN = "/spotwright.v1.PlannerService/CreatePlan"


class CallKind(StrEnum):
    """What is counted apart, in the words of the refusal."""

    CALL = "calls"
    PLAN = "new plans"
    SESSION = "new sessions"
    REFUSAL = "calls with a wrong token"


_KINDS = {_SESSION: CallKind.SESSION, _CREATE_PLAN: CallKind.PLAN}


class Rate(NamedTuple):
    """How many calls are let through."""

    calls_per_s: float
    burst_count: int

    @property
    def refill_s(self) -> float:
        """How long an empty bucket takes to be full."""
        return self.burst_count / self.calls_per_s


DEFAULT_RATES: Mapping[CallKind, Rate] = {
    CallKind.CALL: Rate(50.0, 200),
    CallKind.PLAN: Rate(2.0, 10),
    CallKind.SESSION: Rate(1.0, 10),
    CallKind.REFUSAL: Rate(1.0, 20),
}


@dataclass(slots=True)
class _Bucket:
    level_count: float
    filled_s: float


class RateLimiter:
    """Counts the calls of everybody."""

    def __init__(
        self,
        rates: Mapping[CallKind, Rate] = DEFAULT_RATES,
        *,
        clock_s: Callable[[], float],
        max_bucket_count: int = 20_000,
    ) -> None:
        self._rates, self._clock_s, self._max_bucket_count = rates, clock_s, max_bucket_count
        self._buckets: OrderedDict[tuple[Hashable, CallKind], _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, caller: Hashable, kind: CallKind) -> None:
        """Count a call, or raise BusyError that says when there is room for the next."""
        bucket, rate = self._filled(caller, kind), self._rates[kind]
        self._check(bucket, rate, kind)
        bucket.level_count -= 1

    def check(self, caller: Hashable, kind: CallKind) -> None:
        """Raise BusyError where a call would be too many, and count nothing."""
        self._check(self._filled(caller, kind), self._rates[kind], kind)

    def _check(self, bucket: _Bucket, rate: Rate, kind: CallKind) -> None:
        if bucket.level_count < 1:
            wait_s = (1 - bucket.level_count) / rate.calls_per_s
            raise BusyError(
                f"too many {kind}: {rate.calls_per_s:g} per second are let through, "
                f"{rate.burst_count} at once",
                retry_after_s=round(wait_s, 3) or 0.001,
            )

    def _filled(self, caller: Hashable, kind: CallKind) -> _Bucket:
        """Return the caller's bucket as full as it is by now, as the latest that was used."""
        now_s, key, rate = self._clock_s(), (caller, kind), self._rates[kind]
        bucket = self._buckets.pop(key, None)
        if bucket is None:
            self._forget_idle(now_s)
            bucket = _Bucket(rate.burst_count, now_s)
        gained = max(0.0, now_s - bucket.filled_s) * rate.calls_per_s
        bucket.level_count = min(rate.burst_count, bucket.level_count + gained)
        bucket.filled_s = now_s
        self._buckets[key] = bucket
        return bucket

    def _forget_idle(self, now_s: float) -> None:
        while self._buckets:
            (_, kind), oldest = next(iter(self._buckets.items()))
            idle_s = now_s - oldest.filled_s
            full = len(self._buckets) >= self._max_bucket_count
            if not full and idle_s < self._rates[kind].refill_s:
                return
            self._buckets.popitem(last=False)


def kind_of(method: str) -> CallKind:
    """Return what a call of a method is counted as."""
    return _KINDS.get(method, CallKind.CALL)
