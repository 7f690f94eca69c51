"""Compute of a synchronous step: everyone waits for the slowest GPU."""

from collections.abc import Sequence

import numpy as np

from spotwright.domain.workload import GlobalBatch, Workload
from spotwright.perfmodel.batch_split import micro_batches, split_by_speed
from spotwright.perfmodel.order_statistics import smooth_maximum
from spotwright.perfmodel.step_model import Floats, WorkerClass, column


class SynchronousCompute:
    """Batch and compute time of each class, by fleet."""

    def __init__(self, workload: Workload, workers: Sequence[WorkerClass]) -> None:
        """Prepare for fleets of these classes."""
        self._rule = workload.batch
        self._fixed_s = column([w.compute.fixed_s for w in workers])
        self._per_sample_s = column([w.compute.per_sample_s for w in workers])
        self._knees = [w.compute.knee for w in workers]
        self._given_batch = column([w.batch_per_gpu for w in workers])
        self._gpus = column([w.gpus for w in workers])

    def batch_per_gpu(self, counts: Floats) -> Floats:
        """Return samples per GPU and step, (classes, fleets)."""
        if not isinstance(self._rule, GlobalBatch):
            return self._given_batch + 0 * counts
        return split_by_speed(
            counts * self._gpus,
            fixed_s=self._fixed_s,
            per_sample_s=self._per_sample_s,
            global_batch=self._rule.sample_count,
        )

    def seconds(self, batch_per_gpu: Floats) -> Floats:
        """Return the compute time of one GPU of each class, (classes, fleets)."""
        largest = self._rule.max_per_gpu_count if isinstance(self._rule, GlobalBatch) else None
        fixed_s = self._fixed_s * micro_batches(batch_per_gpu, largest=largest)
        work_s = self._per_sample_s * batch_per_gpu
        rows = [smooth_maximum(fixed_s[i], work_s[i], knee) for i, knee in enumerate(self._knees)]
        return np.stack(rows)
