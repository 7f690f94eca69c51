"""All-reduce on g4dn.12xlarge: whole placements left out, and 6-16 nodes from 4 and fewer.

The splits were fixed before any model was fitted (splits.json).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.allreduce_rivals import Fit, extra_trees, pollux, steps
from benchmarks.accuracy.allreduce_runs import AllreduceRun, chosen, folds
from benchmarks.accuracy.product import Product
from benchmarks.accuracy.table import Row

Floats = NDArray[np.float64]

EXTRAPOLATION_TARGET = 6.5
LEFT_OUT_TARGETS = {"imagenet": 6.0, "cifar10": 6.6, "ncf": 9.5}
PUBLISHED_POLLUX = 8.4  # cifar10, 6-16 nodes
RIVALS: Mapping[str, Fit] = {"Pollux law, refitted": pollux, "extra-trees": extra_trees}
_DRAWS, _SEED = 2000, 0


@dataclass(frozen=True, slots=True)
class AllreduceResult:
    """Steps of runs that no fit had seen."""

    runs: Sequence[AllreduceRun]
    folds: NDArray[np.intp]
    steps: Mapping[str, Floats]  # by rule
    low: Floats  # of our 90 % interval
    high: Floats

    @property
    def measured(self) -> Floats:
        """What was measured."""
        return steps(self.runs)

    def errors(self, rule: str) -> Floats:
        """Return absolute errors in percent."""
        return 100 * np.abs(self.steps[rule] / self.measured - 1)


def left_out_placements(product: Product, runs: Sequence[AllreduceRun]) -> AllreduceResult:
    """Predict every placement of one model from the placements of the other folds."""
    fold_of = np.array(folds(runs))
    found = {name: np.empty(len(runs)) for name in ("ours", *RIVALS, "low", "high")}
    for fold in np.unique(fold_of):
        inside = [run for run, f in zip(runs, fold_of, strict=True) if f != fold]
        outside = [run for run, f in zip(runs, fold_of, strict=True) if f == fold]
        for name, values in predictions(product, inside, outside).items():
            found[name][fold_of == fold] = values
    low, high = found.pop("low"), found.pop("high")
    return AllreduceResult(runs, fold_of, found, low, high)


def extrapolation(product: Product, runs: Sequence[AllreduceRun]) -> AllreduceResult:
    """Predict cifar10 on 6-16 nodes from all its rows on 1-4."""
    small = chosen(runs, model="cifar10", table="placements")
    large = chosen(runs, model="cifar10", table="scalability")
    found = predictions(product, small, large)
    low, high = found.pop("low"), found.pop("high")
    return AllreduceResult(large, np.zeros(len(large), dtype=np.intp), found, low, high)


def predictions(
    product: Product, train: Sequence[AllreduceRun], test: Sequence[AllreduceRun]
) -> dict[str, Floats]:
    """Fit ours and the rivals on some runs and predict others; ours with its interval."""
    jobs = product.calibrate([run.cells for run in train])
    ours = [p.step_s for p in product.predict([run.cells for run in test], jobs)]
    found = {"ours": np.array([step.mid for step in ours])}
    found |= {name: fit(train)(test) for name, fit in RIVALS.items()}
    found["low"] = np.array([step.low for step in ours])
    found["high"] = np.array([step.high for step in ours])
    return found


def left_out_rows(results: Mapping[str, AllreduceResult]) -> list[Row]:
    """Return the errors of each model, and how surely ours is below Pollux."""
    return [
        Row(
            what=f"{model}, {len(result.runs)} runs, placements left out, mean",
            unit="%",
            ours=float(result.errors("ours").mean()),
            target=LEFT_OUT_TARGETS[model],
            rivals={name: float(result.errors(name).mean()) for name in RIVALS},
            note=f"below Pollux by {_below_pollux(result)}",
        )
        for model, result in results.items()
    ]


def extrapolation_row(result: AllreduceResult) -> Row:
    """Return the error on 6-16 nodes."""
    rivals = {name: float(result.errors(name).mean()) for name in RIVALS}
    return Row(
        what=f"cifar10, {len(result.runs)} runs, 6-16 nodes from <= 4, mean",
        unit="%",
        ours=float(result.errors("ours").mean()),
        target=EXTRAPOLATION_TARGET,
        rivals={**rivals, "Pollux as published": PUBLISHED_POLLUX},
        note=f"below Pollux by {_below_pollux(result)}; mean signed error {_signed(result)}",
    )


def _signed(result: AllreduceResult) -> str:
    """Return the mean signed error at each number of nodes."""
    nodes = np.array([run.nodes for run in result.runs])
    signed = 100 * (result.steps["ours"] / result.measured - 1)
    parts = (f"{signed[nodes == n].mean():+.1f} % at {n}" for n in np.unique(nodes))
    return f"{', '.join(parts)} nodes"


def _below_pollux(result: AllreduceResult) -> str:
    """Return the lead over Pollux and its 95 % range, by drawing whole placements anew."""
    lead = result.errors("Pollux law, refitted") - result.errors("ours")
    names = np.array([run.placement for run in result.runs])
    groups = [np.flatnonzero(names == name) for name in np.unique(names)]
    sums = np.array([lead[group].sum() for group in groups])
    sizes = np.array([len(group) for group in groups])
    drawn = np.random.default_rng(_SEED).integers(len(groups), size=(_DRAWS, len(groups)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{lead.mean():.2f} points ({low:.2f} to {high:.2f})"
