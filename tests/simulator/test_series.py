from hypothesis import given
from hypothesis import strategies as st

from spotwright.simulator.series import Series

_POINTS = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 4)), max_size=12)


def _series(points: list[tuple[int, int]]) -> Series:
    rows = [(0.0, 1.0), *((float(t), float(v)) for t, v in sorted(points))]
    return Series.of(rows, end_s=600.0)


@given(points=_POINTS, ahead_s=st.integers(1, 200))
def test_least_within_is_the_least_of_every_second_ahead(
    points: list[tuple[int, int]], ahead_s: int
) -> None:
    series = _series(points)
    least = series.least_within(ahead_s)

    for time_s in range(0, 600, 7):
        assert least.at(time_s) == min(series.at(t) for t in range(time_s, time_s + ahead_s + 1))


@given(points=_POINTS, start_s=st.integers(0, 599), length_s=st.integers(1, 2000))
def test_a_window_repeats_the_series_from_its_start(
    points: list[tuple[int, int]], start_s: int, length_s: int
) -> None:
    series = _series(points)
    window = series.window(start_s, length_s)

    for time_s in range(0, length_s, 11):
        assert window.at(time_s) == series.at((start_s + time_s) % 600)


def test_the_next_change_is_the_first_time_with_another_value() -> None:
    series = Series.of([(0, 1), (10, 1), (20, 0), (30, 2)], end_s=50)

    assert [series.next_change_s(t) for t in (0, 19.9, 20, 30)] == [20, 20, 30, float("inf")]
