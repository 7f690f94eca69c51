"""Whether the 90 % interval holds 90 % of the rows it has not seen, and how wide it is.

The rival has one width for all rows: quantiles of the logarithmic errors of the other folds.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.allreduce import AllreduceResult
from benchmarks.accuracy.table import Row

Floats = NDArray[np.float64]

ASKED, ALLOWED = 90.0, 5.0  # percent of the rows, and how far off it may be


def interval_rows(results: Mapping[str, AllreduceResult], far: AllreduceResult) -> list[Row]:
    """Return how far coverage is from 90 %, for left-out placements and beyond the fitted range."""
    rows = [
        _row(f"{model}, placements left out", result, _constant_bounds(result))
        for model, result in results.items()
    ]
    near = results["cifar10"]
    errors = _log_errors(near)
    low, high = np.quantile(errors, [0.05, 0.95])
    bounds = np.full(len(far.runs), low), np.full(len(far.runs), high)
    rows.append(_row("cifar10, 6-16 nodes from <= 4", far, bounds))
    return rows


def _row(what: str, result: AllreduceResult, constant: tuple[Floats, Floats]) -> Row:
    inside = (result.low <= result.measured) & (result.measured <= result.high)
    width = (result.high - result.low) / result.steps["ours"]
    errors = _log_errors(result)
    flat = (constant[0] <= errors) & (errors <= constant[1])
    flat_width = np.exp(constant[1]) - np.exp(constant[0])
    return Row(
        what=f"{what}, coverage off {ASKED:g} %",
        unit="pt",
        ours=abs(_percent(inside) - ASKED),
        target=ALLOWED,
        rivals={"constant width": abs(_percent(flat) - ASKED)},
        note=f"covers {_percent(inside):.1f} %, median width {100 * np.median(width):.1f} %"
        f"; constant: covers {_percent(flat):.1f} %, width {100 * np.median(flat_width):.1f} %"
        f"{_by_width(width, inside, flat)}",
    )


def _by_width(width: Floats, inside: NDArray[np.bool_], flat: NDArray[np.bool_]) -> str:
    """Return the coverage from the surest third of the rows to the least sure one."""
    third = np.searchsorted(np.quantile(width, [1 / 3, 2 / 3]), width)
    ours, constant = (
        " / ".join(f"{_percent(flags[third == i]):.0f}" for i in range(3))
        for flags in (inside, flat)
    )
    return f"; surest to least sure third: {ours} %, constant {constant} %"


def _constant_bounds(result: AllreduceResult) -> tuple[Floats, Floats]:
    errors = _log_errors(result)
    low, high = np.empty_like(errors), np.empty_like(errors)
    for fold in np.unique(result.folds):
        mine = result.folds == fold
        low[mine], high[mine] = np.quantile(errors[~mine], [0.05, 0.95])
    return low, high


def _log_errors(result: AllreduceResult) -> Floats:
    return np.log(result.measured / result.steps["ours"])


def _percent(flags: NDArray[np.bool_]) -> float:
    return 100 * float(flags.mean())
