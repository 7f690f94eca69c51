"""The picture of docs/planner-benchmark.md."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.planner.growth import NODES_AT, POOLS_AT, Point

_STYLES = (("#1f5fa8", "o-"), ("#d1495b", "s--"), ("#7a9e4e", "^-."), ("#e0a030", "d:"))
_SECONDS = (0.01, 0.1, 1, 10)
_DPI = 100


def draw_growth(folder: Path, points: Sequence[Point]) -> Path:
    """Draw seconds against pools and against nodes, and return where."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained", sharey=True)
    by_pools = [(p.job, p.pools, p) for p in points if p.nodes == NODES_AT]
    by_nodes = [(p.job, p.nodes, p) for p in points if p.pools == POOLS_AT]
    _draw(axes[0], by_pools, f"at most {NODES_AT} nodes", "pools")
    _draw(axes[1], by_nodes, f"{POOLS_AT:,} pools", "most nodes")
    axes[0].set_ylabel("seconds to a proved gap of 0.1 % (x: stopped)", fontsize=9)
    axes[0].set_yticks(_SECONDS, labels=[f"{tick:g}" for tick in _SECONDS])
    axes[0].legend(fontsize=8, frameon=False)
    path = folder / "planner-growth.png"
    figure.savefig(path, dpi=_DPI, pil_kwargs={"optimize": True})
    plt.close(figure)
    return path


def _draw(axis: Axes, points: Sequence[tuple[str, int, Point]], title: str, x_label: str) -> None:
    for (colour, line), job in zip(
        _STYLES, dict.fromkeys(job for job, _, _ in points), strict=True
    ):
        mine = sorted((size, p.run.wall_s, p.run.closed) for name, size, p in points if name == job)
        axis.plot(
            [x for x, _, _ in mine],
            [y for _, y, _ in mine],
            line,
            color=colour,
            lw=1.6,
            ms=5,
            label=job,
        )
        still_open = [(x, y) for x, y, done in mine if not done]
        if still_open:
            axis.plot(*zip(*still_open, strict=True), "x", color="#202020", ms=9)
    axis.set_xscale("log")
    axis.set_yscale("log")
    ticks = sorted({size for _, size, _ in points})
    axis.set_xticks(ticks, labels=[f"{tick:,}" for tick in ticks])
    axis.minorticks_off()
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(x_label, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(color="#ececec", lw=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
