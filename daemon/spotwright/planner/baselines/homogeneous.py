"""Fleets of one type, as spotDNN's paper compares: just enough nodes for the deadline."""

from collections.abc import Callable, Iterator

import numpy as np

from spotwright.planner.baselines.instance_types import RentedType, TypedFleets, rented_types
from spotwright.planner.baselines.places import Place, zones_with_own_servers
from spotwright.planner.baselines.result import BaselineResult, BestFleet
from spotwright.planner.problem import Problem


def homogeneous_fastest(problem: Problem) -> BaselineResult:
    """Rent the type of which one node alone would be done first."""
    best = _fewest(problem, lambda place, kind: _lone_run_s(problem, place, kind))
    return best.result("homogeneous fastest")


def homogeneous_slowest(problem: Problem) -> BaselineResult:
    """Rent the type with the lowest price per hour."""
    best = _fewest(problem, lambda _, kind: kind.usd_per_hour)
    return best.result("homogeneous slowest")


def _fewest(problem: Problem, rank: Callable[[Place, RentedType], float]) -> BestFleet:
    """Return, of the type that ranks first, the fewest nodes that meet the goal."""
    best, offered = BestFleet(), list(_offered(problem))
    if not offered:
        return best
    chosen = min(offered, key=lambda pair: (rank(*pair), pair[1].name))[1].name
    for place, kind in offered:
        if kind.name == chosen:
            _offer_fewest(problem, place, kind, best)
    return best


def _offered(problem: Problem) -> Iterator[tuple[Place, RentedType]]:
    for place in zones_with_own_servers(problem):
        for kind in rented_types(problem, place):
            yield place, kind


def _offer_fewest(problem: Problem, place: Place, kind: RentedType, best: BestFleet) -> None:
    fleets = TypedFleets(problem, place, [kind])
    nodes = np.arange(1.0, fleets.most[0] + 1)
    best.offer_first(fleets.context, fleets.counts(nodes[None, :]))


def _lone_run_s(problem: Problem, place: Place, kind: RentedType) -> float:
    return float(TypedFleets(problem, place, [kind]).alone().duration_s[0])
