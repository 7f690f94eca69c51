"""The pictures of docs/model.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.accuracy.allreduce import AllreduceResult
from benchmarks.accuracy.async_ps import AsyncResult
from benchmarks.accuracy.table import Row

_OURS, _MEASURED, _OUTSIDE = "#1f5fa8", "#202020", "#d1495b"
_RIVAL_STYLES = {
    "additive": ("#b8b8b8", ":"),
    "hard cap": ("#e0a030", "--"),
    "exact MVA": ("#7a9e4e", "-."),
    "half-residual MVA": ("#a05fa8", "--"),
}
_POLLUX = "#e0a030"
_DPI = 100


def draw_all(
    folder: Path,
    *,
    one_server: AsyncResult,
    left_out: Mapping[str, AllreduceResult],
    far: AllreduceResult,
    rows: Sequence[Row],
) -> list[Path]:
    """Write every picture and return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    pictures = {
        "accuracy-async-ps.png": _async_ps(one_server),
        "accuracy-allreduce-left-out.png": _left_out(left_out),
        "accuracy-allreduce-extrapolation.png": _extrapolation(far),
        "accuracy-errors.png": _errors(rows),
    }
    for name, figure in pictures.items():
        figure.savefig(folder / name, dpi=_DPI, pil_kwargs={"optimize": True})
        plt.close(figure)
    return [folder / name for name in pictures]


def _async_ps(result: AsyncResult) -> Figure:
    kinds = sorted({(c.gpu, c.model) for c in result.clusters})
    figure, axes = plt.subplots(2, 2, figsize=(8.4, 6.2), layout="constrained")
    for axis, (gpu, model) in zip(axes.flat, kinds, strict=True):
        mine = [i for i, c in enumerate(result.clusters) if (c.gpu, c.model) == (gpu, model)]
        workers = [result.clusters[i].workers for i in mine]
        measured = [result.clusters[i].steps_per_s for i in mine]
        for rule, (colour, line) in _RIVAL_STYLES.items():
            axis.plot(workers, result.speeds[rule][mine], line, color=colour, lw=1.3, label=rule)
        axis.plot(workers, result.speeds["ours"][mine], color=_OURS, lw=2.2, label="Spotwright")
        axis.plot(workers, measured, "o", color=_MEASURED, ms=5, label="measured")
        axis.set_ylim(0, 1.35 * max(measured))
        _finish(axis, f"{model} on {gpu}", "workers", "cluster steps/s")
    axes[0, 0].legend(fontsize=8, frameon=False)
    return figure


def _left_out(results: Mapping[str, AllreduceResult]) -> Figure:
    figure, axes = plt.subplots(1, len(results), figsize=(11.5, 4.1), layout="constrained")
    for axis, (model, result) in zip(axes, results.items(), strict=True):
        order = np.argsort(result.steps["ours"])
        predicted, measured = result.steps["ours"][order], result.measured[order]
        low, high = result.low[order], result.high[order]
        inside = (low <= measured) & (measured <= high)
        axis.vlines(predicted, low, high, color="#c6d8ee", lw=1.2, label="90 % interval")
        axis.plot(predicted[inside], measured[inside], ".", color=_OURS, ms=2.5, label="inside")
        axis.plot(predicted[~inside], measured[~inside], ".", color=_OUTSIDE, ms=2.5,
                  label="outside")  # fmt: skip
        axis.plot(predicted, predicted, color=_MEASURED, lw=0.8)
        axis.set_xscale("log")
        axis.set_yscale("log")
        title = f"{model}: mean error {result.errors('ours').mean():.1f} %"
        _finish(axis, title, "predicted step, s", "measured step, s")
        _plain_log_labels(axis, result)
    axes[0].legend(fontsize=8, frameon=False, loc="upper left", markerscale=3)
    return figure


def _plain_log_labels(axis: Axes, result: AllreduceResult) -> None:
    """Label a narrow logarithmic axis with a few round numbers."""
    low, high = result.measured.min(), result.measured.max()
    ticks = [m * 10.0**e for e in range(-3, 2) for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    for side in (axis.xaxis, axis.yaxis):
        side.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        side.set_minor_formatter("")


def _extrapolation(result: AllreduceResult) -> Figure:
    figure, (scatter, bars) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    measured, predicted = result.measured, result.steps["ours"]
    nodes = np.array([run.nodes for run in result.runs])
    order = np.argsort(predicted)
    scatter.vlines(predicted[order], result.low[order], result.high[order], color="#c6d8ee",
                   lw=1.5, label="90 % interval")  # fmt: skip
    for count, colour in zip((6, 8, 12, 16), ("#9ecae1", "#4292c6", "#2171b5", "#08306b"),
                             strict=True):  # fmt: skip
        mine = nodes == count
        scatter.plot(predicted[mine], measured[mine], ".", color=colour, ms=5,
                     label=f"{count} nodes")  # fmt: skip
    scatter.plot(predicted[order], predicted[order], color=_MEASURED, lw=0.8)
    scatter.set_xscale("log")
    scatter.set_yscale("log")
    title = "cifar10 on 6-16 nodes, fitted on 1-4"
    _finish(scatter, title, "predicted step, s", "measured step, s")
    _plain_log_labels(scatter, result)
    scatter.legend(fontsize=8, frameon=False)
    _signed_errors(bars, result, nodes)
    return figure


def _signed_errors(axis: Axes, result: AllreduceResult, nodes: np.ndarray) -> None:
    rules = {"ours": ("Spotwright", _OURS), "Pollux law, refitted": ("Pollux law", _POLLUX)}
    counts = np.unique(nodes)
    for shift, (rule, (label, colour)) in zip((-0.18, 0.18), rules.items(), strict=True):
        signed = 100 * (result.steps[rule] / result.measured - 1)
        axis.boxplot(
            [signed[nodes == count] for count in counts],
            positions=np.arange(len(counts)) + shift,
            widths=0.3,
            patch_artist=True,
            boxprops={"facecolor": colour, "alpha": 0.75},
            medianprops={"color": _MEASURED},
            flierprops={"marker": ".", "markersize": 2.5, "markeredgecolor": colour},
            label=label,
        )
    axis.axhline(0, color=_MEASURED, lw=0.8)
    axis.set_xticks(range(len(counts)), labels=[str(count) for count in counts])
    _finish(axis, "error by cluster size", "nodes", "predicted / measured - 1, %")
    axis.legend(fontsize=8, frameon=False)


def _errors(rows: Sequence[Row]) -> Figure:
    """Draw ours above the best rival; the target crosses only our bar."""
    figure, axis = plt.subplots(figsize=(8.6, 0.4 * len(rows) + 1.0), layout="constrained")
    for place, row in enumerate(reversed(rows)):
        axis.barh(place + 0.2, row.ours, height=0.38, color=_OURS)
        axis.text(0.15, place + 0.19, f"{row.ours:.1f}", va="center", fontsize=7.5, color="white")
        axis.vlines(row.target, place + 0.01, place + 0.39, color=_OUTSIDE, lw=2.5)
        best = min(row.rivals, key=lambda name: row.rivals[name], default=None)
        if best is not None:
            axis.barh(place - 0.2, row.rivals[best], height=0.38, color="#dcdcdc")
            text = f"{row.rivals[best]:.1f}  {best}"
            axis.text(0.15, place - 0.21, text, va="center", fontsize=7.5, color="#404040")
    labels = [row.what.removesuffix(", mean") for row in reversed(rows)]
    axis.set_yticks(range(len(rows)), labels=labels)
    axis.set_ylim(-0.6, len(rows) - 0.4)
    title = "blue: Spotwright, grey: best rival, red: target"
    _finish(axis, title, "mean error, %", "")
    axis.grid(axis="y", visible=False)
    return figure


def _finish(axis: Axes, title: str, x_label: str, y_label: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(x_label, fontsize=9)
    axis.set_ylabel(y_label, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(color="#ececec", lw=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
