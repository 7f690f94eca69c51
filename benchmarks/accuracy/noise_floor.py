"""How far the rows themselves can be predicted at all.

same fleet     runs of equal placement and batch that differ only in the order of the nodes: each
               predicted by the median of the others
hindsight      what a form reaches when fitted on the very rows it is tested on
"""

from collections.abc import Sequence
from itertools import product as combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.allreduce import predictions
from benchmarks.accuracy.allreduce_rivals import steps
from benchmarks.accuracy.allreduce_runs import AllreduceRun
from benchmarks.accuracy.product import Product

Floats = NDArray[np.float64]

_ROUNDS = 100  # of reweighting: least absolute deviations


def same_fleet_error(runs: Sequence[AllreduceRun]) -> float:
    """Return the mean error in percent of a run predicted by its equals."""
    groups: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        groups.setdefault((run.placement, run.batch_per_gpu), []).append(run.step_s)
    errors = [
        abs(np.median(times[:i] + times[i + 1 :]) / step - 1)
        for times in groups.values()
        if len(times) > 1
        for i, step in enumerate(times)
    ]
    return 100 * float(np.mean(errors))


def hindsight_errors(product: Product, runs: Sequence[AllreduceRun]) -> dict[str, float]:
    """Return the mean errors in percent of forms fitted on the rows they are tested on."""
    found = predictions(product, runs, runs)
    forms = {"ours": found["ours"], "Pollux law": found["Pollux law, refitted"]}
    for degree in (2, 3, 4):
        fitted, coefficients = _polynomial(runs, degree)
        forms[f"polynomial of {coefficients} coefficients"] = fitted
    return {
        name: 100 * float(np.mean(np.abs(fitted / steps(runs) - 1)))
        for name, fitted in forms.items()
    }


def _polynomial(runs: Sequence[AllreduceRun], degree: int) -> tuple[Floats, int]:
    """Fit log step by powers of log nodes, GPUs and batch, least absolute deviations."""
    axes = np.log([(run.nodes, run.gpus, run.batch_per_gpu) for run in runs])
    axes = (axes - axes.mean(axis=0)) / axes.std(axis=0)
    powers = [p for p in combinations(range(degree + 1), repeat=3) if sum(p) <= degree]
    design = np.column_stack([np.prod(axes**p, axis=1) for p in powers])
    target, weight = np.log(steps(runs)), np.ones(len(runs))
    for _ in range(_ROUNDS):
        root = np.sqrt(weight)
        found = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)[0]
        fitted = design @ found
        weight = 1 / np.maximum(np.abs(target - fitted), 1e-4)
    return np.exp(fitted), len(powers)
