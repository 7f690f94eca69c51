"""One simulated run as a PNG: nodes by pool, progress against the deadline, spending."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.offer import Market
from spotwright.simulator.outcome import Moment, Outcome


def draw_timeline(path: Path, outcome: Outcome, *, title: str) -> None:
    """Draw a run that was recorded.

    Raises:
        OutsideWorldError: the file cannot be written.
    """
    try:
        timeline_figure(outcome, title=title).savefig(path, format="png")
    except OSError as error:
        raise OutsideWorldError(f"cannot write {path}: {error.strerror}") from error


def timeline_figure(outcome: Outcome, *, title: str) -> Figure:
    """Return the picture of a run, of three parts above each other."""
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    nodes, progress, spending = figure.subplots(3, 1, sharex=True)
    hours = [moment.time_s / 3600 for moment in outcome.moments]
    nodes.set_title(title)
    _draw_nodes(nodes, hours, outcome.moments)
    progress.plot(hours, [100 * moment.done_fraction for moment in outcome.moments])
    progress.set_ylabel("% of the goal")
    spending.plot(hours, [moment.spent_usd for moment in outcome.moments])
    spending.set_ylabel("$ spent")
    spending.set_xlabel("hours since training began (dashed: deadline)")
    if outcome.deadline_s is not None:
        for axes in (nodes, progress, spending):
            axes.axvline(outcome.deadline_s / 3600, linestyle="--", color="0.4")
        progress.plot([0, outcome.deadline_s / 3600], [0, 100], linestyle=":", color="0.6")
    return figure


def _draw_nodes(axes: Axes, hours: Sequence[float], moments: Sequence[Moment]) -> None:
    pools = sorted({pool for m in moments for pool in (*m.training, *m.starting)})
    counts = [
        [m.training.get(pool, 0) + m.starting.get(pool, 0) for m in moments] for pool in pools
    ]
    if pools:
        axes.stackplot(hours, *counts, step="post", labels=[str(pool) for pool in pools])
        for patch, pool in zip(axes.collections, pools, strict=True):
            patch.set_hatch("//" if pool.market is Market.ON_DEMAND else "")
        axes.legend(fontsize="small", loc="upper right")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("nodes (hatched: on-demand)")
