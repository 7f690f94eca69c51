"""Instance types as the papers know them: one price and one quota each.

A type that is offered in several pools of a zone is filled from its cheapest pool on, up to what
the job allows of each pool and of the type.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spotwright.domain.job import Limits
from spotwright.domain.offer import Offer, Pool
from spotwright.perfmodel.fleets import FleetFigures
from spotwright.perfmodel.step_model import WorkerClass
from spotwright.planner.baselines.places import Place
from spotwright.planner.baselines.result import Floats
from spotwright.planner.problem import Problem


@dataclass(frozen=True, slots=True)
class RentedType:
    """One instance type in one place."""

    name: str
    workers: tuple[WorkerClass, ...]  # its pools, cheapest first

    @property
    def usd_per_hour(self) -> float:
        """Price of the first node."""
        return _price(self.workers[0])


def rented_types(problem: Problem, place: Place) -> list[RentedType]:
    """Return the types of a place with as many pools as their quota needs."""
    by_name: dict[str, list[WorkerClass]] = {}
    for worker in sorted(place.workers, key=_price):
        by_name.setdefault(worker.group.instance_type.name, []).append(worker)
    return [
        RentedType(name, tuple(workers[: _pools_needed(problem.job.limits, name)]))
        for name, workers in sorted(by_name.items())
        if _quota(problem.job.limits, name) > 0
    ]


class TypedFleets:
    """Fleets of some types in one place, told by how many nodes of each type they have.

    Attributes:
        context: what evaluates them: the pools of each type in turn, then others that are pinned.
        most: nodes of each type that the limits may allow.
    """

    def __init__(self, problem: Problem, place: Place, types: Sequence[RentedType]) -> None:
        """Prepare for fleets of these types."""
        limits, pools = problem.job.limits, [worker for kind in types for worker in kind.workers]
        pins = [w for w in place.workers if _pool(w) in limits.min_count_by_pool]
        pinned = [worker for worker in pins if worker not in pools]
        self.context = place.context(problem, workers=[*pools, *pinned])
        self._ends = np.cumsum([len(kind.workers) for kind in types])
        self._uppers = np.split(self.context.limits.upper[: len(pools)], self._ends[:-1])
        most = self.context.most_workers
        self.most = [
            int(min(most, upper.sum(), _quota(limits, kind.name)))
            for kind, upper in zip(types, self._uppers, strict=True)
        ]

    def counts(self, nodes: Floats) -> Floats:
        """Return fleets of so many nodes of each type, (types, fleets), as counts of pools.

        Pinned nodes are in every fleet, whether asked for or not.
        """
        lower = self.context.limits.lower[:, None]
        counts = np.repeat(lower, nodes.shape[1], axis=1)
        for upper, wanted, end in zip(self._uppers, nodes, self._ends, strict=True):
            before = np.cumsum(upper) - upper
            filled = np.clip(wanted - before[:, None], 0.0, upper[:, None])
            counts[end - len(upper) : end] = filled
        return np.maximum(counts, lower)

    def alone(self) -> FleetFigures:
        """Evaluate one node of each type by itself."""
        first = self._ends - [len(upper) for upper in self._uppers]
        return self.context.evaluate(np.eye(len(self.context.workers))[:, first])


def _quota(limits: Limits, name: str) -> int:
    return limits.max_count_by_type.get(name, limits.max_nodes)


def _pools_needed(limits: Limits, name: str) -> int:
    return math.ceil(_quota(limits, name) / (limits.max_count_per_pool or limits.max_nodes))


def _price(worker: WorkerClass) -> float:
    return _offer(worker).price_usd_per_hour


def _pool(worker: WorkerClass) -> Pool:
    return _offer(worker).pool


def _offer(worker: WorkerClass) -> Offer:
    assert worker.group.offer is not None
    return worker.group.offer
