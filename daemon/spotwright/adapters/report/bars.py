"""Bars that stretch to the width of the page; their texts stand beside them, as HTML."""

from collections.abc import Sequence

from spotwright.adapters.report.axes import Scale
from spotwright.adapters.report.markup import Html, tag
from spotwright.domain.prediction import Interval
from spotwright.domain.units import format_duration

_BAR_WIDTH, _BAR_HEIGHT = 1000.0, 20.0


def step_bar(parts: Sequence[tuple[str, float]], *, longest_s: float, label: str) -> Html:
    """Return one bar whose parts, of style class and seconds, lie end to end."""
    segments, start = [], 0.0
    for name, seconds in parts:
        width = seconds / longest_s * _BAR_WIDTH
        segments.append(
            tag("rect", x=start, y=0, width=width, height=_BAR_HEIGHT, class_=f"part {name}")
        )
        start += width
    return _bar(segments, label)


def range_bar(duration_s: Interval, *, p95_s: float, deadline_s: float | None) -> Html:
    """Return when the run ends: interval, middle and 95 % of runs, against the deadline."""
    ends = (duration_s.high, p95_s, deadline_s or 0.0)
    scale = Scale(low=0, high=1.04 * max(ends), start_px=0, end_px=_BAR_WIDTH, is_log=False)
    low, high = scale.px(duration_s.low), scale.px(duration_s.high)
    parts = [tag("rect", x=0, y=0, width=_BAR_WIDTH, height=_BAR_HEIGHT, class_="track")]
    if deadline_s is not None:
        x = scale.px(deadline_s)
        late = tag("rect", x=x, y=0, width=_BAR_WIDTH - x, height=_BAR_HEIGHT, class_="late")
        parts += [late, _upright(x, 0, "deadline")]
    parts.append(
        tag("rect", x=low, y=5, width=max(high - low, 2), height=_BAR_HEIGHT - 10, class_="range")
    )
    parts += [_upright(scale.px(duration_s.mid), 2, "middle"), _upright(scale.px(p95_s), 2, "p95")]
    against = "" if deadline_s is None else f", the deadline is {format_duration(deadline_s)}"
    told = f"{format_duration(duration_s.low)} to {format_duration(duration_s.high)}"
    return _bar(parts, f"90 % interval of the duration: {told}{against}")


def _bar(parts: Sequence[Html], label: str) -> Html:
    return tag(
        "svg", tag("title", label), *parts,
        class_="bar", viewBox=f"0 0 {_BAR_WIDTH:g} {_BAR_HEIGHT:g}", preserveAspectRatio="none",
        role="img", aria_label=label,
    )  # fmt: skip


def _upright(x: float, inset: float, class_: str) -> Html:
    return tag("line", x1=x, x2=x, y1=inset, y2=_BAR_HEIGHT - inset, class_=class_)
