"""Which of many fleets fit in GPU memory."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.workload import GlobalBatch, Workload
from spotwright.perfmodel.memory import available_gib, gpu_memory_gib, largest_batch
from spotwright.perfmodel.step_model import ClusterSpeed, Floats, WorkerClass, column


class MemoryCheck:
    """Which fleets of given worker classes have room on every GPU."""

    def __init__(self, workload: Workload, workers: Sequence[WorkerClass]) -> None:
        """Prepare for fleets of these classes."""
        limits = [available_gib(worker.group.instance_type) for worker in workers]
        self._workload = workload
        self._available_gib = column([math.inf if gib is None else gib for gib in limits])
        self._gpus = column([worker.gpus for worker in workers])
        whole_batch = isinstance(workload.batch, GlobalBatch)
        self._by_fleet = whole_batch or workload.memory.zero_stage > 0
        self._batch_per_gpu = column([worker.batch_per_gpu for worker in workers])
        self._alone_fits = self._fits_class(self._batch_per_gpu, np.ones(1))[:, 0]

    def fits(self, counts: Floats, speed: ClusterSpeed) -> NDArray[np.bool_]:
        """Return whether every class that is present fits, by fleet."""
        if not self._by_fleet:
            return np.asarray(~(counts[~self._alone_fits] > 0).any(axis=0))
        gpus = counts * self._gpus
        batch_per_gpu = speed.group_samples_per_s * speed.step_s / np.maximum(gpus, self._gpus)
        fits = self._fits_class(batch_per_gpu, gpus.sum(axis=0))
        return np.asarray((fits | (counts == 0)).all(axis=0))

    def _fits_class(self, batch_per_gpu: Floats, gpu_count: Floats) -> NDArray[np.bool_]:
        held = np.minimum(batch_per_gpu, largest_batch(self._workload))
        needed = gpu_memory_gib(self._workload, batch_per_gpu=held, gpu_count=gpu_count)
        return np.asarray(needed <= self._available_gib)
