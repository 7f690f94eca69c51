"""How a loss fell in a run, and what a law fitted to such runs says of other fleets."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from statistics import mean

import numpy as np

from spotwright.domain.job import Goal, JobSpec, Limits, Target, TargetKind
from spotwright.domain.workload import FixedBatch, ModelSize, ParameterServing, Strategy, Workload
from spotwright.perfmodel.convergence import Progress, updates_to_goal
from spotwright.perfmodel.laws.loss_rows import LossRow
from spotwright.usecases.fit_loss_law import fit_loss_law

Point = tuple[float, float]  # updates so far, loss
BIN_STEPS = 50


class Curve:
    """The course of one run: means over bins of updates, straight lines between them."""

    def __init__(self, points: Sequence[Point]) -> None:
        """Take what was seen, in any order."""
        ordered = sorted(points)
        bins = [list(own) for _, own in groupby(ordered, lambda point: point[0] // BIN_STEPS)]
        self._steps = [mean(step for step, _ in own) for own in bins]
        self._losses = [mean(loss for _, loss in own) for own in bins]

    def loss_at(self, step: float) -> float:
        """Return the loss after so many updates."""
        return float(np.interp(step, self._steps, self._losses))

    def steps_to(self, loss: float) -> float:
        """Return the updates until the loss is first so low; infinite where it never is."""
        for place, reached in enumerate(self._losses):
            if reached <= loss:
                around = slice(max(place - 1, 0), place + 1)
                falling = self._losses[around][::-1], self._steps[around][::-1]
                return float(np.interp(loss, *falling))
        return math.inf


def predicted_steps(
    rows: Sequence[LossRow], *, law: str, loss: float, workers: int, batch: int
) -> float:
    """Return the updates that equal workers need to a loss, by a law fitted to logs of others.

    Raises:
        SpotwrightError: the law cannot be fitted, or never gets there.
    """
    workload = Workload(
        strategy=Strategy.ASP_PS,
        model=ModelSize(parameter_bytes=1.0),  # the law does not look at it
        batch=FixedBatch(per_gpu_count=batch),
        parameter_serving=ParameterServing(),
    )
    target = Target(kind=TargetKind.LOSS, value=loss)
    job = JobSpec(name="loss-law", workload=workload, goal=Goal(target=target), limits=Limits())
    fitted = fit_loss_law(rows, law=law, job=job).law
    asked = Progress(
        weighted_batch=np.array([float(batch)]),
        worker_count=np.array([float(workers)]),
        coefficient=np.array([math.sqrt(1 - 1 / workers)]),
        asynchronous=True,
    )
    return float(updates_to_goal(replace(workload, convergence=fitted), target, asked)[0])
