"""A figure over time that holds until it changes: nodes to be had, or a price."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Series:
    """Values from the times at which they begin to hold; the first time is 0."""

    times_s: tuple[float, ...]
    values: tuple[float, ...]
    end_s: float  # of what was observed; the last value is taken to hold beyond

    def __post_init__(self) -> None:
        if not self.times_s or len(self.times_s) != len(self.values) or self.times_s[0] != 0:
            raise ValueError("a series needs a value for each time, and the first at 0")
        if any(b <= a for a, b in zip(self.times_s, self.times_s[1:], strict=False)):
            raise ValueError("the times of a series must increase")
        if self.end_s < self.times_s[-1]:
            raise ValueError(f"a series cannot end at {self.end_s} before its last value begins")

    @classmethod
    def constant(cls, value: float, *, end_s: float) -> Self:
        """Return a figure that does not change."""
        return cls((0.0,), (value,), end_s)

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]], *, end_s: float) -> Self:
        """Return a series of (time, value), of which equal neighbours are joined."""
        times, values = [points[0][0]], [points[0][1]]
        for time_s, value in points[1:]:
            if time_s <= times[-1]:
                values[-1] = value
            elif value != values[-1]:
                times.append(time_s)
                values.append(value)
        return cls(tuple(times), tuple(values), end_s)

    def at(self, time_s: float) -> float:
        """Return the value that holds at a time."""
        return self.values[max(bisect_right(self.times_s, time_s) - 1, 0)]

    def next_change_s(self, time_s: float) -> float:
        """Return when the value changes next; infinite after the last change."""
        place = bisect_right(self.times_s, time_s)
        return self.times_s[place] if place < len(self.times_s) else float("inf")

    def mapped(self, change: Callable[[float], float]) -> "Series":
        """Return the same with every value changed."""
        points = [(t, change(v)) for t, v in zip(self.times_s, self.values, strict=True)]
        return Series.of(points, end_s=self.end_s)

    def window(self, start_s: float, length_s: float) -> "Series":
        """Return what follows on a time, counted from it; beyond the end it begins again."""
        points = [(0.0, self.at(start_s))]
        shift_s = -start_s
        place = bisect_right(self.times_s, start_s)
        while True:
            for i in range(place, len(self.times_s)):
                time_s = self.times_s[i] + shift_s
                if time_s >= length_s:
                    return Series.of(points, end_s=length_s)
                points.append((time_s, self.values[i]))
            shift_s += self.end_s
            place = 0
            if shift_s >= length_s or self.end_s <= 0:
                return Series.of(points, end_s=length_s)

    def least_within(self, ahead_s: float) -> "Series":
        """Return, for each time, the least value from then until `ahead_s` later."""
        if ahead_s <= 0:
            return self
        times = sorted({*self.times_s, *(t - ahead_s for t in self.times_s if t > ahead_s)})
        return Series.of([(t, self._least(t, t + ahead_s)) for t in times], end_s=self.end_s)

    def _least(self, first_s: float, last_s: float) -> float:
        first = max(bisect_right(self.times_s, first_s) - 1, 0)
        return min(self.values[first : bisect_right(self.times_s, last_s)])

    def mean(self, length_s: float) -> float:
        """Return the mean value from 0 to a time."""
        total = 0.0
        for i, (begin_s, value) in enumerate(zip(self.times_s, self.values, strict=True)):
            until_s = self.times_s[i + 1] if i + 1 < len(self.times_s) else length_s
            total += value * max(min(until_s, length_s) - begin_s, 0.0)
        return total / length_s
