"""The chart of nodes over time: pools on top of each other, events above."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spotwright.adapters.report.axes import count_ticks
from spotwright.adapters.report.charts import Picture
from spotwright.adapters.report.markup import Html, tag
from spotwright.adapters.report.time_frame import Axis, TimeFrame, corners, drawn, time_frame

_MARK_PX = 5.0  # half the width of an event's mark
_MOST_LINES = 40  # more would hide what they mark

Interval = tuple[float, float]  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolArea:
    """The nodes of one pool."""

    name: str
    class_: str
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEvent:
    """An event in the chart."""

    seconds: float
    text: str
    is_bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesOverTime:
    """What the chart shows."""

    areas: tuple[PoolArea, ...]
    planned_node_count: int
    events: tuple[ShownEvent, ...]
    seconds: float


def node_chart(data: NodesOverTime, picture: Picture) -> Html:
    """Return the chart at one size."""
    ends = (time for area in data.areas for pair in area.intervals for time in pair)
    times = sorted({0.0, data.seconds, *ends})
    stacks = _stacked([_counts(area.intervals, times) for area in data.areas])
    most = max(stacks[-1], default=0) if stacks else 0
    axis = Axis(
        name="nodes",
        highest=max(most, data.planned_node_count, 1),
        ticks=lambda scale, font_px: count_ticks(scale, font_px=font_px),
    )
    frame = time_frame(picture, axis, seconds=data.seconds)
    floors = [[0] * len(times), *stacks]
    areas = [
        tag("polygon", tag("title", area.name), points=_outline(frame, times, low, high),
            class_=f"area {area.class_}")
        for area, (low, high) in zip(data.areas, pairwise(floors), strict=True)
    ]  # fmt: skip
    text = (
        f"Nodes over time: {len(data.areas)} pools, {data.planned_node_count} nodes planned, "
        f"{len(data.events)} events"
    )
    return drawn(
        frame, text, *areas, _planned(frame, data.planned_node_count), *_events(frame, data.events)
    )


def _counts(intervals: Iterable[Interval], times: Sequence[float]) -> list[int]:
    """Return how many intervals hold each time and what comes right after it."""
    changes = dict.fromkeys(times, 0)
    for start, end in intervals:
        changes[start] += 1
        changes[end] -= 1
    running, counts = 0, []
    for time in times:
        running += changes[time]
        counts.append(running)
    return counts


def _stacked(counts: Sequence[Sequence[int]]) -> list[list[int]]:
    below = [0] * (len(counts[0]) if counts else 0)
    stacks = []
    for own in counts:
        below = [low + count for low, count in zip(below, own, strict=True)]
        stacks.append(below)
    return stacks


def _outline(
    frame: TimeFrame, times: Sequence[float], low: Sequence[int], high: Sequence[int]
) -> str:
    """Return the corners of an area: there along its upper edge, and back along the lower one."""
    there, back = _stairs(frame, times, high), _stairs(frame, times, low)
    return " ".join([*there, *reversed(back)])


def _stairs(frame: TimeFrame, times: Sequence[float], counts: Sequence[int]) -> list[str]:
    """Return the corners of a count that holds until the next time, each once."""
    points = [frame.point(times[0], counts[0])]
    for (_, before), (time, count) in pairwise(zip(times, counts, strict=True)):
        if count != before:
            points += [frame.point(time, before), frame.point(time, count)]
    return corners([*points, frame.point(times[-1], counts[-1])])


def _planned(frame: TimeFrame, node_count: int) -> Html:
    y = frame.y.px(node_count)
    return tag("line", x1=frame.box.left, x2=frame.box.right, y1=y, y2=y, class_="planned")


def _events(frame: TimeFrame, events: Sequence[ShownEvent]) -> list[Html]:
    """Return a mark for each event above the frame, the bad ones last, so that they are seen."""
    bad = [event for event in events if event.is_bad]
    lined = bad if len(bad) <= _MOST_LINES else []
    ordered = [*(event for event in events if not event.is_bad), *bad]
    return [*(_event_line(frame, event) for event in lined), *(_mark(frame, e) for e in ordered)]


def _event_line(frame: TimeFrame, event: ShownEvent) -> Html:
    x = frame.x.px(event.seconds)
    return tag("line", x1=x, x2=x, y1=frame.box.top, y2=frame.box.bottom, class_="event")


def _mark(frame: TimeFrame, event: ShownEvent) -> Html:
    x, y = frame.x.px(event.seconds), frame.box.top - 2
    top = y - 1.6 * _MARK_PX
    points = f"{x - _MARK_PX:.1f},{top:.1f} {x + _MARK_PX:.1f},{top:.1f} {x:.1f},{y:.1f}"
    class_ = "event bad" if event.is_bad else "event"
    return tag("polygon", tag("title", event.text), points=points, class_=class_)
