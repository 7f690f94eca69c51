"""The chart of cost against time.

Texts in a picture do not wrap and shrink with it, so the chart is drawn at two sizes and the style
sheet shows the one that fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from spotwright.adapters.report.axes import Scale, Tick, cost_ticks, duration_ticks, scale_over
from spotwright.adapters.report.labels import (
    Box,
    Label,
    Labelling,
    PlacedLabel,
    Point,
    text_width_px,
)
from spotwright.adapters.report.markup import Html, tag
from spotwright.domain.prediction import Interval
from spotwright.domain.units import format_duration, format_usd

_MARK_PX = 6.0  # from the middle of a mark to its edge
_CAP_PX = 5.0  # half the width of a cross bar's end
_TOP_PX, _BOTTOM_PX, _RIGHT_PX = 26.0, 46.0, 16.0  # margins of the chart
_SHARES = (0.03, 0.97, 0.2, 0.35, 0.5, 0.65, 0.8)  # of a line, where its label may stand
# The rivals' marks, as corners of a polygon; the chosen fleet alone is round.
_SHAPES = (
    ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    ((0, -1.1), (1.05, 0.8), (-1.05, 0.8)),
    ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    ((0, 1.1), (1.05, -0.8), (-1.05, -0.8)),
    ((-0.35, -1.1), (0.35, -1.1), (0.35, -0.35), (1.1, -0.35), (1.1, 0.35), (0.35, 0.35),
     (0.35, 1.1), (-0.35, 1.1), (-0.35, 0.35), (-1.1, 0.35), (-1.1, -0.35), (-0.35, -0.35)),
    ((1.1, 0), (-0.8, 1.05), (-0.8, -1.05)),
    ((0, -1.1), (1.05, -0.34), (0.65, 0.9), (-0.65, 0.9), (-1.05, -0.34)),
    ((-1.1, 0), (0.8, 1.05), (0.8, -1.05)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalMark:
    """Another fleet in the chart; hollow where it misses the goal."""

    name: str
    duration_s: float
    cost_usd: float
    is_hollow: bool
    shape: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTime:
    """What the chart of cost against time shows."""

    duration_s: Interval
    cost_usd: Interval
    frontier: tuple[tuple[float, float], ...]  # seconds and dollars, fastest first
    rivals: tuple[RivalMark, ...]
    deadline_s: float | None
    budget_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """How large a chart is drawn."""

    name: str
    width: float
    height: float
    font_px: float


WIDE = Picture(name="wide", width=800, height=430, font_px=13)
SMALL = Picture(name="small", width=340, height=370, font_px=12)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chart:
    data: CostTime
    picture: Picture
    frame: Box
    x: Scale
    y: Scale
    cost_ticks: Sequence[Tick]

    def at(self, seconds: float, usd: float) -> Point:
        return self.x.px(seconds), self.y.px(usd)

    @property
    def chosen(self) -> Point:
        return self.at(self.data.duration_s.mid, self.data.cost_usd.mid)

    @property
    def limits(self) -> dict[str, Box]:
        """Where the lines of the deadline and the budget lie."""
        frame, found = self.frame, {}
        if self.data.deadline_s is not None:
            x = self.x.px(self.data.deadline_s)
            found["deadline"] = Box(x, frame.top, x, frame.bottom)
        if self.data.budget_usd is not None:
            y = self.y.px(self.data.budget_usd)
            found["budget"] = Box(frame.left, y, frame.right, y)
        return found


def cost_time_chart(data: CostTime, picture: Picture) -> Html:
    """Return the chart at one size."""
    chart = _laid_out(data, picture)
    placed = _labels(chart)
    text = (
        "Expected cost against expected time: the chosen fleet with its 90 % intervals, "
        f"{len(data.frontier)} fleets of the frontier, {len(data.rivals)} rivals"
    )
    return tag(
        "svg", tag("title", text),
        *_axes(chart), *(_line(box, name) for name, box in chart.limits.items()),
        *_frontier(chart), *_leaders(placed), _crossbars(chart),
        *(_rival(chart, rival) for rival in data.rivals),
        tag("circle", cx=chart.chosen[0], cy=chart.chosen[1], r=_MARK_PX, class_="chosen"),
        *(_label(label, picture.font_px) for label in placed),
        class_=f"chart {picture.name}", viewBox=f"0 0 {picture.width:g} {picture.height:g}",
        role="img", aria_label=text, font_size=picture.font_px,
    )  # fmt: skip


def mark_icon(shape: int, *, is_hollow: bool) -> Html:
    """Return a rival's mark, for a table or a legend."""
    return _icon(_polygon(shape, (9, 9), is_hollow=is_hollow))


def plan_icon() -> Html:
    """Return the chosen fleet's mark, for a table or a legend."""
    bars = [tag("line", x1=0, x2=18, y1=9, y2=9), tag("line", x1=9, x2=9, y1=0, y2=18)]
    return _icon(
        tag("g", *bars, class_="crossbar"), tag("circle", cx=9, cy=9, r=5, class_="chosen")
    )


def frontier_icon() -> Html:
    """Return a piece of the frontier, for the legend."""
    return _icon(tag("polyline", points="0,3 9,3 9,14 18,14", class_="stairs"))


def _icon(*parts: Html) -> Html:
    return tag("svg", *parts, class_="icon", viewBox="0 0 18 18", aria_hidden="true")


def _laid_out(data: CostTime, picture: Picture) -> _Chart:
    bottom = picture.height - _BOTTOM_PX
    y = scale_over(_costs(data), start_px=bottom, end_px=_TOP_PX)
    ticks = cost_ticks(y, font_px=picture.font_px)
    left = max((text_width_px(text, picture.font_px) for _, text in ticks), default=0.0) + 12
    right = picture.width - _RIGHT_PX
    x = scale_over(_durations(data), start_px=left, end_px=right)
    frame = Box(left, _TOP_PX, right, bottom)
    return _Chart(data=data, picture=picture, frame=frame, x=x, y=y, cost_ticks=ticks)


def _durations(data: CostTime) -> list[float]:
    points = [*(s for s, _ in data.frontier), *(r.duration_s for r in data.rivals)]
    deadline = [] if data.deadline_s is None else [data.deadline_s]
    return [data.duration_s.low, data.duration_s.high, *points, *deadline]


def _costs(data: CostTime) -> list[float]:
    points = [*(usd for _, usd in data.frontier), *(r.cost_usd for r in data.rivals)]
    budget = [] if data.budget_usd is None else [data.budget_usd]
    return [data.cost_usd.low, data.cost_usd.high, *points, *budget]


def _axes(chart: _Chart) -> list[Html]:
    frame, font_px = chart.frame, chart.picture.font_px
    parts = [_cost_tick(chart, tick) for tick in chart.cost_ticks]
    parts += [_time_tick(chart, tick) for tick in duration_ticks(chart.x, font_px=font_px)]
    names = [
        f"{name}, log scale" if scale.is_log else name
        for name, scale in (("expected cost", chart.y), ("expected time to the goal", chart.x))
    ]
    corner = chart.picture.height - 6
    return [
        *parts,
        tag("line", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom, class_="axis"),
        tag("text", names[0], x=2, y=font_px, class_="axis-name"),
        tag("text", names[1], x=frame.right, y=corner, text_anchor="end", class_="axis-name"),
    ]


def _cost_tick(chart: _Chart, tick: Tick) -> Html:
    y, frame = chart.y.px(tick[0]), chart.frame
    line = tag("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid")
    text = tag(
        "text", tick[1],
        x=frame.left - 6, y=y + 0.35 * chart.picture.font_px, text_anchor="end", class_="tick",
    )  # fmt: skip
    return tag("g", line, text)


def _time_tick(chart: _Chart, tick: Tick) -> Html:
    x, frame, font_px = chart.x.px(tick[0]), chart.frame, chart.picture.font_px
    line = tag("line", x1=x, x2=x, y1=frame.top, y2=frame.bottom, class_="grid")
    half = text_width_px(tick[1], font_px) / 2
    inside = min(max(x, half), chart.picture.width - half)
    text = tag(
        "text", tick[1],
        x=inside, y=frame.bottom + 1.3 * font_px, text_anchor="middle", class_="tick",
    )  # fmt: skip
    return tag("g", line, text)


def _line(box: Box, class_: str | None = None) -> Html:
    return tag("line", x1=box.left, x2=box.right, y1=box.top, y2=box.bottom, class_=class_)


def _stairs(chart: _Chart) -> list[Point]:
    """Return the corners of the frontier: a price holds until the next cheaper fleet is ready."""
    corners: list[Point] = []
    for seconds, usd in chart.data.frontier:
        x, y = chart.at(seconds, usd)
        corners += [(x, corners[-1][1]), (x, y)] if corners else [(x, y)]
    return [*corners, (chart.frame.right, corners[-1][1])] if corners else []


def _frontier(chart: _Chart) -> list[Html]:
    if not chart.data.frontier:
        return []
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in _stairs(chart))
    dots = [
        tag("circle", _tooltip("frontier", s, usd), cx=chart.x.px(s), cy=chart.y.px(usd), r=3)
        for s, usd in chart.data.frontier
    ]
    return [tag("polyline", points=corners, class_="stairs"), tag("g", *dots, class_="steps")]


def _crossbars(chart: _Chart) -> Html:
    return tag("g", *(_line(box) for box in _crossbar_boxes(chart)), class_="crossbar")


def _crossbar_boxes(chart: _Chart) -> list[Box]:
    x, y = chart.chosen
    times, costs = chart.data.duration_s, chart.data.cost_usd
    ends_x = [chart.x.px(times.low), chart.x.px(times.high)]
    ends_y = [chart.y.px(costs.high), chart.y.px(costs.low)]
    return [
        Box(ends_x[0], y, ends_x[1], y),
        Box(x, ends_y[0], x, ends_y[1]),
        *(Box(end, y - _CAP_PX, end, y + _CAP_PX) for end in ends_x),
        *(Box(x - _CAP_PX, end, x + _CAP_PX, end) for end in ends_y),
    ]


def _rival(chart: _Chart, rival: RivalMark) -> Html:
    title = _tooltip(rival.name, rival.duration_s, rival.cost_usd)
    at = chart.at(rival.duration_s, rival.cost_usd)
    return _polygon(rival.shape, at, title, is_hollow=rival.is_hollow)


def _polygon(shape: int, at: Point, *content: Html, is_hollow: bool) -> Html:
    corners = _SHAPES[shape % len(_SHAPES)]
    points = " ".join(f"{at[0] + _MARK_PX * x:.1f},{at[1] + _MARK_PX * y:.1f}" for x, y in corners)
    return tag("polygon", *content, points=points, class_="rival hollow" if is_hollow else "rival")


def _tooltip(name: str, seconds: float, usd: float) -> Html:
    return tag("title", f"{name}: {format_usd(usd)}, {format_duration(seconds)}")


def _labels(chart: _Chart) -> list[PlacedLabel]:
    labelling = Labelling(
        inside=chart.frame,
        marks=_mark_boxes(chart),
        lines=[_grown(line, 1.5) for line in _line_boxes(chart)],
        font_px=chart.picture.font_px,
    )
    labelling.place(Label(text="this plan", anchors=(chart.chosen,), class_="of-chosen"))
    for label in _limit_labels(chart):
        labelling.place(label)
    for rival in chart.data.rivals:
        anchor = chart.at(rival.duration_s, rival.cost_usd)
        labelling.place(Label(text=rival.name, anchors=(anchor,), class_="of-rival"))
    return labelling.placed


def _limit_labels(chart: _Chart) -> list[Label]:
    """Return the labels of the deadline and the budget; they may stand anywhere on their line."""
    data, lines = chart.data, chart.limits
    texts = {}
    if data.deadline_s is not None:
        texts["deadline"] = f"deadline {format_duration(data.deadline_s)}"
    if data.budget_usd is not None:
        texts["budget"] = f"budget {format_usd(data.budget_usd)}"
    return [
        Label(text=text, anchors=_along(lines[name]), class_=f"of-{name}", with_leader=False)
        for name, text in texts.items()
    ]


def _along(line: Box) -> tuple[Point, ...]:
    width, height = line.right - line.left, line.bottom - line.top
    return tuple((line.left + share * width, line.top + share * height) for share in _SHARES)


def _mark_boxes(chart: _Chart) -> list[Box]:
    rivals = [chart.at(rival.duration_s, rival.cost_usd) for rival in chart.data.rivals]
    dots = [chart.at(seconds, usd) for seconds, usd in chart.data.frontier]
    return [
        *(_grown(Box(x, y, x, y), 1.2 * _MARK_PX) for x, y in (chart.chosen, *rivals)),
        *(_grown(Box(x, y, x, y), 3) for x, y in dots),
    ]


def _line_boxes(chart: _Chart) -> list[Box]:
    stairs = [
        Box(min(a, c), min(b, d), max(a, c), max(b, d))
        for (a, b), (c, d) in pairwise(_stairs(chart))
    ]
    return [*stairs, *chart.limits.values(), *_crossbar_boxes(chart)]


def _grown(box: Box, by: float) -> Box:
    return Box(box.left - by, box.top - by, box.right + by, box.bottom + by)


def _leaders(labels: Sequence[PlacedLabel]) -> list[Html]:
    ends = [label.leader for label in labels if label.leader is not None]
    return [tag("line", x1=a, y1=b, x2=c, y2=d, class_="leader") for (a, b), (c, d) in ends]


def _label(placed: PlacedLabel, font_px: float) -> Html:
    box, label = placed.box, placed.label
    x = {"start": box.left, "middle": (box.left + box.right) / 2, "end": box.right}[placed.align]
    whole = [tag("title", label.text)] if placed.text != label.text else []
    return tag(
        "text", *whole, placed.text,
        x=x, y=box.top + font_px, text_anchor=placed.align, class_=f"label {label.class_}",
    )  # fmt: skip
