"""Plans that keep their deadline with a given probability, interruptions being random.

Two things are asked of a fleet: that its expected duration keeps the deadline, and that enough of
its simulated runs do. The search knows the first. If the second fails, it is repeated with a cut:
fleets must be expected to end earlier, by as much as the runs of the failed fleet spread. A fleet
without spot nodes is certain, so the best of those competes. The bound of the first search holds
for every fleet of which both are true; that none is sure enough is not proved by cuts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spotwright.domain.fleet import Fleet
from spotwright.domain.plan import Objective
from spotwright.perfmodel.predict import predict, simulated_durations_s
from spotwright.planner.problem import Problem, Solution, Watch
from spotwright.planner.solve import solve

_MOST_CUTS = 6
_MARGIN = 1 - 1e-6
_NARROW = 1e-3  # of a deadline: between two that close, no further one is tried


@dataclass(frozen=True, slots=True, kw_only=True)
class SureSolution:
    """A solution, and how surely it keeps the deadline."""

    solution: Solution
    deadline_probability: float | None  # None: no deadline, or no fleet
    best_probability: float | None  # of the fleets that were tried; what can be had


def solve_surely(
    problem: Problem,
    *,
    objective: Objective = Objective.COST,
    gap_fraction: float = 1e-3,
    watch: Watch | None = None,
    start: Sequence[Fleet] = (),
) -> SureSolution:
    """Find the best fleet that keeps the deadline with the job's confidence."""
    asked = _Asked(problem, objective, gap_fraction, watch or Watch())
    first = asked.solved(problem, start)
    if first.fleet is None or problem.job.goal.deadline_s is None:
        return SureSolution(solution=first, deadline_probability=None, best_probability=None)
    chance, needed_s = _simulated(problem, first)
    if chance >= problem.job.goal.confidence_fraction:
        return SureSolution(solution=first, deadline_probability=chance, best_probability=chance)
    return asked.cut(first, chance, needed_s)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is searched for."""

    problem: Problem
    objective: Objective
    gap_fraction: float
    watch: Watch

    def solved(self, problem: Problem, start: Sequence[Fleet] = ()) -> Solution:
        """Search a problem."""
        return solve(
            problem,
            objective=self.objective,
            gap_fraction=self.gap_fraction,
            watch=self.watch,
            start=start,
        )

    def cut(self, first: Solution, chance: float, needed_s: float) -> SureSolution:
        """Search again with earlier deadlines until a fleet is sure enough."""
        tried = [(chance, first), *self._certain(), *self._earlier(first, needed_s)]
        if not self._sure(tried):
            tried += self._by_other_objective()
        return self._best(self._sure(tried), first, max(chance for chance, _ in tried))

    def _sure(self, tried: Sequence[tuple[float, Solution]]) -> list[tuple[float, Solution]]:
        return [(chance, found) for chance, found in tried if self._is_sure(chance)]

    def _is_sure(self, chance: float) -> bool:
        return chance >= self.problem.job.goal.confidence_fraction

    def _earlier(self, found: Solution, needed_s: float) -> Iterator[tuple[float, Solution]]:
        """Yield fleets that are expected to end earlier.

        Of a fleet that is not sure enough, the next ends earlier by as much as its runs spread.
        Where one is sure enough, or none is left, the next ends later again, by half as much.
        """
        goal, early_s = self.problem.job.goal, 0.0
        assert goal.deadline_s is not None
        late_s, wanted_s = found.duration_s, found.duration_s * goal.deadline_s / needed_s
        for _ in range(_MOST_CUTS):
            deadline_s = min(wanted_s, late_s * _MARGIN)
            if deadline_s <= early_s:
                deadline_s = (early_s + late_s) / 2
            if late_s - early_s < _NARROW * late_s or self.watch.stopped():
                return
            job = replace(self.problem.job, goal=replace(goal, deadline_s=deadline_s))
            found = self.solved(replace(self.problem, job=job))
            chance = 1.0
            if found.fleet is not None:
                chance, needed_s = _simulated(self.problem, found)
                yield chance, found
            if self._is_sure(chance):
                early_s = deadline_s
            else:
                late_s, wanted_s = found.duration_s, found.duration_s * goal.deadline_s / needed_s

    def _by_other_objective(self) -> list[tuple[float, Solution]]:
        """Return the fastest fleet for the cheapest, and the cheapest that is sure for the fastest.

        No deadline is earlier than that of the fastest fleet, and none but a few are tried.
        """
        if self.objective is Objective.COST:
            found = replace(self, objective=Objective.TIME).solved(self.problem)
            return [] if found.fleet is None else [(_simulated(self.problem, found)[0], found)]
        other = solve_surely(self.problem, gap_fraction=self.gap_fraction, watch=self.watch)
        chance = other.deadline_probability
        return [] if chance is None else [(chance, other.solution)]

    def _certain(self) -> list[tuple[float, Solution]]:
        """Return the best fleet that nothing is taken from, if there is one."""
        steady = self.problem.on_demand()
        if self.problem.worker_offers and not steady.worker_offers:
            return []
        found = self.solved(steady)
        return [(1.0, found)] if found.fleet is not None else []

    def _best(
        self, sure: Sequence[tuple[float, Solution]], first: Solution, best_chance: float
    ) -> SureSolution:
        if not sure:
            nothing = replace(
                first, fleet=None, cost_usd=math.inf, duration_s=math.inf, complete=False
            )
            return SureSolution(
                solution=nothing, deadline_probability=None, best_probability=best_chance
            )
        chance, chosen = min(sure, key=lambda pair: pair[1].value(self.objective))
        proved = chosen.value(self.objective) * (1 - self.gap_fraction) <= first.lower_bound
        solution = replace(
            chosen, lower_bound=first.lower_bound, complete=first.complete and proved
        )
        return SureSolution(
            solution=solution, deadline_probability=chance, best_probability=best_chance
        )


def _simulated(problem: Problem, solution: Solution) -> tuple[float, float]:
    """Return the share of runs that end in time, and the time in which enough of them end."""
    fleet, goal = solution.fleet, problem.job.goal
    assert fleet is not None
    assert goal.deadline_s is not None
    prediction = predict(problem.job, fleet, problem.gpu_facts)
    runs_s = np.sort(simulated_durations_s(problem.job, prediction))
    enough = math.ceil(goal.confidence_fraction * len(runs_s)) - 1
    needed_s = float(runs_s[max(enough, 0)])
    return float((runs_s <= goal.deadline_s * (1 + 1e-9)).mean()), needed_s
