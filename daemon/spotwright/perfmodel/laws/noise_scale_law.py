"""Steps to one loss by batch size.

    steps = minimum_steps * (1 + noise_scale_samples / batch)

Linear in minimum_steps and minimum_steps * noise_scale_samples, both non-negative, fitted by least
squared relative error. The uncertainty is that of the residuals; up to three batch sizes leave too
few of them and it is at least the 10 % assumed by default.

The steps of a run come from its log: the first at which a running median of five losses, two on
either side, reaches the goal. Single spikes, up or down, do not count.
"""

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import CannotFitError
from spotwright.domain.workload import NoiseScaleLaw
from spotwright.perfmodel.laws.loss_rows import LossRow
from spotwright.perfmodel.laws.positive_figures import check_positive
from spotwright.perfmodel.laws.relative_fit import fit_squares

_LAW = "noise-scale"
_DEFAULT_SD = 0.10
_ENOUGH_SIZES = 4
_HALF_WINDOW = 2
_LEAST_NOISE_SCALE = 1e-9  # samples: steps do not depend on the batch


def fit_noise_scale(runs: Sequence[tuple[float, float]], *, loss: float) -> NoiseScaleLaw:
    """Fit (global batch, steps until the loss) of several runs.

    Raises:
        CannotFitError: there are fewer than two batch sizes, a figure is not positive, or steps
            fall as fast as the batch grows, so that no minimum shows.
    """
    table = _table(runs)
    sizes = len(np.unique(table[:, 0]))
    design = np.column_stack([np.ones(len(table)), 1 / table[:, 0]])
    minimum, product = fit_squares(design, table[:, 1], np.zeros(len(table)))
    if minimum * 1e6 < table[:, 1].min():
        raise CannotFitError(
            _LAW,
            "steps fall as fast as the batch grows, so the least number does not show",
            way_out="add a run with a larger batch",
        )
    errors = (design @ [minimum, product]) / table[:, 1] - 1
    sd = math.sqrt(float(errors @ errors) / max(len(table) - 2, 1))
    return NoiseScaleLaw(
        minimum_steps=float(minimum),
        noise_scale_samples=max(float(product / minimum), _LEAST_NOISE_SCALE),
        loss=loss,
        relative_sd=sd if sizes >= _ENOUGH_SIZES else max(sd, _DEFAULT_SD),
    )


def _table(runs: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    for batch, steps in runs:
        check_positive(_LAW, batch=batch, steps=steps)
    table = np.array(sorted(runs), dtype=np.float64).reshape(-1, 2)
    sizes = len(np.unique(table[:, 0]))
    if sizes < 2:
        raise CannotFitError(
            _LAW, f"{sizes} batch sizes do not show it", way_out="run two batch sizes or more"
        )
    return table


def steps_to_loss(rows: Sequence[LossRow], *, loss: float) -> dict[float, list[float | None]]:
    """Return the steps that every run of a log took to a loss, by batch; None: it never got there.

    Runs differ in their workers or batch.
    """
    found: dict[float, list[float | None]] = {}
    ordered = sorted(rows, key=lambda row: (row.setting, row.step))
    for _, group in groupby(ordered, key=lambda row: row.setting):
        run = list(group)
        found.setdefault(run[0].weighted_batch, []).append(_first_step(run, loss))
    return found


def _first_step(run: Sequence[LossRow], loss: float) -> float | None:
    losses = [row.loss for row in run]
    for place, row in enumerate(run):
        near = losses[max(place - _HALF_WINDOW, 0) : place + _HALF_WINDOW + 1]
        if np.median(near) <= loss:
            return row.step
    return None
