"""One simulated run as a PNG: nodes by pool, progress against the deadline, spending."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.offer import Market
from spotwright.simulator.outcome import Outcome


def draw_timeline(path: Path, outcome: Outcome, *, title: str) -> None:
    """Draw a run that was recorded.

    Raises:
        OutsideWorldError: the file cannot be written.
    """
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    nodes, progress, spending = figure.subplots(3, 1, sharex=True)
    hours = [moment.time_s / 3600 for moment in outcome.moments]
    pools = sorted({pool for m in outcome.moments for pool in (*m.training, *m.starting)})
    counts = [
        [m.training.get(pool, 0) + m.starting.get(pool, 0) for m in outcome.moments]
        for pool in pools
    ]
    if pools:
        nodes.stackplot(hours, *counts, step="post", labels=[str(pool) for pool in pools])
        for patch, pool in zip(nodes.collections, pools, strict=True):
            patch.set_hatch("//" if pool.market is Market.ON_DEMAND else "")
        nodes.legend(fontsize="small", loc="upper right")
    nodes.set_ylabel("nodes (hatched: on-demand)")
    nodes.set_title(title)
    progress.plot(hours, [100 * moment.done_fraction for moment in outcome.moments])
    if outcome.deadline_s is not None:
        for axes in (nodes, progress, spending):
            axes.axvline(outcome.deadline_s / 3600, linestyle="--", color="0.4")
        progress.plot([0, outcome.deadline_s / 3600], [0, 100], linestyle=":", color="0.6")
    progress.set_ylabel("% of the goal")
    spending.plot(hours, [moment.spent_usd for moment in outcome.moments])
    spending.set_ylabel("$ spent")
    spending.set_xlabel("hours since training began (dashed: deadline)")
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise OutsideWorldError(f"cannot write {path}: {error.strerror}") from error
