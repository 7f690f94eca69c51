"""What is known of synchronous workers, and the boxes their fleets are cut into."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.job import TargetKind
from spotwright.domain.workload import GlobalBatch, NoiseScaleLaw, Strategy
from spotwright.perfmodel.allreduce import AllreduceModel
from spotwright.perfmodel.bsp_ps import BspPsModel
from spotwright.perfmodel.convergence import Progress, updates_to_goal
from spotwright.perfmodel.memory import least_gpu_count
from spotwright.perfmodel.order_statistics import smooth_maximum
from spotwright.planner.context import Context
from spotwright.planner.interruption_bound import RunBound, run_bound

Floats = NDArray[np.float64]
Range = tuple[float, float]

EPS = 1e-9
TWO_NODE_LOSS = 4  # index of the key that only counts on exactly two nodes


@dataclass(frozen=True, slots=True)
class Box:
    """Fleets between these values."""

    lower: Floats
    upper: Floats
    nodes: tuple[int, int]
    gpus: Range
    samples: Range  # per step; of a split batch, the capacity
    events: Range  # per hour, of workers
    keys: tuple[Range, ...]
    visited: tuple[bool, ...]  # by zone of a ring that crosses zones: some node must stand there


@dataclass(frozen=True, slots=True)
class Corner:
    """Where the step is evaluated."""

    nodes: float
    gpus: float
    samples: float
    keys: tuple[float, ...]


class SynchronousWorkers:
    """The workers of one context, as fleets of them step together.

    Attributes:
        context: where they stand.
        ring: all-reduce; else parameter servers.
        crosses_zones: a ring over several zones, which pays for its crossings.
        zones: which pools stand in each zone of such a ring, (zones, pools).
        gpus: of one node of each class.
        keys: by class, what the worst present of decides the step.
        needs_gpus: by class, the GPUs a fleet must have for it to fit in memory.
        split_batch: the global batch, if one is split by speed.
        samples: per step of one node; where a batch is split, its samples/s.
        sustained: the same where a share is worked off in micro-batches.
        ratio: time is work / samples, not updates times a step.
        by_batch: the updates fall with the samples per step.
    """

    def __init__(self, context: Context) -> None:
        """Prepare the keys of every class."""
        model = context.evaluator.model
        assert isinstance(model, AllreduceModel | BspPsModel)
        self.context, self.model = context, model
        workload, target = context.job.workload, context.job.goal.target
        self.ring = workload.strategy is Strategy.ALLREDUCE
        # Rings inside one zone have contexts of their own: one over several zones crosses them.
        zones = [w.group.offer.zone for w in context.workers if w.group.offer]
        self.crosses_zones = self.ring and len(set(zones)) > 1
        names = sorted(set(zones)) if self.crosses_zones else []
        self.zones = np.array([[float(zone == name) for zone in zones] for name in names])
        self.gpus = model.gpus[:, 0]
        self.split_batch = workload.batch if isinstance(workload.batch, GlobalBatch) else None
        given = model.compute.given_batch
        self.keys = [
            _without_rounding(np.broadcast_to(key, given.shape)[:, 0]) for key in model.keys(given)
        ]
        self.samples = given[:, 0] * self.gpus
        self.sustained = self.samples
        if self.split_batch is not None:
            self.samples = self.gpus / model.per_sample_s[:, 0]
            self.sustained = self._sustained_capacity()
            # fed in proportion to the time worked
            self.keys[-1] = (model.gpus / (model.compute.per_sample_s * model.input_rate))[:, 0]
        self.needs_gpus = self._least_gpus()
        by_samples = target.kind not in (TargetKind.LOSS, TargetKind.STEPS)
        law = workload.convergence if target.kind is TargetKind.LOSS else None
        self.by_batch = isinstance(law, NoiseScaleLaw) and self.split_batch is None
        self.ratio = by_samples and self.split_batch is None

    def _sustained_capacity(self) -> Floats:
        """Return the samples/s of one node when a share is worked off in micro-batches.

        A share of b samples takes at least b / largest times the fixed seconds.
        """
        assert self.split_batch is not None
        largest = self.split_batch.max_per_gpu_count
        if largest is None:
            return self.samples
        return self.gpus / self.model.micro_batched_s(float(largest))[:, 0]

    def _least_gpus(self) -> Floats:
        """Return the GPUs a fleet must have for each class to fit in memory."""
        context = self.context
        return np.array(
            [
                least_gpu_count(
                    context.job.workload,
                    worker.group.instance_type,
                    batch_per_gpu=worker.batch_per_gpu,
                )
                for worker in context.workers
            ]
        )

    def updates(self, samples: float) -> float:
        """Return U; where the goal is samples and the batch is given, W."""
        job = self.context.job
        batch = float(self.split_batch.sample_count) if self.split_batch else samples
        if self.ratio:
            batch = 1.0
        progress = Progress(
            weighted_batch=np.array([batch]),
            worker_count=np.ones(1),
            coefficient=np.zeros(1),
            asynchronous=False,
        )
        return float(updates_to_goal(job.workload, job.goal.target, progress)[0])

    @property
    def all_keys(self) -> list[Floats]:
        """Every key, the GPUs that memory asks for last."""
        return [*self.keys, self.needs_gpus]

    def steps_s(self, points: Sequence[Corner]) -> Floats:
        """Return the step at lower corners."""
        nodes = np.array([point.nodes for point in points])
        gpus = np.maximum(np.array([point.gpus for point in points]), 1.0)
        worst = [np.array(values) for values in zip(*(p.keys for p in points), strict=True)]
        if self.split_batch is not None:
            capacity = np.array([point.samples for point in points])
            worst[0] = np.maximum(worst[0], self._split_s(capacity))
            worst[-1] = worst[-1] * self._split_work_s(capacity)
        return self.model.step_s(nodes, gpus, worst)

    def _split_s(self, capacity: Floats) -> Floats:
        """Return the least seconds in which a capacity works off a split batch."""
        assert self.split_batch is not None
        compute = self.model.compute
        fixed_s = np.full_like(capacity, compute.least_fixed_s)
        work_s = self.split_batch.sample_count / capacity
        return smooth_maximum(fixed_s, work_s, compute.largest_knee)

    def _split_work_s(self, capacity: Floats) -> Floats:
        """Return the least seconds that any class works at its share, fixed time left out."""
        assert self.split_batch is not None
        compute = self.model.compute
        sharing = float((self.model.per_sample_s / compute.per_sample_s).max())
        work_s = self.split_batch.sample_count / (capacity * sharing)
        return np.maximum(work_s + compute.least_fixed_s - compute.largest_fixed_s, 0.0)

    def corner(self, box: Box) -> Corner:
        """Return the place of a box at which its step is shortest."""
        keys = [low for low, _ in box.keys[:-1]]
        if self.ring and box.nodes != (2, 2):
            keys[TWO_NODE_LOSS] = 0.0
        return Corner(float(box.nodes[0]), box.gpus[0], box.samples[1], tuple(keys))

    def corner_step_s(self, box: Box) -> float:
        """Return the shortest step of a box."""
        return float(self.steps_s([self.corner(box)])[0])

    def there(self, box: Box, x: Floats) -> Corner:
        """Return where in a box a point is."""
        used = x > 1e-6
        worst = [float(key[used].max()) if used.any() else 0.0 for key in self.keys]
        keys = [into(limits, key) for limits, key in zip(box.keys[:-1], worst, strict=True)]
        nodes = into(box.nodes, float(x.sum()))
        if self.ring and not 1.5 < nodes < 2.5:
            keys[TWO_NODE_LOSS] = 0.0
        return Corner(
            nodes if not 1.5 < nodes < 2.5 else 2.0,
            into(box.gpus, float(x @ self.gpus)),
            into(box.samples, float(x @ self.samples)),
            tuple(keys),
        )

    def stops(self, worker_events: float) -> RunBound:
        """Bound runs with so many events per hour; a server's shock may be a worker pool's too."""
        context = self.context
        events = (
            max(worker_events, context.server_events) if context.server_events else worker_events
        )
        return run_bound(events, save_s=context.save_s, restart_s=context.restart_s)


def into(limits: Range, value: float) -> float:
    """Return a value moved into a range."""
    return min(max(value, limits[0]), limits[1])


def _without_rounding(key: Floats) -> Floats:
    """Return values that differ by rounding as one, the least: cuts between them never end."""
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    for i in range(1, len(ranked)):
        if ranked[i] - ranked[i - 1] <= 4 * EPS * abs(ranked[i]):
            ranked[i] = ranked[i - 1]
    snapped = np.empty_like(key)
    snapped[order] = ranked
    return snapped
