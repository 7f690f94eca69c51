"""Many fleets at once: what a search asks of the performance model.

The figures are those of `predict` without intervals, to rounding. What does not depend on how many
nodes a fleet has is worked out once; fleets are evaluated in chunks that stay in the processor's
cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import JobSpec, TargetKind
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.convergence import (
    Progress,
    group_coefficient,
    in_fitted_range,
    updates_to_goal,
)
from spotwright.perfmodel.fleet_memory import MemoryCheck
from spotwright.perfmodel.interruption import SpotExposure
from spotwright.perfmodel.step_model import ClusterSpeed, Floats, StepModel, WorkerClass
from spotwright.perfmodel.strategies import build_model
from spotwright.perfmodel.traffic import CrossZoneTraffic

_CHUNK_FLEETS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFigures:
    """What fleets do with a job; one entry per fleet."""

    iteration_s: Floats  # between updates of the model
    samples_per_s: Floats
    weighted_batch: Floats
    coefficient: Floats  # spotDNN's R; 0 for synchronous training
    updates: Floats  # to the goal
    work_s: Floats  # to the goal, if nothing is interrupted
    duration_s: Floats  # with what interruptions are expected to cost
    cost_usd: Floats  # of all nodes for that long, and of the traffic
    traffic_usd: Floats  # of it, for bytes between zones
    in_fitted_range: NDArray[np.bool_]  # False: the loss law cannot be trusted here
    fits_memory: NDArray[np.bool_]  # False: some GPU has no room for its part


class FleetEvaluator:
    """A job, ready to be asked about fleets of given worker classes with given servers.

    Attributes:
        model: the strategy's step.
        exposure: what can be taken away.
        traffic: what bytes between zones cost.
    """

    model: StepModel

    def __init__(
        self,
        job: JobSpec,
        workers: Sequence[WorkerClass],
        servers: Sequence[NodeGroup],
        *,
        most_workers: int,
    ) -> None:
        """Prepare for fleets of these classes.

        Args:
            job: its workload and goal; serverless jobs load data and restart: `predict` knows how.
            workers: the classes, in the order of the rows of `counts`.
            servers: those of every fleet; none for a ring.
            most_workers: the largest fleet that will be asked about.

        Raises:
            ValueError: the job is serverless, or a node has no price.
            MissingFactError: a rate that the strategy needs is not known.
        """
        if job.workload.strategy is Strategy.SERVERLESS:
            raise ValueError("functions are not evaluated in bulk")
        groups = [worker.group for worker in workers]
        self.model = build_model(job, workers, servers, most_workers=most_workers)
        self._job = job
        self._usd_per_hour = np.array([_price(group) for group in groups])
        self._servers_usd_per_hour = sum(_price(group) * group.node_count for group in servers)
        self.exposure = SpotExposure(job.workload, groups, servers)
        self._memory = MemoryCheck(job.workload, workers)
        self.traffic = CrossZoneTraffic(job.workload, groups, servers)

    def evaluate(self, counts: Floats) -> FleetFigures:
        """Evaluate fleets: whole nodes of each class, (classes, fleets), no fleet empty.

        Raises:
            BadInputError: an unreachable loss, or a fact that the goal needs is missing.
        """
        fleets = counts.shape[1]
        figures = _empty(fleets)
        for start in range(0, fleets, _CHUNK_FLEETS):
            chunk = slice(start, min(start + _CHUNK_FLEETS, fleets))
            part = np.ascontiguousarray(counts[:, chunk], dtype=np.float64)
            self._evaluate(part, figures, chunk)
        return figures

    def _evaluate(self, counts: Floats, figures: FleetFigures, chunk: slice) -> None:
        job, speed = self._job, self.model.speed(counts)
        progress = fleet_progress(job.workload, counts, speed)
        updates = updates_to_goal(job.workload, job.goal.target, progress)
        work_s = updates * speed.iteration_s
        duration_s = self.exposure.expected_s(counts, work_s)
        traffic_usd = self.traffic.usd(counts, step_s=speed.step_s, work_s=work_s)
        usd_per_hour = self._usd_per_hour @ counts + self._servers_usd_per_hour
        figures.iteration_s[chunk] = speed.iteration_s
        figures.samples_per_s[chunk] = progress.weighted_batch / speed.iteration_s
        figures.weighted_batch[chunk] = progress.weighted_batch
        figures.coefficient[chunk] = progress.coefficient
        figures.updates[chunk] = updates
        figures.work_s[chunk] = work_s
        figures.duration_s[chunk] = duration_s
        figures.cost_usd[chunk] = duration_s * usd_per_hour / 3600 + traffic_usd
        figures.traffic_usd[chunk] = traffic_usd
        figures.fits_memory[chunk] = self._memory.fits(counts, speed)
        if job.goal.target.kind is TargetKind.LOSS:
            figures.in_fitted_range[chunk] = in_fitted_range(job.workload.convergence, progress)


def fleet_progress(workload: Workload, counts: Floats, speed: ClusterSpeed) -> Progress:
    """Return what the loss laws need to know of fleets."""
    asynchronous = workload.strategy is Strategy.ASP_PS
    batch = speed.weighted_batch
    return Progress(
        weighted_batch=batch,
        worker_count=counts.sum(axis=0),
        coefficient=(
            group_coefficient(counts, speed.group_samples_per_s)
            if asynchronous
            else np.zeros_like(batch)
        ),
        asynchronous=asynchronous,
    )


def _price(group: NodeGroup) -> float:
    if group.offer is None:
        raise ValueError(f"{group.instance_type.name} has no offer, hence no price")
    return group.offer.price_usd_per_hour


def _empty(fleets: int) -> FleetFigures:
    return FleetFigures(
        iteration_s=np.empty(fleets),
        samples_per_s=np.empty(fleets),
        weighted_batch=np.empty(fleets),
        coefficient=np.empty(fleets),
        updates=np.empty(fleets),
        work_s=np.empty(fleets),
        duration_s=np.empty(fleets),
        cost_usd=np.empty(fleets),
        traffic_usd=np.empty(fleets),
        in_fitted_range=np.ones(fleets, dtype=np.bool_),
        fits_memory=np.ones(fleets, dtype=np.bool_),
    )
