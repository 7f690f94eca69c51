from collections.abc import Sequence

import pytest

from spotwright.domain.telemetry import RollupPart, Statistic
from spotwright.usecases.steady_windows import (
    SteadyWindow,
    mean_step_s,
    steady_windows,
    steps_per_s,
)


def host(start: int, end: int, *, step_s: float = 1.0) -> list[RollupPart]:
    """Return the steps of a host, back to back, by 10 s."""
    parts: dict[int, int] = {}
    now_s = float(start)
    while now_s + step_s < end:
        now_s += step_s
        parts[int(now_s) // 10 * 10] = parts.get(int(now_s) // 10 * 10, 0) + 1
    return [
        RollupPart(
            start_unix_s=at,
            step_count=count,
            statistics={"step_s": Statistic(count, count * step_s, step_s)},
        )
        for at, count in parts.items()
    ]


def windows(**hosts: Sequence[RollupPart]) -> list[SteadyWindow]:
    return steady_windows(hosts, resolution_s=10)


def test_one_fleet_is_one_window_without_its_first_minute() -> None:
    (found,) = windows(a=host(0, 300), b=host(0, 300, step_s=2.0))

    assert (found.start_unix_s, found.end_unix_s) == (60, 300)
    assert found.step_s == pytest.approx({"a": 1.0, "b": 2.0})
    assert mean_step_s(found) == pytest.approx(1.5)
    assert steps_per_s(found) == pytest.approx(1.5)


def test_a_host_that_comes_or_goes_begins_another_window() -> None:
    found = windows(a=host(0, 900), b=host(300, 600))

    assert [set(window.step_s) for window in found] == [{"a"}, {"a", "b"}, {"a"}]
    assert [window.start_unix_s for window in found] == [60, 360, 660]


def test_a_host_that_stops_for_longer_than_steps_take_left_and_came_back() -> None:
    found = windows(a=[*host(0, 300), *host(400, 700)])
    still_there = windows(a=[*host(0, 300), *host(320, 700)])

    assert [window.end_unix_s for window in found] == [300, 700]
    assert [window.end_unix_s for window in still_there] == [700]


def test_long_steps_do_not_look_like_pauses() -> None:
    (found,) = windows(a=host(0, 6_000, step_s=45.0))

    assert found.step_s["a"] == pytest.approx(45.0)


@pytest.mark.parametrize("parts", [[], host(0, 60), host(0, 105), host(0, 300, step_s=6.0)])
def test_too_few_steps_are_no_window(parts: Sequence[RollupPart]) -> None:
    assert windows(a=parts) == []


def test_intervals_without_steps_are_nothing() -> None:
    empty = [RollupPart(start_unix_s=at, host_sample_count=10) for at in range(0, 600, 10)]

    assert windows(a=empty) == []
    (found,) = windows(a=host(0, 300), b=empty)
    assert set(found.step_s) == {"a"}
