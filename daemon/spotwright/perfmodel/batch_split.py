"""A global batch split between GPUs of different speed so that all finish together.

With n_i GPUs that take f_i + s_i * b_i seconds, equal finish times t and sum n_i b_i = G give
t = (G + sum n_i f_i / s_i) / sum(n_i / s_i). A class with f_i >= t gets nothing and leaves the
sums. A share above what fits one GPU is worked off in several micro-batches, each of which pays f_i
again. A profile with a knee above 1 is split as if it were 1: finish times then differ a little.
"""

import numpy as np

from spotwright.perfmodel.step_model import Floats


def split_by_speed(
    gpu_counts: Floats, *, fixed_s: Floats, per_sample_s: Floats, global_batch: float
) -> Floats:
    """Return the batch per GPU of each class, (classes, fleets); absent classes get a share too."""
    speed = 1 / per_sample_s
    working = gpu_counts * speed
    for _ in range(len(gpu_counts)):
        finish_s = (global_batch + (working * fixed_s).sum(axis=0)) / working.sum(axis=0)
        working = np.where(fixed_s < finish_s, working, 0.0)
    share: Floats = np.maximum((finish_s - fixed_s) * speed, 0.0)
    return share


def micro_batches(batch_per_gpu: Floats, *, largest: float | None) -> Floats:
    """Return how many micro-batches a share takes."""
    if largest is None:
        return np.ones_like(batch_per_gpu)
    return np.maximum(np.ceil(batch_per_gpu / largest - 1e-9), 1.0)
