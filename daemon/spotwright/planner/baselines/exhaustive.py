"""Every fleet of the market: what the exact search is checked against.

No pool, no placement and no choice of servers is left out. Counts are generated pool by pool, in
blocks, and only as far as the pools' own limits and the number of nodes allow.
"""

from collections.abc import Iterator

import numpy as np

from spotwright.domain.plan import Objective
from spotwright.planner.baselines.places import places
from spotwright.planner.baselines.result import BaselineResult, BestFleet, Floats
from spotwright.planner.limit_rows import LimitRows
from spotwright.planner.problem import Problem

_BLOCK_FLEETS = 1 << 16


def exhaustive(
    problem: Problem, *, objective: Objective = Objective.COST, most_fleets: int = 30_000_000
) -> BaselineResult:
    """Evaluate all fleets.

    Raises:
        ValueError: there are more than `most_fleets`.
    """
    contexts = [
        place.context(problem, objective=objective)
        for place in places(problem, problem.job.limits.placement)
    ]
    fleet_count = sum(_fleet_count(context.limits) for context in contexts)
    if fleet_count > most_fleets:
        raise ValueError(f"{fleet_count:.3g} fleets are more than {most_fleets:,}")
    best = BestFleet()
    for context in contexts:
        for counts in _fleets(context.limits, np.zeros((0, 1))):
            best.offer(context, counts[:, counts.any(axis=0)])
    return best.result("exhaustive")


def _fleet_count(limits: LimitRows) -> float:
    """Return how many fleets `_fleets` yields: the coefficients of prod_i (1 + z + ... + z^u_i)."""
    free, rooms = int(limits.high[0] - limits.lower.sum()), limits.upper - limits.lower
    if free < 0 or (rooms < 0).any():
        return 0.0
    ways = np.zeros(free + 1)
    ways[0] = 1.0
    for room in rooms.astype(int).tolist():
        ways = np.convolve(ways, np.ones(room + 1))[: free + 1]
    return float(ways.sum())


def _fleets(limits: LimitRows, begun: Floats) -> Iterator[Floats]:
    """Yield all fleets that start with these counts of the first pools, in blocks."""
    pool = len(begun)
    if pool == len(limits.upper):
        yield begun
        return
    later = limits.lower[pool + 1 :].sum()
    room = np.minimum(limits.upper[pool], limits.high[0] - begun.sum(axis=0) - later)
    choices = np.maximum(np.floor(room) - limits.lower[pool] + 1, 0).astype(np.intp)
    block = np.cumsum(choices) // _BLOCK_FLEETS
    for part in range(int(block[-1]) + 1):
        mine = block == part
        repeats = choices[mine]
        before = np.cumsum(repeats) - repeats
        counts = np.arange(repeats.sum()) - np.repeat(before, repeats) + limits.lower[pool]
        longer = np.concatenate([np.repeat(begun[:, mine], repeats, axis=1), counts[None, :]])
        if longer.shape[1]:
            yield from _fleets(limits, longer)
