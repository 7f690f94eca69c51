"""Scales of a chart, and ticks whose labels have room."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spotwright.adapters.report.labels import text_width_px

LOG_SPREAD = 20.0  # a larger ratio of the largest to the smallest value asks for a log axis
_PADDING = 0.07  # of the range, at each end
_FROM_ZERO = 0.35  # a linear axis whose smallest value is below this share starts at zero
_GAP_PX = 10.0
_S, _MIN, _H, _D = 1.0, 60.0, 3600.0, 86400.0
_UNITS = ((_D, "d"), (_H, "h"), (_MIN, "min"), (_S, "s"))
_FEWEST = {"d": 4, "h": 2, "min": 2, "s": 0}  # fewer than these are told in the smaller unit
_FINE_LOG_S = [
    *(n * unit for unit in (_S, _MIN) for n in (1, 2, 5, 10, 30)),
    *(n * _H for n in (1, 2, 5, 12)),
    *(n * 10**k * _D for k in range(4) for n in (1, 2, 5)),
]
_COARSE_LOG_S = [_S, 10 * _S, _MIN, 10 * _MIN, _H, 6 * _H, *(10**k * _D for k in range(5))]

Tick = tuple[float, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Values to pixels."""

    low: float
    high: float
    start_px: float
    end_px: float
    is_log: bool

    def px(self, value: float) -> float:
        """Return where a value lies."""
        low, high, value = (self._linear(v) for v in (self.low, self.high, value))
        return self.start_px + (value - low) / (high - low) * (self.end_px - self.start_px)

    def _linear(self, value: float) -> float:
        return math.log(value) if self.is_log else value


def scale_over(values: Iterable[float], *, start_px: float, end_px: float) -> Scale:
    """Return a scale that shows all values with some air at both ends."""
    known = sorted(values)
    low, high = known[0], known[-1]
    is_log = low > 0 and high / low > LOG_SPREAD
    if is_log:
        air = (high / low) ** _PADDING
        low, high = low / air, high * air
    else:
        air = _PADDING * (high - low) or 0.2 * high or 1.0
        low, high = (0.0 if low < _FROM_ZERO * high else low - air), high + air
    return Scale(low=low, high=high, start_px=start_px, end_px=end_px, is_log=is_log)


def duration_ticks(scale: Scale, *, font_px: float) -> Sequence[Tick]:
    """Return times for a horizontal axis."""

    def room(ticks: Sequence[Tick]) -> bool:
        ends = [(scale.px(v), text_width_px(text, font_px) / 2) for v, text in ticks]
        pairs = pairwise(ends)
        return all(x1 - x0 >= half0 + half1 + _GAP_PX for (x0, half0), (x1, half1) in pairs)

    unit = next(u for u in _UNITS if scale.high >= _FEWEST[u[1]] * u[0])
    tiers = _log_durations() if scale.is_log else _linear_steps(scale, unit[0])
    text = _duration if scale.is_log else (lambda v: f"{v / unit[0]:.6g} {unit[1]}")
    return _first_fitting(scale, tiers, text, room)


def cost_ticks(scale: Scale, *, font_px: float) -> Sequence[Tick]:
    """Return amounts for a vertical axis."""
    tiers = _log_decades(scale) if scale.is_log else _linear_steps(scale, 1.0)
    return _first_fitting(scale, tiers, _usd, _upright_room(scale, font_px))


def count_ticks(scale: Scale, *, font_px: float) -> Sequence[Tick]:
    """Return whole numbers for a vertical axis."""
    steps = _linear_steps(scale, 1.0)
    tiers = (tier for tier in steps if all(value.is_integer() for value in tier))
    return _first_fitting(scale, tiers, lambda v: f"{v:,.0f}", _upright_room(scale, font_px))


def share_ticks(scale: Scale, *, font_px: float) -> Sequence[Tick]:
    """Return shares of a whole for a vertical axis."""
    tiers = _linear_steps(scale, 0.01)
    return _first_fitting(scale, tiers, lambda v: f"{v * 100:.4g} %", _upright_room(scale, font_px))


def _upright_room(scale: Scale, font_px: float) -> Callable[[Sequence[Tick]], bool]:
    """Return what tells whether ticks of a vertical axis are apart."""

    def room(ticks: Sequence[Tick]) -> bool:
        ys = [scale.px(v) for v, _ in ticks]
        return all(abs(y1 - y0) >= 2.2 * font_px for y0, y1 in pairwise(ys))

    return room


def _first_fitting(
    scale: Scale,
    tiers: Iterable[Sequence[float]],
    text: Callable[[float], str],
    room: Callable[[Sequence[Tick]], bool],
) -> Sequence[Tick]:
    """Return the finest ticks whose labels differ and do not touch."""
    ticks: list[Tick] = []
    for tier in tiers:
        ticks = [(v, text(v)) for v in tier if scale.low <= v <= scale.high]
        if room(ticks) and len({label for _, label in ticks}) == len(ticks):
            return ticks
    return ticks[:1]


def _linear_steps(scale: Scale, unit: float) -> Iterator[Sequence[float]]:
    """Yield round steps, from about a dozen ticks to two."""
    span = (scale.high - scale.low) / unit
    exponent = math.floor(math.log10(span / 12))
    for step in (n * 10.0**k for k in range(exponent, exponent + 4) for n in (1, 2, 5)):
        if span / 12 <= step <= span:
            first, last = (math.floor(v / unit / step) for v in (scale.low, scale.high))
            yield [i * step * unit for i in range(first, last + 1)]


def _log_decades(scale: Scale) -> Iterator[Sequence[float]]:
    decades = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        yield [n * 10.0**k for k in decades for n in digits]
    yield [10.0**k for k in decades if k % 2 == 0]


def _log_durations() -> Iterator[Sequence[float]]:
    yield _FINE_LOG_S
    yield _COARSE_LOG_S
    yield [_S, _MIN, _H, _D, 100 * _D]


def _duration(seconds: float) -> str:
    unit, name = next(u for u in _UNITS if seconds >= u[0] or u[0] == _S)
    return f"{seconds / unit:,.6g} {name}"


def _usd(amount: float) -> str:
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}".removesuffix(".00")
    whole, decimals = f"{amount:.10f}".rstrip("0").split(".")
    return f"${whole}.{decimals:0<2}"
