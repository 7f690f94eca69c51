"""Rivals on the all-reduce rows: the Pollux law, refitted, and extra-trees.

    Pollux   T = (T_comp^y + T_net^y)^(1/y),  T_comp = a_c + b_c * batch,  1 <= y <= 10,
             T_net = a + b * max(G - 2, 0), one pair (a, b) on one node and one on several

Both are fitted to the logarithm of the step, as the product is.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from sklearn.ensemble import ExtraTreesRegressor

from benchmarks.accuracy.allreduce_runs import AllreduceRun

Floats = NDArray[np.float64]
Fit = Callable[[Sequence[AllreduceRun]], Callable[[Sequence[AllreduceRun]], Floats]]

SEED = 0
_TREES, _LEAST_LEAF = 300, 2
_STARTING_POWERS = (1.5, 3.0, 6.0)


def pollux(train: Sequence[AllreduceRun]) -> Callable[[Sequence[AllreduceRun]], Floats]:
    """Fit the law, best of three starts."""
    target = np.log(steps(train))
    table = _columns(train)
    bounds = ([-25.0] * 6 + [1.0], [5.0] * 6 + [10.0])
    fits = [
        least_squares(lambda z: np.log(_law(z, table)) - target, start, bounds=bounds)
        for start in _starts(train)
    ]
    best = min(fits, key=lambda fit: float(fit.cost)).x
    return lambda runs: _law(best, _columns(runs))


def extra_trees(train: Sequence[AllreduceRun]) -> Callable[[Sequence[AllreduceRun]], Floats]:
    """Fit trees on nodes, GPUs, their spread and the batch."""
    forest = ExtraTreesRegressor(_TREES, min_samples_leaf=_LEAST_LEAF, random_state=SEED, n_jobs=1)
    forest.fit(_features(train), np.log(steps(train)))
    return lambda runs: np.exp(forest.predict(_features(runs)))


def steps(runs: Sequence[AllreduceRun]) -> Floats:
    """Return what was measured."""
    return np.array([run.step_s for run in runs])


def _starts(train: Sequence[AllreduceRun]) -> list[Floats]:
    fastest = float(steps(train).min())
    batch = float(np.median([run.batch_per_gpu for run in train]))
    rates = [fastest / 2, fastest / 2 / batch, fastest / 5, fastest / 50, fastest, fastest / 50]
    return [np.append(np.log(rates), power) for power in _STARTING_POWERS]


def _law(z: Floats, table: Floats) -> Floats:
    nodes, gpus, batch = table
    fixed_s, sample_s, node_s, node_gpu_s, net_s, net_gpu_s = np.exp(z[:6])
    more = np.maximum(gpus - 2, 0)
    exchange_s = np.where(nodes == 1, node_s + node_gpu_s * more, net_s + net_gpu_s * more)
    exchange_s = np.where(gpus == 1, 1e-12, exchange_s)
    compute_s = fixed_s + sample_s * batch
    top = np.maximum(compute_s, exchange_s)
    ratio = np.minimum(compute_s, exchange_s) / top
    return np.asarray(top * (1 + ratio ** z[6]) ** (1 / z[6]))


def _columns(runs: Sequence[AllreduceRun]) -> Floats:
    return np.array([(run.nodes, run.gpus, run.batch_per_gpu) for run in runs], dtype=float).T


def _features(runs: Sequence[AllreduceRun]) -> Floats:
    return np.array(
        [
            (r.nodes, r.gpus, r.gpus_by_node[0], r.gpus_by_node[-1], r.gpus / r.nodes,
             r.batch_per_gpu)
            for r in runs
        ],
        dtype=float,
    )  # fmt: skip
