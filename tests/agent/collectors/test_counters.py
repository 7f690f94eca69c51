"""Rates of counters, against counts that a perfect counter would have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright_agent.collectors.counters import ByteRates, CounterRate

BIG = st.integers(min_value=0, max_value=2**64 - 1)
SECONDS = st.floats(min_value=0.1, max_value=100.0)


def rate(*reads: tuple[int, float]) -> float | None:
    """Return the rate after the last of many reads."""
    counter = CounterRate()
    found = None
    for count, now_s in reads:
        found = counter.update(count, now_s=now_s)
    return found


@given(count=BIG, now_s=SECONDS)
def test_the_first_read_has_no_rate(count: int, now_s: float) -> None:
    assert rate((count, now_s)) is None


@given(start=BIG, step=BIG, passed_s=SECONDS)
def test_a_counter_that_grows_has_the_rate_of_its_step(
    start: int, step: int, passed_s: float
) -> None:
    assert rate((start, 0.0), (start + step, passed_s)) == pytest.approx(step / passed_s)


@given(first=BIG, second=BIG, passed_s=st.floats(min_value=-100, max_value=0))
def test_without_time_between_reads_there_is_no_rate(
    first: int, second: int, passed_s: float
) -> None:
    assert rate((first, 0.0), (second, passed_s)) is None


@given(bits=st.sampled_from([32, 40, 48, 56, 64]), data=st.data())
def test_a_wrap_at_any_width_has_the_rate_of_a_counter_without_end(
    bits: int, data: st.DataObject
) -> None:
    step = data.draw(st.integers(1, min(2 ** (bits - 1), 10**12) - 1))
    start = 2**bits - data.draw(st.integers(1, step))

    assert rate((start, 0.0), ((start + step) % 2**bits, 1.0)) == pytest.approx(step)


@given(before=st.integers(2**34, 2**63), data=st.data())
def test_a_reset_leaves_its_interval_without_a_rate(before: int, data: st.DataObject) -> None:
    """A wrap is ruled out: the end of the width is further away than anything moves in 1 s."""
    far = all(2**bits - before > 3 * 10**12 for bits in (40, 48, 56, 64) if before < 2**bits)
    after = data.draw(st.integers(0, 2**20))
    before = before if far else 2**42

    assert rate((before, 0.0), (after, 1.0)) is None


def test_the_interval_after_a_reset_has_a_rate_again() -> None:
    assert rate((2**42, 0.0), (10, 1.0), (110, 2.0)) == pytest.approx(100)


@given(reads=st.lists(st.tuples(BIG, st.floats(allow_nan=False, width=32)), max_size=8))
def test_no_series_of_reads_has_a_negative_rate(reads: list[tuple[int, float]]) -> None:
    found = rate(*reads)

    assert found is None or found >= 0


def test_a_sum_is_that_of_the_counters_that_were_there_before() -> None:
    rates = ByteRates()

    assert rates.update_mbps({"a": 0, "b": 0}, now_s=0.0) is None
    assert rates.update_mbps({"a": 10**6, "b": 10**6, "new": 9**9}, now_s=1.0) == pytest.approx(16)
    assert rates.update_mbps({"a": 2 * 10**6}, now_s=2.0) == pytest.approx(8)


def test_a_counter_that_comes_back_is_new() -> None:
    rates = ByteRates()
    rates.update_mbps({"a": 0}, now_s=0.0)
    rates.update_mbps({}, now_s=1.0)

    assert rates.update_mbps({"a": 10**9}, now_s=2.0) is None
