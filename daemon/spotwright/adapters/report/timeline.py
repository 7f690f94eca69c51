"""One simulated run as a page of its own: nodes by pool, progress and the deadline, spending."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from spotwright.adapters.report.axes import Scale, Tick, count_ticks, duration_ticks
from spotwright.adapters.report.markup import Html, joined, tag
from spotwright.domain.offer import Market, Pool
from spotwright.simulator.outcome import Moment, Outcome

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 900.0, 190.0, 60.0, 16.0, 12.0, 26.0
_FONT_PX = 12.0
_COLOURS = ("#3366aa", "#dd8833", "#449955", "#aa4466", "#7755aa", "#558899", "#997733", "#666666")
_STYLE = (
    "body{font:14px sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222}"
    ".chart{width:100%;height:auto}text{font-family:sans-serif;fill:#444}h2{font-size:1.05em}"
    ".key{display:inline-block;margin-right:1.2em}.swatch{width:.9em;height:.9em;"
    "margin-right:.4em;vertical-align:-.1em}"
)


def timeline_page(outcome: Outcome, *, title: str) -> str:
    """Return a run that was recorded, as HTML that needs nothing else."""
    moments = outcome.moments
    pools = sorted({pool for m in moments for pool in (*m.training, *m.starting)})
    end_s = max(outcome.end_s, outcome.deadline_s or 0.0)
    across = Scale(low=0, high=end_s * 1.02, start_px=_LEFT, end_px=_WIDTH - _RIGHT, is_log=False)
    nodes = _Upwards("nodes over time", _most_nodes(moments), "")
    done = _Upwards("share of the goal over time", 1.0, "%")
    spent = _Upwards("$ spent over time", outcome.cost_usd, "$")
    body = [
        tag("h1", title),
        tag("p", _told(outcome)),
        tag("h2", "Nodes (pale while they start)"),
        _keys(pools),
        _chart(across, nodes, outcome, _bars(moments, pools)),
        tag("h2", "Share of the goal, beside the even pace to the deadline"),
        _chart(across, done, outcome, _line(moments, lambda m: m.done_fraction)),
        tag("h2", "Spent"),
        _chart(across, spent, outcome, _line(moments, lambda m: m.spent_usd)),
    ]
    head = tag(
        "head", tag("meta", charset="utf-8"), tag("title", title), tag("style", Html(_STYLE))
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", *body), lang="en")


def _told(outcome: Outcome) -> str:
    late = "late" if outcome.is_late else "in time"
    dashed = "" if outcome.deadline_s is None else " Dashed: the deadline."
    return f"${outcome.cost_usd:,.2f}, {outcome.losses} nodes taken away, {late}.{dashed}"


_Draw = Callable[[Scale, Scale], list[Html]]


class _Upwards(NamedTuple):
    """What a picture shows upwards."""

    name: str
    most: float
    unit: str


def _chart(across: Scale, shown: _Upwards, outcome: Outcome, draw: _Draw) -> Html:
    most = (shown.most or 1) * 1.05
    up = Scale(low=0, high=most, start_px=_HEIGHT - _BOTTOM, end_px=_TOP, is_log=False)
    parts = [*_ticks(across, up, shown), *draw(across, up)]
    if outcome.deadline_s is not None:
        x = across.px(outcome.deadline_s)
        base = (x, up.px(0))
        parts.append(_rule(base, (x, _TOP), colour="#bb3333", dash="6 4"))
        if shown.unit == "%":
            begin, goal = (across.px(0), up.px(0)), (x, up.px(1.0))
            parts.append(_rule(begin, goal, colour="#999999", dash="2 4"))
    return tag(
        "svg",
        tag("title", shown.name),
        *parts,
        class_="chart",
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        role="img",
        aria_label=shown.name,
        font_size=_FONT_PX,
    )


def _bars(moments: Sequence[Moment], pools: Sequence[Pool]) -> _Draw:
    def draw(across: Scale, up: Scale) -> list[Html]:
        found = []
        for moment, end_s in _spans(moments):
            span = (across.px(moment.time_s), across.px(end_s))
            low = 0
            for counts, opacity in ((moment.training, 0.9), (moment.starting, 0.35)):
                for pool in pools:
                    count = counts.get(pool, 0)
                    if count and span[1] - span[0] > 0.05:
                        height = (up.px(low), up.px(low + count))
                        colour = _colour(pools, pool)
                        found.append(_bar(span, height, colour=colour, opacity=opacity))
                    low += count
        return found

    return draw


def _spans(moments: Sequence[Moment]) -> Iterator[tuple[Moment, float]]:
    """Yield when the nodes changed, and until when they stayed: bars side by side show a seam."""
    last: Moment | None = None
    for moment, after in pairwise(moments):
        last = last or moment
        if (after.training, after.starting) != (last.training, last.starting):
            yield last, after.time_s
            last = None
    if last is not None:
        yield last, moments[-1].time_s


def _bar(
    across: tuple[float, float], up: tuple[float, float], *, colour: str, opacity: float
) -> Html:
    (begin, end), (base, top) = across, up
    return tag(
        "rect",
        x=begin,
        y=top,
        width=end - begin,
        height=base - top,
        fill=colour,
        fill_opacity=opacity,
    )


def _line(moments: Sequence[Moment], value: Callable[[Moment], float]) -> _Draw:
    def draw(across: Scale, up: Scale) -> list[Html]:
        points = " ".join(f"{across.px(m.time_s):.1f},{up.px(value(m)):.1f}" for m in moments)
        return [tag("polyline", points=points, fill="none", stroke=_COLOURS[0], stroke_width="2")]

    return draw


def _ticks(across: Scale, up: Scale, shown: _Upwards) -> list[Html]:
    base = up.px(0)
    left, right = across.px(0), _WIDTH - _RIGHT
    parts = [_rule((left, base), (right, base), colour="#888888")]
    for seconds, text in duration_ticks(across, font_px=_FONT_PX):
        parts.append(tag("text", text, x=across.px(seconds), y=base + 18, text_anchor="middle"))
    for value, text in _heights(up, shown):
        y = up.px(value)
        parts.append(_rule((left, y), (right, y), colour="#e3e3e3"))
        parts.append(tag("text", text, x=_LEFT - 8, y=y + 4, text_anchor="end"))
    return parts


def _heights(up: Scale, shown: _Upwards) -> Sequence[Tick]:
    if not shown.unit:  # there are no half nodes
        return [tick for tick in count_ticks(up, font_px=_FONT_PX) if tick[0]]
    return [(value, _figure(value, shown.unit)) for value in (shown.most / 2, shown.most) if value]


def _figure(value: float, unit: str) -> str:
    return f"{value:.0%}" if unit == "%" else f"${value:,.4g}"


def _rule(
    start: tuple[float, float], end: tuple[float, float], *, colour: str, dash: str | None = None
) -> Html:
    (x1, y1), (x2, y2) = start, end
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_dasharray=dash)


def _keys(pools: Sequence[Pool]) -> Html:
    keys = [tag("span", _swatch(_colour(pools, pool)), str(pool), class_="key") for pool in pools]
    return tag("p", joined(tuple(keys)))


def _swatch(colour: str) -> Html:
    square = tag("rect", width=10.0, height=10.0, fill=colour)
    return tag("svg", square, class_="swatch", viewBox="0 0 10 10", aria_hidden="true")


def _colour(pools: Sequence[Pool], pool: Pool) -> str:
    if pool.market is Market.ON_DEMAND:
        return "#222222"
    return _COLOURS[list(pools).index(pool) % len(_COLOURS)]


def _most_nodes(moments: Sequence[Moment]) -> float:
    return max((sum(m.training.values()) + sum(m.starting.values()) for m in moments), default=1)
