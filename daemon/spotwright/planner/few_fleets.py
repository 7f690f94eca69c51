"""Placements of so few fleets that evaluating all of them is quicker than any bound."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spotwright.planner.context import Context
from spotwright.planner.point_enumeration import Reach, enumerate_fleets

Floats = NDArray[np.float64]

_FEW_COUNTS = 256  # fleets times pools: one node of 16 pools, in 1 ms where a search takes 8


def every_fleet(context: Context) -> Floats | None:
    """Return all fleets of as many nodes as a placement allows, (pools, fleets); None: too many."""
    limits, most = context.limits, context.most_workers
    upper = np.minimum(limits.upper, most)
    return _fleets(tuple(limits.lower.tolist()), tuple(upper.tolist()), context.least_workers, most)


@lru_cache(maxsize=64)  # a controller asks again and again, at other prices
def _fleets(
    lower: tuple[float, ...], upper: tuple[float, ...], least: int, most: int
) -> Floats | None:
    home = np.array(lower)
    free = Reach(
        home=home,
        price=np.zeros_like(home),
        direction=np.ones_like(home),
        steps=np.array(upper) - home,
    )
    found = enumerate_fleets(free, 0.0, node_range=(least, most), most_counts=_FEW_COUNTS)
    if found is None:
        return None
    fleets = found.fleets()
    fleets.flags.writeable = False
    return fleets
