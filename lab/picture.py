"""Predicted against measured speed, as a picture."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from lab.speed import Compared
from spotwright.domain.workload import Strategy

_LOOKS = {
    Strategy.ASP_PS: ("o", "#1f6fb4"),
    Strategy.BSP_PS: ("s", "#d1701a"),
    Strategy.ALLREDUCE: ("^", "#3b8a3e"),
}


def draw_comparison(path: Path, rows: Sequence[Compared]) -> None:
    """Draw each scenario with its 90 % interval, and its error below."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes, errors = figure.subplots(2, 1, height_ratios=(3, 2))
    measured_ms = [row.measured_s * 1e3 for row in rows]
    ends = (min(measured_ms) / 1.3, max(measured_ms) * 1.3)
    axes.plot(ends, ends, color="#999999", linewidth=1)
    errors.axhline(0, color="#999999", linewidth=1)
    for strategy, (marker, colour) in _LOOKS.items():
        mine = [(place, row) for place, row in enumerate(rows) if row.scenario.strategy is strategy]
        if not mine:
            continue
        intervals = [row.predicted.iteration_s for _, row in mine]
        axes.errorbar(
            [row.measured_s * 1e3 for _, row in mine],
            [interval.mid * 1e3 for interval in intervals],
            yerr=(
                [(interval.mid - interval.low) * 1e3 for interval in intervals],
                [(interval.high - interval.mid) * 1e3 for interval in intervals],
            ),
            fmt=marker,
            color=colour,
            capsize=2,
            label=str(strategy),
        )
        places = [place for place, _ in mine]
        errors.bar(places, [row.error_fraction * 100 for _, row in mine], color=colour)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="measured ms between updates",
        ylabel="predicted, with 90 % interval",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:g}")
    axes.legend(frameon=False)
    names = [row.scenario.name for row in rows]
    errors.set_xticks(range(len(rows)), names, rotation=90, fontsize=7)
    errors.set_ylabel("error, %")
    figure.savefig(path, dpi=110)
