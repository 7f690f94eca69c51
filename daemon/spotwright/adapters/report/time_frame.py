"""The frame of a chart over the time of a job: scales, ticks and names."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from spotwright.adapters.report.axes import Scale, Tick, duration_ticks
from spotwright.adapters.report.charts import Picture
from spotwright.adapters.report.labels import Box, text_width_px
from spotwright.adapters.report.markup import Html, tag

WIDE = Picture(name="wide", width=800, height=300, font_px=13)
SMALL = Picture(name="small", width=340, height=260, font_px=12)
_TOP_PX, _BOTTOM_PX, _RIGHT_PX = 34.0, 50.0, 16.0
_AIR = 1.05  # of the highest value, so that a line at it is seen

Ticks = Callable[[Scale, float], Sequence[Tick]]  # for a scale and a size of font


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What a chart shows upwards, from zero."""

    name: str
    highest: float
    ticks: Ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeFrame:
    """Where things lie in a chart."""

    picture: Picture
    box: Box
    x: Scale  # seconds since the first thing that is shown
    y: Scale
    axis: Axis

    def point(self, seconds: float, value: float) -> str:
        """Return a point as SVG writes it; what lies outside is drawn at the edge."""
        x = min(max(self.x.px(seconds), self.box.left), self.box.right)
        y = min(max(self.y.px(value), self.box.top), self.box.bottom)
        return f"{x:.1f},{y:.1f}"


def corners(points: Iterable[str]) -> list[str]:
    """Return points without those that repeat the one before."""
    return [point for point, _ in groupby(points)]


def time_frame(picture: Picture, axis: Axis, *, seconds: float) -> TimeFrame:
    """Return the frame of a chart over some time."""
    bottom, right = picture.height - _BOTTOM_PX, picture.width - _RIGHT_PX
    y = Scale(
        low=0.0, high=_AIR * (axis.highest or 1.0), start_px=bottom, end_px=_TOP_PX, is_log=False
    )
    widths = [text_width_px(text, picture.font_px) for _, text in axis.ticks(y, picture.font_px)]
    left = max(widths, default=0.0) + 12
    x = Scale(low=0.0, high=seconds or 1.0, start_px=left, end_px=right, is_log=False)
    return TimeFrame(picture=picture, box=Box(left, _TOP_PX, right, bottom), x=x, y=y, axis=axis)


def drawn(frame: TimeFrame, text: str, *parts: Html) -> Html:
    """Return the chart: its axes, and what was drawn over them."""
    picture = frame.picture
    return tag(
        "svg", tag("title", text), *_axes(frame), *parts,
        class_=f"chart {picture.name}", viewBox=f"0 0 {picture.width:g} {picture.height:g}",
        role="img", aria_label=text, font_size=picture.font_px,
    )  # fmt: skip


def _axes(frame: TimeFrame) -> list[Html]:
    box, font_px = frame.box, frame.picture.font_px
    return [
        *(_value_tick(frame, tick) for tick in frame.axis.ticks(frame.y, font_px)),
        *(_time_tick(frame, tick) for tick in duration_ticks(frame.x, font_px=font_px)),
        tag("line", x1=box.left, x2=box.right, y1=box.bottom, y2=box.bottom, class_="axis"),
        tag("text", frame.axis.name, x=2, y=font_px, class_="axis-name"),
        tag(
            "text", "time", x=box.right, y=frame.picture.height - 6, text_anchor="end",
            class_="axis-name",
        ),
    ]  # fmt: skip


def _value_tick(frame: TimeFrame, tick: Tick) -> Html:
    y, box = frame.y.px(tick[0]), frame.box
    line = tag("line", x1=box.left, x2=box.right, y1=y, y2=y, class_="grid")
    text = tag(
        "text", tick[1],
        x=box.left - 6, y=y + 0.35 * frame.picture.font_px, text_anchor="end", class_="tick",
    )  # fmt: skip
    return tag("g", line, text)


def _time_tick(frame: TimeFrame, tick: Tick) -> Html:
    x, box, font_px = frame.x.px(tick[0]), frame.box, frame.picture.font_px
    half = text_width_px(tick[1], font_px) / 2 + 2
    inside = min(max(x, half), frame.picture.width - half)
    line = tag("line", x1=x, x2=x, y1=box.bottom, y2=box.bottom + 4, class_="axis")
    text = tag(
        "text", tick[1],
        x=inside, y=box.bottom + 1.65 * font_px, text_anchor="middle", class_="tick",
    )  # fmt: skip
    return tag("g", line, text)
