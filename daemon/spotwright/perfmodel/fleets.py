"""Many fleets at once: what a search asks of the performance model.

The figures are those of `predict` without interruptions, intervals and memory: which types have
room for the workload is settled before a search starts. Fleets are evaluated in chunks that stay in
the processor's cache.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.job import JobSpec, TargetKind
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.convergence import (
    Progress,
    group_coefficient,
    in_fitted_range,
    updates_to_goal,
)
from spotwright.perfmodel.step_model import ClusterSpeed, Floats, StepModel

_CHUNK_FLEETS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFigures:
    """What fleets do with a job; one entry per fleet."""

    iteration_s: Floats  # between updates of the model
    samples_per_s: Floats
    weighted_batch: Floats
    coefficient: Floats  # spotDNN's R; 0 for synchronous training
    updates: Floats  # to the goal
    duration_s: Floats
    cost_usd: Floats
    in_fitted_range: NDArray[np.bool_]  # False: the loss law cannot be trusted here


def evaluate_fleets(
    job: JobSpec,
    model: StepModel,
    counts: Floats,
    usd_per_hour: Floats,
    *,
    servers_usd_per_hour: float = 0.0,
) -> FleetFigures:
    """Evaluate fleets of nodes.

    Args:
        job: its workload and goal; serverless jobs load data and restart, which `predict` knows.
        model: the step model of the worker classes.
        counts: whole nodes of each class in each fleet, (classes, fleets), none of them empty.
        usd_per_hour: price of one node of each class.
        servers_usd_per_hour: price of all parameter servers together.

    Raises:
        BadInputError: an unreachable loss, or a fact that the goal needs is missing.
    """
    assert job.workload.strategy is not Strategy.SERVERLESS
    fleets = counts.shape[1]
    figures = _empty(fleets)
    for start in range(0, fleets, _CHUNK_FLEETS):
        chunk = slice(start, min(start + _CHUNK_FLEETS, fleets))
        part = np.ascontiguousarray(counts[:, chunk], dtype=np.float64)
        price = usd_per_hour @ part + servers_usd_per_hour
        _evaluate(job, model, part, price, figures, chunk)
    return figures


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


def _evaluate(
    job: JobSpec,
    model: StepModel,
    counts: Floats,
    usd_per_hour: Floats,
    figures: FleetFigures,
    chunk: slice,
) -> None:
    speed = model.speed(counts)
    progress = fleet_progress(job.workload, counts, speed)
    updates = updates_to_goal(job.workload, job.goal.target, progress)
    duration_s = updates * speed.iteration_s
    figures.iteration_s[chunk] = speed.iteration_s
    figures.samples_per_s[chunk] = progress.weighted_batch / speed.iteration_s
    figures.weighted_batch[chunk] = progress.weighted_batch
    figures.coefficient[chunk] = progress.coefficient
    figures.updates[chunk] = updates
    figures.duration_s[chunk] = duration_s
    figures.cost_usd[chunk] = duration_s * usd_per_hour / 3600
    if job.goal.target.kind is TargetKind.LOSS:
        figures.in_fitted_range[chunk] = in_fitted_range(job.workload.convergence, progress)


def _empty(fleets: int) -> FleetFigures:
    return FleetFigures(
        iteration_s=np.empty(fleets),
        samples_per_s=np.empty(fleets),
        weighted_batch=np.empty(fleets),
        coefficient=np.empty(fleets),
        updates=np.empty(fleets),
        duration_s=np.empty(fleets),
        cost_usd=np.empty(fleets),
        in_fitted_range=np.ones(fleets, dtype=np.bool_),
    )
