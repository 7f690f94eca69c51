import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.grpc.access.rate_limit import (
    DEFAULT_RATES,
    CallKind,
    Rate,
    RateLimiter,
    kind_of,
)
from spotwright.domain.errors import BusyError


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def allowed_count(limiter: RateLimiter, caller: str, kind: CallKind, tries: int) -> int:
    count = 0
    for _ in range(tries):
        try:
            limiter.take(caller, kind)
        except BusyError:
            continue
        count += 1
    return count


@pytest.mark.parametrize(
    ("kind", "burst_count", "calls_per_s"),
    [(CallKind.CALL, 200, 50), (CallKind.PLAN, 10, 2), (CallKind.SESSION, 10, 1)],
)
def test_a_burst_goes_through_and_then_so_many_a_second(
    kind: CallKind, burst_count: int, calls_per_s: int
) -> None:
    clock = Clock()
    limiter = RateLimiter(clock_s=clock)

    assert allowed_count(limiter, "ci", kind, 500) == burst_count
    clock.now_s += 3
    assert allowed_count(limiter, "ci", kind, 500) == 3 * calls_per_s


def test_who_comes_back_when_told_is_let_in_and_a_moment_sooner_is_not() -> None:
    clock = Clock()
    limiter = RateLimiter({CallKind.CALL: Rate(2.0, 1)}, clock_s=clock)
    limiter.take("ci", CallKind.CALL)

    with pytest.raises(BusyError, match="too many calls: 2 per second") as refused:
        limiter.take("ci", CallKind.CALL)

    assert refused.value.retry_after_s == 0.5
    clock.now_s += 0.499
    assert allowed_count(limiter, "ci", CallKind.CALL, 1) == 0
    clock.now_s += 0.001
    assert allowed_count(limiter, "ci", CallKind.CALL, 2) == 1


def test_callers_and_kinds_do_not_share_a_bucket() -> None:
    limiter = RateLimiter(clock_s=Clock())

    assert allowed_count(limiter, "ci", CallKind.PLAN, 50) == 10
    assert allowed_count(limiter, "anna", CallKind.PLAN, 50) == 10
    assert allowed_count(limiter, "ci", CallKind.CALL, 500) == 200


def test_a_check_counts_nothing() -> None:
    limiter = RateLimiter({CallKind.CALL: Rate(1.0, 1)}, clock_s=Clock())

    for _ in range(5):
        limiter.check("ci", CallKind.CALL)
    limiter.take("ci", CallKind.CALL)

    with pytest.raises(BusyError):
        limiter.check("ci", CallKind.CALL)


def test_callers_that_went_away_are_forgotten() -> None:
    clock = Clock()
    limiter = RateLimiter(clock_s=clock)
    for number in range(1000):
        limiter.take(f"agent-{number}", CallKind.SESSION)

    clock.now_s += DEFAULT_RATES[CallKind.SESSION].refill_s
    limiter.take("another", CallKind.SESSION)

    assert len(limiter) == 1


def test_memory_is_bounded_whoever_calls() -> None:
    limiter = RateLimiter(clock_s=Clock(), max_bucket_count=100)

    for number in range(1000):
        limiter.take(f"agent-{number}", CallKind.SESSION)

    assert len(limiter) == 100


def test_a_busy_caller_is_not_forgotten_for_others_that_come_and_go() -> None:
    clock = Clock()
    limiter = RateLimiter({CallKind.CALL: Rate(1.0, 10)}, clock_s=clock, max_bucket_count=3)
    allowed = 0
    for number in range(100):
        allowed += allowed_count(limiter, "busy", CallKind.CALL, 1)
        limiter.take(f"once-{number}", CallKind.CALL)

    assert allowed == 10


@given(
    st.lists(st.floats(min_value=0, max_value=5), min_size=1, max_size=60),
    st.floats(min_value=0.1, max_value=20),
    st.integers(min_value=1, max_value=8),
)
def test_no_window_of_time_sees_more_than_its_burst_and_its_rate(
    gaps_s: list[float], calls_per_s: float, burst_count: int
) -> None:
    clock = Clock()
    limiter = RateLimiter({CallKind.CALL: Rate(calls_per_s, burst_count)}, clock_s=clock)
    times_s = []
    for gap_s in gaps_s:
        clock.now_s += gap_s
        if allowed_count(limiter, "ci", CallKind.CALL, 1):
            times_s.append(clock.now_s)

    for first, start_s in enumerate(times_s):
        for last in range(first, len(times_s)):
            room = burst_count + (times_s[last] - start_s) * calls_per_s
            assert last - first + 1 <= room + 1e-6


def test_a_clock_that_goes_back_gives_nothing_and_takes_nothing() -> None:
    clock = Clock()
    limiter = RateLimiter({CallKind.CALL: Rate(1.0, 2)}, clock_s=clock)
    limiter.take("ci", CallKind.CALL)
    clock.now_s -= 500

    assert allowed_count(limiter, "ci", CallKind.CALL, 3) == 1


def test_sessions_and_plans_are_counted_apart_from_the_rest() -> None:
    assert kind_of("/spotwright.v1.TelemetryService/Session") is CallKind.SESSION
    assert kind_of("/spotwright.v1.PlannerService/CreatePlan") is CallKind.PLAN
    assert kind_of("/spotwright.v1.PlannerService/Predict") is CallKind.CALL
