"""spotDNN's search (IWQoS 2023, Algorithm 1): a window over instances sorted by their speed.

    n_lower = b_min ((c2 b_min + c3) sqrt(c4) / (L - c5) - c1) / (v_max deadline), rounded up
    n_upper = ((1 - b1) / a1)^2, rounded down

Every node that the quotas allow is an instance of its own; sorted by iteration time, slowest first,
each window of n neighbours is a fleet, n from n_lower to n_upper. The cheapest window that meets
the goal wins. A job without the coefficients of a bound has 1 and the most nodes it allows.
"""

import math
from collections.abc import Sequence

import numpy as np

from spotwright.domain.job import JobSpec, TargetKind
from spotwright.domain.workload import Contention, SpotdnnLoss, Strategy
from spotwright.perfmodel.fleets import FleetFigures
from spotwright.planner.baselines.instance_types import TypedFleets, rented_types
from spotwright.planner.baselines.places import zones_with_own_servers
from spotwright.planner.baselines.result import BaselineResult, BestFleet, Floats
from spotwright.planner.problem import Problem


def spotdnn(problem: Problem) -> BaselineResult:
    """Slide the window in every zone, with the job's own servers."""
    best = BestFleet()
    for place in zones_with_own_servers(problem):
        types = rented_types(problem, place)
        if not types:
            continue
        fleets = TypedFleets(problem, place, types)
        alone = fleets.alone()
        passed = _passed(fleets.most, alone.iteration_s)
        most = min(fleets.context.most_workers, passed.shape[1] - 1, _upper(problem.job))
        for n in range(_lower(problem.job, alone), most + 1):
            windows = passed[:, n:] - passed[:, :-n]
            best.offer(fleets.context, fleets.counts(windows))
    return best.result("spotDNN")


def _passed(quotas: Sequence[int], iteration_s: Floats) -> Floats:
    """Return how many of the first 0, 1, 2, ... instances are of each type, slowest first."""
    by_speed = np.argsort(-iteration_s, kind="stable")
    owners = np.repeat(by_speed, np.array(quotas)[by_speed])
    owned = owners == np.arange(len(quotas))[:, None]
    return np.pad(np.cumsum(owned, axis=1, dtype=np.float64), ((0, 0), (1, 0)))


def _lower(job: JobSpec, alone: FleetFigures) -> int:
    law, target, deadline_s = job.workload.convergence, job.goal.target, job.goal.deadline_s
    if not isinstance(law, SpotdnnLoss) or target.kind is not TargetKind.LOSS or not deadline_s:
        return 1
    batch, speed = float(alone.weighted_batch.min()), float(alone.samples_per_s.max())
    crowd = (law.c2 * batch + law.c3) * math.sqrt(law.c4) / (target.value - law.c5)
    return max(1, math.ceil(batch * (crowd - law.c1) / (speed * deadline_s)))


def _upper(job: JobSpec) -> int:
    serving = job.workload.parameter_serving
    if job.workload.strategy is not Strategy.ASP_PS or serving is None:
        return job.limits.max_nodes
    slope, offset = serving.contention_slope, serving.contention_offset
    if serving.contention is not Contention.SPOTDNN or not slope or offset is None:
        return job.limits.max_nodes
    return math.floor(((1 - offset) / slope) ** 2)
