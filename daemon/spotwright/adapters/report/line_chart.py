"""Charts of something that grows over time: planned, measured, and expected."""

from collections.abc import Sequence
from dataclasses import dataclass

from spotwright.adapters.report.charts import Picture
from spotwright.adapters.report.markup import Html, tag
from spotwright.adapters.report.time_frame import Axis, Ticks, TimeFrame, corners, drawn, time_frame

_AIR = 1.02  # of a deadline, so that its line is seen

Point = tuple[float, float]  # seconds and value


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What the chart shows; an empty line is left out."""

    name: str
    ticks: Ticks
    planned: tuple[Point, ...]
    measured: tuple[Point, ...]
    expected: tuple[Point, ...]  # from the last that was measured on
    deadline_s: float | None = None

    @property
    def text(self) -> str:
        """Say what it shows."""
        lines = {"planned": self.planned, "measured": self.measured, "expected": self.expected}
        names = ", ".join(name for name, points in lines.items() if points)
        return f"{self.name} over time: {names}"


def line_chart(data: Growth, picture: Picture) -> Html:
    """Return the chart at one size."""
    points = [*data.planned, *data.measured, *data.expected]
    axis = Axis(name=data.name, highest=max(value for _, value in points), ticks=data.ticks)
    deadline = [] if data.deadline_s is None else [_AIR * data.deadline_s]
    frame = time_frame(picture, axis, seconds=max([*(s for s, _ in points), *deadline]))
    lines = [
        _line(frame, line, class_)
        for line, class_ in (
            (data.planned, "planned"),
            (data.expected, "expected"),
            (data.measured, "measured"),
        )
        if len(line) > 1
    ]
    return drawn(frame, data.text, *_deadline(frame, data.deadline_s), *lines)


def _line(frame: TimeFrame, points: Sequence[Point], class_: str) -> Html:
    drawn_points = corners(frame.point(seconds, value) for seconds, value in points)
    return tag("polyline", points=" ".join(drawn_points), class_=class_)


def _deadline(frame: TimeFrame, deadline_s: float | None) -> list[Html]:
    if deadline_s is None:
        return []
    x = frame.x.px(deadline_s)
    return [tag("line", x1=x, x2=x, y1=frame.box.top, y2=frame.box.bottom, class_="deadline")]
