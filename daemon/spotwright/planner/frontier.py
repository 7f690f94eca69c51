"""Cost against time: the cheapest fleet for every deadline, each proved.

From the cheapest fleet of all, the deadline is shortened step by step to the fastest. A fleet found
for one deadline that is faster still settles every deadline down to its own duration.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from spotwright.domain.fleet import Fleet
from spotwright.domain.plan import Objective
from spotwright.planner.problem import Problem, Solution, Watch
from spotwright.planner.solve import solve

_STEPS = 24  # deadlines between the fastest and the cheapest fleet


def frontier(
    problem: Problem, *, gap_fraction: float, watch: Watch, start: Sequence[Fleet] = ()
) -> list[tuple[float, Solution]]:
    """Return deadlines with their cheapest fleets, fastest first; none if there is no fleet."""
    cheapest = _solved(problem, problem.job.goal.deadline_s, gap_fraction, watch, start)
    if cheapest.fleet is None:
        return []
    fastest = solve(
        problem,
        objective=Objective.TIME,
        gap_fraction=gap_fraction,
        watch=watch,
        start=(cheapest.fleet,),
    )
    first = (problem.job.goal.deadline_s or cheapest.duration_s, cheapest)
    points = [first, *_faster(problem, cheapest, fastest, gap_fraction, watch)]
    return list(_undominated(points))


def _faster(
    problem: Problem, cheapest: Solution, fastest: Solution, gap_fraction: float, watch: Watch
) -> Iterator[tuple[float, Solution]]:
    if fastest.fleet is None or fastest.duration_s >= cheapest.duration_s:
        return
    ratio = (fastest.duration_s / cheapest.duration_s) ** (1 / _STEPS)
    deadline_s, found = cheapest.duration_s, cheapest
    while not watch.stopped():
        deadline_s = min(deadline_s * ratio, found.duration_s * ratio)
        if deadline_s < fastest.duration_s * (1 + 1e-9):
            deadline_s = fastest.duration_s
        known = [fleet for fleet in (found.fleet, fastest.fleet) if fleet]
        found = _solved(problem, deadline_s, gap_fraction, watch, known)
        if found.fleet is None:
            return
        yield deadline_s, found
        if found.duration_s <= fastest.duration_s * (1 + 1e-9) or deadline_s == fastest.duration_s:
            return


def _solved(
    problem: Problem,
    deadline_s: float | None,
    gap_fraction: float,
    watch: Watch,
    start: Sequence[Fleet],
) -> Solution:
    goal = replace(problem.job.goal, deadline_s=deadline_s)
    asked = replace(problem, job=replace(problem.job, goal=goal))
    return solve(asked, gap_fraction=gap_fraction, watch=watch, start=start)


def _undominated(points: Sequence[tuple[float, Solution]]) -> Iterator[tuple[float, Solution]]:
    """Yield the points that no other one matches in both cost and time, fastest first."""
    least_usd = math.inf
    for deadline_s, point in sorted(points, key=lambda p: (p[1].duration_s, p[1].cost_usd)):
        if point.fleet is not None and point.cost_usd < least_usd:
            least_usd = point.cost_usd
            yield deadline_s, point
