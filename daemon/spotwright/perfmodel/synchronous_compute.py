"""Compute of a synchronous step: everyone waits for the slowest GPU."""

from collections.abc import Sequence

import numpy as np

from spotwright.domain.workload import GlobalBatch, Workload
from spotwright.perfmodel.batch_split import micro_batches, split_by_speed
from spotwright.perfmodel.order_statistics import smooth_maximum
from spotwright.perfmodel.step_model import Floats, WorkerClass, column


def worst_of(counts: Floats, keys: Sequence[Floats]) -> tuple[Floats, ...]:
    """Return the largest of each key over the classes present, by fleet."""
    present = counts > 0
    return tuple(np.where(present, key, 0.0).max(axis=0) for key in keys)


class SynchronousCompute:
    """Batch and compute time of each class, by fleet."""

    def __init__(self, workload: Workload, workers: Sequence[WorkerClass]) -> None:
        """Prepare for fleets of these classes."""
        self._rule = workload.batch
        self._fixed_s = column([w.compute.fixed_s for w in workers])
        self._per_sample_s = column([w.compute.per_sample_s for w in workers])
        self._knees = column([w.compute.knee for w in workers])
        self._given_batch = column([w.batch_per_gpu for w in workers])
        self._gpus = column([w.gpus for w in workers])

    def batch_per_gpu(self, counts: Floats) -> Floats:
        """Return samples per GPU and step, (classes, fleets) or one column for all fleets."""
        if not isinstance(self._rule, GlobalBatch):
            return self._given_batch
        return split_by_speed(
            counts * self._gpus,
            fixed_s=self._fixed_s,
            per_sample_s=self._per_sample_s,
            global_batch=self._rule.sample_count,
        )

    @property
    def per_sample_s(self) -> Floats:
        """Seconds per sample of one GPU of each class, as a column."""
        return self._per_sample_s

    def micro_batched_s(self, largest: float) -> Floats:
        """Return the seconds per sample of one GPU of each class in full micro-batches."""
        return smooth_maximum(self._fixed_s / largest, self._per_sample_s, self._knees)

    @property
    def least_fixed_s(self) -> float:
        """The least seconds that any class takes whatever its batch."""
        return float(self._fixed_s.min())

    @property
    def largest_fixed_s(self) -> float:
        """The most seconds that any class takes whatever its batch."""
        return float(self._fixed_s.max())

    @property
    def largest_knee(self) -> float:
        """The sharpest turn from fixed time to time per sample."""
        return float(self._knees.max())

    @property
    def given_batch(self) -> Floats:
        """Samples per GPU of each class, as a column; 0 where a global batch is split."""
        return self._given_batch

    def seconds(self, batch_per_gpu: Floats) -> Floats:
        """Return the compute time of one GPU of each class, (classes, fleets)."""
        largest = self._rule.max_per_gpu_count if isinstance(self._rule, GlobalBatch) else None
        fixed_s = self._fixed_s * micro_batches(batch_per_gpu, largest=largest)
        return smooth_maximum(fixed_s, self._per_sample_s * batch_per_gpu, self._knees)
