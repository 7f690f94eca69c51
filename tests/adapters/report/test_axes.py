"""Scales keep order and ticks keep apart, for values of any size."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spotwright.adapters.report.axes import (
    Scale,
    cost_ticks,
    count_ticks,
    duration_ticks,
    scale_over,
    share_ticks,
)

amounts = st.lists(st.floats(0.01, 1e8), min_size=1, max_size=8)


@given(values=amounts)
def test_a_scale_keeps_order_and_holds_every_value(values: list[float]) -> None:
    scale = scale_over(values, start_px=0, end_px=300)

    places = [scale.px(value) for value in sorted(values)]

    assert places == sorted(places)
    assert places[0] >= -1e-6
    assert places[-1] <= 300 + 1e-6


@given(values=amounts)
@example(values=[1.0, 1.03125])  # steps of half a cent, which labels do not show
def test_ticks_lie_on_the_axis_and_their_labels_differ(values: list[float]) -> None:
    scale = scale_over(values, start_px=0, end_px=300)

    for ticks in (cost_ticks(scale, font_px=12), duration_ticks(scale, font_px=12)):
        places = [scale.px(value) for value, _ in ticks]
        assert all(-1e-6 <= place <= 300 + 1e-6 for place in places)
        assert all(after - before > 12 for before, after in pairwise(places))
        assert len({text for _, text in ticks}) == len(ticks)


@given(highest=st.floats(1.0, 1e6))
def test_counts_are_whole_numbers_and_shares_are_percent(highest: float) -> None:
    counts = Scale(low=0, high=highest, start_px=300, end_px=0, is_log=False)
    shares = Scale(low=0, high=1.05, start_px=300, end_px=0, is_log=False)

    ticks = count_ticks(counts, font_px=12)

    assert ticks[0] == (0.0, "0")
    assert all(value.is_integer() and text == f"{value:,.0f}" for value, text in ticks)
    assert [text for _, text in share_ticks(shares, font_px=12)] == [
        f"{percent} %" for percent in range(0, 101, 10)
    ]


@pytest.mark.parametrize(("high", "is_log"), [(19.9, False), (20.1, True)])
def test_a_scale_is_logarithmic_over_twenty_times(high: float, is_log: bool) -> None:
    assert scale_over([1.0, high], start_px=0, end_px=300).is_log is is_log


@pytest.mark.parametrize(
    ("hours", "ticks"),
    [
        ([1.0, 9.0], [f"{n} h" for n in range(10)]),
        ([0.1, 1.0], [f"{n} min" for n in range(0, 70, 10)]),
        ([1.0, 300.0], ["1 h", "2 h", "5 h", "12 h", "1 d", "2 d", "5 d", "10 d"]),
    ],
)
def test_times_are_told_in_the_unit_people_use(hours: list[float], ticks: list[str]) -> None:
    scale = scale_over([3600 * h for h in hours], start_px=0, end_px=400)

    assert [text for _, text in duration_ticks(scale, font_px=12)] == ticks
