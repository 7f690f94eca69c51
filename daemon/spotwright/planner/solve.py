"""The cheapest or the fastest fleet, with a proof."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import Fleet
from spotwright.domain.offer import Pool
from spotwright.domain.plan import Objective
from spotwright.domain.workload import Strategy
from spotwright.planner.asynchronous_boxes import AsynchronousSpace, Remembered
from spotwright.planner.branch_and_bound import Found, Incumbent, Space, search
from spotwright.planner.context import Context
from spotwright.planner.few_fleets import every_fleet
from spotwright.planner.local_search import LocalSearch
from spotwright.planner.placements import sites
from spotwright.planner.problem import Problem, Solution, Watch
from spotwright.planner.serverless import solve_serverless
from spotwright.planner.synchronous_boxes import SynchronousSpace

Floats = NDArray[np.float64]

_STARTS = 3  # contexts, cheapest and dearest, in which fleets are looked for before the search


def solve(
    problem: Problem,
    *,
    objective: Objective = Objective.COST,
    gap_fraction: float = 1e-3,
    watch: Watch | None = None,
    start: Sequence[Fleet] = (),
) -> Solution:
    """Find the fleet that costs least within the deadline, or is fastest within the budget.

    Both goals hold in either case: cost stays within the budget, the expected duration within the
    deadline. `start` are fleets to begin with, such as one that runs already.
    """
    watch = watch or Watch()
    if problem.job.workload.strategy is Strategy.SERVERLESS:
        return solve_serverless(problem, objective=objective, watch=watch)
    known = [nodes for nodes in (problem.running.nodes, *map(_nodes, start)) if nodes]
    contexts, all_there = contexts_of(problem, objective, known, watch)
    incumbent = Incumbent()
    large = _without_small(contexts, incumbent)
    _begin(large, incumbent, known)
    local = LocalSearch(incumbent)
    local.start(large[:_STARTS] + large[_STARTS:][-_STARTS:])
    found = search(
        spaces_of(large),
        incumbent,
        gap_fraction=gap_fraction,
        watch=watch,
        polish=local.polish,
    )
    if not all_there:
        found = replace(found, bound=0.0, complete=False)
    return _solution(incumbent, found)


def contexts_of(
    problem: Problem, objective: Objective, known: Sequence[Mapping[Pool, int]], watch: Watch
) -> tuple[list[Context], bool]:
    """Return where fleets may stand, cheapest servers first, and whether time was left for all."""
    keep = {pool for nodes in known for pool in nodes}
    capped = problem.job.goal.budget_usd is not None or problem.job.limits.max_usd_per_hour
    prices_matter = objective is Objective.COST or bool(capped)
    places = [s for s in sites(problem, prices_matter=prices_matter, keep=keep) if s.workers]
    places.sort(key=lambda s: (sum(g.usd_per_hour or 0.0 for g in s.servers), len(s.workers)))
    contexts: list[Context] = []
    for i, place in enumerate(places):
        if i >= 2 * _STARTS and watch.stopped():
            return contexts, False
        context = Context(
            problem.job, place.workers, place.servers, objective=objective, running=problem.running
        )
        if context.has_room:
            contexts.append(context)
    return contexts, True


def _begin(
    contexts: Sequence[Context], incumbent: Incumbent, known: Sequence[Mapping[Pool, int]]
) -> None:
    """Begin with fleets that are known already."""
    for context in contexts:
        for nodes in known:
            counts = context.counts_of(nodes)
            if counts is not None and counts.sum() <= context.most_workers:
                incumbent.offer(context, counts[:, None])


def _without_small(contexts: Sequence[Context], incumbent: Incumbent) -> list[Context]:
    """Evaluate whatever stands where few fleets can; return the contexts of many."""
    large = []
    for context in contexts:
        fleets = every_fleet(context)
        if fleets is None:
            large.append(context)
        else:
            incumbent.offer(context, fleets)
    return large


def _nodes(fleet: Fleet) -> dict[Pool, int]:
    return {group.offer.pool: group.node_count for group in fleet.workers if group.offer}


def _solution(incumbent: Incumbent, found: Found) -> Solution:
    context, counts = incumbent.context, incumbent.counts
    return Solution(
        fleet=None if context is None or counts is None else context.fleet(counts),
        cost_usd=incumbent.cost_usd,
        duration_s=incumbent.duration_s,
        lower_bound=found.bound,
        complete=found.complete,
        box_count=found.box_count,
    )


def spaces_of(contexts: Sequence[Context]) -> list[Space[Any]]:
    """Return the spaces of a strategy; those of the same pools learn from each other."""
    spaces: list[Space[Any]] = []
    remembered: dict[tuple[Pool, ...], Remembered] = {}
    for context in contexts:
        if context.job.workload.strategy is Strategy.ASP_PS:
            pools = tuple(w.group.offer.pool for w in context.workers if w.group.offer)
            spaces.append(AsynchronousSpace(context, remembered.setdefault(pools, {})))
        else:
            spaces.append(SynchronousSpace(context))
    return spaces
