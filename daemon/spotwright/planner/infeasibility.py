"""Why no fleet meets a goal: which limits clash, and the least each must give.

Every figure of the job is loosened by itself. One that helps when it does not restrict at all is
part of the clash; the least value that suffices is then searched between the value now, which is
proved too tight, and one that works, until the doubt left is half a per cent of the change.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec
from spotwright.domain.plan import Objective, SmallestChange
from spotwright.planner.confidence import solve_surely
from spotwright.planner.knobs import Knob, knobs
from spotwright.planner.problem import Problem, Watch, at_most, until_found
from spotwright.planner.savings import used_of
from spotwright.planner.solve import solve

_DOUBT = 0.005  # of the change
_GROWTH = 1.5
_BOXES = 600  # of each search


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasibility:
    """What stands in the way."""

    clashes: tuple[str, ...]
    changes: tuple[SmallestChange, ...]


def explain_infeasible(
    job: JobSpec, problem_of: Callable[[JobSpec], Problem], watch: Watch
) -> Infeasibility:
    """Find the limits that clash and the smallest change of each that helps by itself."""
    judge = _Judge(problem_of, watch)
    changes, clashes = [], []
    for knob in knobs(job):
        if watch.stopped():
            break
        judge.proved = True
        needed = judge.least(knob)
        if needed is None:
            continue
        doubt = "" if judge.proved else " (less may do: the search was ended)"
        changes.append(
            SmallestChange(
                limit=knob.limit,
                now=knob.now,
                needed=needed,
                proved=judge.proved,
                text=f"{knob.limit} from {knob.text(knob.now)} to {knob.text(needed)}{doubt}",
            )
        )
        at_most_needed = "it takes" if judge.proved else "it takes at most"
        clashes.append(
            f"{knob.limit} is {knob.text(knob.now)}, {at_most_needed} {knob.text(needed)}"
        )
    if watch.stopped():
        clashes.append("what would help was not examined to the end")
    elif not changes:
        clashes.append(_hopeless(job, judge))
    return Infeasibility(clashes=tuple(clashes), changes=tuple(changes))


class _Judge:
    """Asks the planner whether a changed job is possible."""

    def __init__(self, problem_of: Callable[[JobSpec], Problem], watch: Watch) -> None:
        self._problem_of, self._watch = problem_of, watch
        self.proved = True  # every answer since this was set was proved

    def least(self, knob: Knob) -> float | None:
        """Return the least value that helps; None: none does."""
        known = self._any(knob.turned(knob.loosest))
        if known is None:
            return None
        if knob.limit == "goal.deadline":
            return self._least_goal(knob, Objective.TIME, known)
        if knob.limit == "goal.budget":
            return self._least_goal(knob, Objective.COST, known)
        if knob.falls:
            return self._bisected(knob, knob.now, self._enough(knob))
        spent = self._spent(knob, known)
        enough = spent if self.possible(knob.turned(spent)) else self._enough(knob, spent)
        return self._bisected(knob, knob.now, enough)

    def possible(self, job: JobSpec) -> bool:
        """Tell whether any fleet meets the goal; the first that is found will do."""
        return self._any(job) is not None

    def _any(self, job: JobSpec, start: Sequence[Fleet] = ()) -> Fleet | None:
        found = solve_surely(
            self._problem_of(job), watch=until_found(at_most(self._watch, _BOXES)), start=start
        ).solution
        self.proved &= found.fleet is not None or found.complete
        return found.fleet

    def _spent(self, knob: Knob, fleet: Fleet) -> float:
        """Return how much of a limit a fleet uses: no more is needed."""
        return max(knob.now, used_of(knob.turned(knob.loosest), knob, fleet))

    def _least_goal(self, knob: Knob, objective: Objective, known: Fleet) -> float | None:
        """Return the least deadline or budget: the optimum without it, as exactly as it matters."""
        problem = self._problem_of(knob.turned(knob.loosest))
        found = solve(
            problem, objective=objective, watch=at_most(self._watch, _BOXES), start=(known,)
        )
        change = 1 - knob.now / found.value(objective)
        gap_fraction = 0.5 * _DOUBT * change
        if gap_fraction < 1e-3 and found.fleet is not None:
            found = solve(
                problem,
                objective=objective,
                gap_fraction=max(gap_fraction, 1e-7),
                watch=at_most(self._watch, _BOXES),
                start=(found.fleet,),
            )
        self.proved &= found.complete
        value = found.value(objective) * (1 + 1e-9)
        if self._any(knob.turned(value), [found.fleet or known]) is not None:
            return value
        enough = self._enough(knob, value)
        if math.isinf(enough):
            return None
        return self._bisected(knob, max(knob.now, found.lower_bound), enough)

    def _enough(self, knob: Knob, first: float | None = None) -> float:
        """Return some value that suffices: ever looser ones are tried."""
        value = knob.now if first is None else first
        while not self._watch.stopped():
            if knob.falls:
                value = value / 2 if value > 1e-3 * knob.now else 0.0
            else:
                value = min(max(value * _GROWTH, value + 1), knob.loosest)
            value = math.ceil(value) if knob.whole else value
            if value in (knob.loosest, 0.0) or self.possible(knob.turned(value)):
                return value
        self.proved = False
        return knob.loosest  # which is known to suffice

    def _bisected(self, knob: Knob, too_tight: float, enough: float) -> float:
        """Close in on the least value that suffices."""
        while abs(enough - too_tight) > (1 if knob.whole else _DOUBT * abs(enough - knob.now)):
            if self._watch.stopped():
                self.proved = False
                break
            middle = (too_tight + enough) / 2
            middle = math.floor(middle) if knob.whole else middle
            fleet = self._any(knob.turned(middle))
            if fleet is None:
                too_tight = middle
            else:
                enough = min(middle, self._spent(knob, fleet)) if knob.whole else middle
        return enough


def _hopeless(job: JobSpec, judge: _Judge) -> str:
    """Say what is wrong where no single figure helps."""
    goal = replace(job.goal, deadline_s=None, budget_usd=None)
    if judge.possible(replace(job, goal=goal)):
        return "deadline and budget cannot both be met: loosening either alone does not help"
    loose = replace(job, goal=goal)
    for knob in knobs(loose):
        loose = _turned_in(loose, knob.limit)
    if judge.possible(loose):
        return "several limits stand in the way at once: no single change helps"
    return (
        "nothing that the limits allow can train this job: no type has the memory, or every fleet "
        "lies outside the range that the loss law was fitted on"
    )


def _turned_in(job: JobSpec, limit: str) -> JobSpec:
    knob = next(knob for knob in knobs(job) if knob.limit == limit)
    return knob.turned(knob.loosest)
