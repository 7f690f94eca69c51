"""Srifty's search (MLSys 2022): all fleets under the quotas, here of one or two instance types.

The paper searches its whole, smaller market exhaustively. Over a hundred types no such search ends,
so that at most two types are mixed, in all counts of both.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from spotwright.planner.baselines.instance_types import RentedType, TypedFleets, rented_types
from spotwright.planner.baselines.places import zones_with_own_servers
from spotwright.planner.baselines.result import BaselineResult, BestFleet, Floats
from spotwright.planner.problem import Problem


def srifty(problem: Problem) -> BaselineResult:
    """Try every type and every pair in every zone, with the job's own servers if it has any."""
    best = BestFleet()
    for place in zones_with_own_servers(problem):
        types = rented_types(problem, place)
        for mixed in _mixes(types):
            fleets = TypedFleets(problem, place, mixed)
            nodes = _all_counts(fleets.most)
            nodes = nodes[:, nodes.sum(axis=0) <= fleets.context.most_workers]
            best.offer(fleets.context, fleets.counts(nodes))
    return best.result("Srifty")


def _mixes(types: Sequence[RentedType]) -> list[tuple[RentedType, ...]]:
    return [mix for size in (1, 2) for mix in combinations(types, size)]


def _all_counts(most: Sequence[int]) -> Floats:
    """Return every fleet with at least one node of each type, (types, fleets)."""
    counts = np.meshgrid(*(np.arange(1.0, n + 1) for n in most), indexing="ij")
    return np.array([axis.ravel() for axis in counts])
