"""One search, timed."""

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from spotwright.domain.fleet import Fleet
from spotwright.domain.plan import Objective
from spotwright.planner.problem import Problem, Solution, Watch
from spotwright.planner.solve import solve

LIMIT_S = 20.0  # a search that takes longer is stopped and reported as open
HURRIED_S = 5.0  # where one of the same kind is open already, or nothing is asked of the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one search took and proved."""

    what: str
    solution: Solution
    wall_s: float
    cpu_s: float
    objective: Objective

    @property
    def closed(self) -> bool:
        """Whether the gap was proved in time."""
        return self.solution.complete

    @property
    def value(self) -> float:
        """The dollars or seconds found; infinite without a fleet."""
        by_objective = {
            Objective.COST: self.solution.cost_usd,
            Objective.TIME: self.solution.duration_s,
        }
        return by_objective[self.objective]

    @property
    def gap_fraction(self) -> float:
        """How much better than the answer the optimum could still be."""
        if self.solution.fleet is None:
            return 0.0 if self.closed else 1.0
        return max(0.0, 1 - self.solution.lower_bound / self.value)

    @property
    def nodes(self) -> int:
        """Workers of the fleet."""
        fleet = self.solution.fleet
        return sum(group.node_count for group in fleet.workers) if fleet else 0

    @property
    def types(self) -> int:
        """Different instance types among the workers."""
        fleet = self.solution.fleet
        return len({group.instance_type.name for group in fleet.workers}) if fleet else 0


def timed_solve(
    what: str,
    problem: Problem,
    *,
    objective: Objective = Objective.COST,
    start: Sequence[Fleet] = (),
    limit_s: float = LIMIT_S,
) -> Run:
    """Solve, and say on stderr how it went."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    watch = Watch(stopped=lambda: time.perf_counter() - wall_s > limit_s)
    solution = solve(problem, objective=objective, watch=watch, start=start)
    run = Run(
        what=what,
        solution=solution,
        wall_s=time.perf_counter() - wall_s,
        cpu_s=time.process_time() - cpu_s,
        objective=objective,
    )
    tell(_told(run))
    return run


def timed_fastest(problem: Problem) -> Run:
    """Look for the fastest fleet; deadlines are multiples of its time, proved or not."""
    what = f"{problem.job.name}, fastest"
    return timed_solve(what, problem, objective=Objective.TIME, limit_s=HURRIED_S)


def patience_s(runs: Sequence[Run]) -> float:
    """Return how long the next search may take, after others of its kind."""
    return LIMIT_S if all(run.closed for run in runs) else HURRIED_S


def tell(text: str) -> None:
    """Report progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def _told(run: Run) -> str:
    found = f"{run.nodes} nodes, {run.types} types" if run.solution.fleet else "no fleet"
    amount = f"{run.solution.cost_usd:.2f} $" if math.isfinite(run.solution.cost_usd) else "-"
    state = "" if run.closed else f"  OPEN, gap {100 * run.gap_fraction:.1f} %"
    return (
        f"  {run.wall_s:6.2f} s  {run.cpu_s:6.2f} CPU s  {run.solution.box_count:6d} boxes  "
        f"{run.what}: {found}, {amount}{state}"
    )
