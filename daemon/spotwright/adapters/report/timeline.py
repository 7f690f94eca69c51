"""One simulated run as a page of its own: nodes by pool, progress and the deadline, spending."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from spotwright.adapters.report.axes import Scale, duration_ticks
from spotwright.adapters.report.markup import Html, joined, tag
from spotwright.domain.offer import Market, Pool
from spotwright.simulator.outcome import Moment, Outcome

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 900.0, 190.0, 60.0, 16.0, 12.0, 26.0
_FONT_PX = 12.0
_COLOURS = ("#3366aa", "#dd8833", "#449955", "#aa4466", "#7755aa", "#558899", "#997733", "#666666")
_STYLE = (
    "body{font:14px sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222}"
    "svg{width:100%;height:auto}text{font:12px sans-serif;fill:#444}h2{font-size:1.05em}"
    ".key{display:inline-block;margin-right:1.2em}.key i{display:inline-block;width:.9em;"
    "height:.9em;margin-right:.4em}"
)


def timeline_page(outcome: Outcome, *, title: str) -> str:
    """Return a run that was recorded, as HTML that needs nothing else."""
    moments = outcome.moments
    pools = sorted({pool for m in moments for pool in (*m.training, *m.starting)})
    end_s = max(outcome.end_s, outcome.deadline_s or 0.0)
    across = Scale(low=0, high=end_s * 1.02, start_px=_LEFT, end_px=_WIDTH - _RIGHT, is_log=False)
    late = "late" if outcome.is_late else "in time"
    body = [
        tag("h1", title),
        tag("p", f"${outcome.cost_usd:,.2f}, {outcome.losses} nodes taken away, {late}."),
        tag("h2", "Nodes (pale while they start)"),
        _keys(pools),
        _chart(across, _bars(moments, pools), outcome, most=_most_nodes(moments), unit=""),
        tag("h2", "Share of the goal, beside the even pace to the deadline"),
        _chart(across, _line(moments, lambda m: m.done_fraction), outcome, most=1.0, unit="%"),
        tag("h2", "Spent"),
        _chart(
            across, _line(moments, lambda m: m.spent_usd), outcome, most=outcome.cost_usd, unit="$"
        ),
    ]
    head = tag(
        "head", tag("meta", charset="utf-8"), tag("title", title), tag("style", Html(_STYLE))
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", *body), lang="en")


_Draw = Callable[[Scale, Scale], list[Html]]


def _chart(across: Scale, draw: _Draw, outcome: Outcome, *, most: float, unit: str) -> Html:
    up = Scale(
        low=0, high=(most or 1) * 1.05, start_px=_HEIGHT - _BOTTOM, end_px=_TOP, is_log=False
    )
    parts = [*_ticks(across, up, most, unit), *draw(across, up)]
    if outcome.deadline_s is not None:
        x = across.px(outcome.deadline_s)
        base = (x, up.px(0))
        parts.append(_rule(base, (x, _TOP), colour="#bb3333", dash="6 4"))
        if unit == "%":
            begin, goal = (across.px(0), up.px(0)), (x, up.px(1.0))
            parts.append(_rule(begin, goal, colour="#999999", dash="2 4"))
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img")


def _bars(moments: Sequence[Moment], pools: Sequence[Pool]) -> _Draw:
    def draw(across: Scale, up: Scale) -> list[Html]:
        found = []
        for moment, after in pairwise(moments):
            span = (across.px(moment.time_s), across.px(after.time_s))
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


def _ticks(across: Scale, up: Scale, most: float, unit: str) -> list[Html]:
    base = up.px(0)
    left, right = across.px(0), _WIDTH - _RIGHT
    parts = [_rule((left, base), (right, base), colour="#888888")]
    for seconds, text in duration_ticks(across, font_px=_FONT_PX):
        parts.append(tag("text", text, x=across.px(seconds), y=base + 18, text_anchor="middle"))
    for value in (most / 2, most):
        y = up.px(value)
        parts.append(_rule((left, y), (right, y), colour="#e3e3e3"))
        parts.append(tag("text", _figure(value, unit), x=_LEFT - 8, y=y + 4, text_anchor="end"))
    return parts


def _figure(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value:.0%}"
    return f"${value:,.4g}" if unit == "$" else f"{value:g}"


def _rule(
    start: tuple[float, float], end: tuple[float, float], *, colour: str, dash: str | None = None
) -> Html:
    (x1, y1), (x2, y2) = start, end
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_dasharray=dash)


def _keys(pools: Sequence[Pool]) -> Html:
    keys = [
        tag("span", tag("i", style=f"background:{_colour(pools, pool)}"), str(pool), class_="key")
        for pool in pools
    ]
    return tag("p", joined(tuple(keys)))


def _colour(pools: Sequence[Pool], pool: Pool) -> str:
    if pool.market is Market.ON_DEMAND:
        return "#222222"
    return _COLOURS[list(pools).index(pool) % len(_COLOURS)]


def _most_nodes(moments: Sequence[Moment]) -> float:
    return max((sum(m.training.values()) + sum(m.starting.values()) for m in moments), default=1)
