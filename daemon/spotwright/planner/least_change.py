"""The least that a figure of a job must give for some fleet to meet the goal.

It lies between the value now, which is proved too tight, and one that works. Both are brought
closer until the doubt left is half a per cent of the change; of counts, until one less is too few.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec
from spotwright.domain.plan import Objective
from spotwright.planner.confidence import solve_surely
from spotwright.planner.knobs import Knob
from spotwright.planner.problem import Problem, Watch, at_most
from spotwright.planner.savings import used_of
from spotwright.planner.solve import solve

_ANY_FLEET = 1 - 1e-6  # a gap at which the first fleet that is found ends the search
_DOUBT = 0.005  # of the change
_GROWTH, _MOST_GROWTHS = 1.5, 50
_BOXES = 2000  # of each search
_MOST_ENDED = 2  # searches for one figure that end without an answer; they take longest
_GOALS = {"goal.deadline": Objective.TIME, "goal.budget": Objective.COST}


@dataclass(frozen=True, slots=True)
class Least:
    """The least value of a figure that helps."""

    value: float
    proved: bool  # less would not do; False: the search for less was ended


class Judge:
    """Asks the planner whether changed jobs are possible."""

    def __init__(self, problem_of: Callable[[JobSpec], Problem], watch: Watch) -> None:
        """Judge jobs by the problems they make, while the watch allows."""
        self._problem_of, self._watch = problem_of, watch
        self._proved, self._ended_count = True, 0

    @property
    def stopped(self) -> bool:
        """Whether no more should be asked."""
        return self._watch.stopped()

    def possible(self, job: JobSpec) -> bool:
        """Tell whether any fleet meets the goal; the first that is found will do."""
        return self._any(job) is not None

    def least(self, knob: Knob) -> Least | None:
        """Return the least value that helps; None: none does."""
        self._proved, self._ended_count = True, 0
        known = self._any(knob.turned(knob.loosest))
        if known is None:
            return None
        if knob.limit in _GOALS:
            value = self._least_goal(knob, _GOALS[knob.limit], known)
        elif knob.is_used_up:
            value = self._least_used(knob, known)
        else:
            value = self._bisected(knob, knob.now, self._enough(knob, knob.now))
        return Least(value, self._proved) if math.isfinite(value) else None

    def _any(self, job: JobSpec, start: Sequence[Fleet] = ()) -> Fleet | None:
        sure = solve_surely(
            self._problem_of(job),
            gap_fraction=_ANY_FLEET,
            watch=at_most(self._watch, _BOXES),
            start=start,
        )
        fleet, complete = sure.solution.fleet, sure.solution.complete
        self._proved &= fleet is not None or complete
        self._ended_count += fleet is None and not complete and sure.best_probability is None
        return fleet

    def _least_used(self, knob: Knob, known: Fleet) -> float:
        """Return the least of a limit: no more than a fleet uses that is known."""
        spent = self._spent(knob, known)
        if self._any(knob.turned(spent), [known]) is None:
            spent = self._enough(knob, spent)
        return self._bisected(knob, knob.now, spent)

    def _spent(self, knob: Knob, fleet: Fleet) -> float:
        return max(knob.now, used_of(knob.turned(knob.loosest), knob, fleet))

    def _least_goal(self, knob: Knob, objective: Objective, known: Fleet) -> float:
        """Return the least deadline or budget: the optimum without it, as exactly as it matters."""
        problem = self._problem_of(knob.turned(knob.loosest))
        gap_fraction, start = 1e-3, known
        while True:
            found = solve(
                problem,
                objective=objective,
                gap_fraction=gap_fraction,
                watch=at_most(self._watch, _BOXES),
                start=(start,),
            )
            finer = max(0.5 * _DOUBT * (1 - knob.now / found.value(objective)), 1e-7)
            if finer >= gap_fraction or found.fleet is None:
                break
            gap_fraction, start = finer, found.fleet
        self._proved &= found.complete
        value = found.value(objective) * (1 + 1e-9)
        if self._any(knob.turned(value), [found.fleet or known]) is not None:
            return value
        enough = self._enough(knob, value)  # what is expected in time is not sure enough
        return self._bisected(knob, max(knob.now, found.lower_bound), enough)

    def _enough(self, knob: Knob, value: float) -> float:
        """Return some value that suffices: ever looser ones are tried; infinite: none was found."""
        for _ in range(_MOST_GROWTHS):
            if self.stopped:
                break
            if knob.falls:
                value = value / 2 if value > 1e-3 * knob.now else 0.0
            else:
                value = min(max(value * _GROWTH, value + 1), knob.loosest)
            value = math.ceil(value) if knob.whole else value
            if value == knob.loosest or self.possible(knob.turned(value)):
                return value
        self._proved = False
        return knob.loosest

    def _bisected(self, knob: Knob, too_tight: float, enough: float) -> float:
        """Close in on the least value that suffices."""
        if math.isinf(enough):
            return enough
        unit = self._unit(knob)
        if unit:
            too_tight, enough = (unit * math.floor(value / unit) for value in (too_tight, enough))
        while abs(enough - too_tight) > (unit or _DOUBT * abs(enough - knob.now)):
            if self.stopped or self._ended_count > _MOST_ENDED:
                self._proved = False
                break
            middle = (too_tight + enough) / 2
            middle = unit * math.floor(middle / unit) if unit else middle
            fleet = self._any(knob.turned(middle))
            if fleet is None:
                too_tight = middle
            else:
                enough = min(middle, self._spent(knob, fleet)) if unit else middle
        return enough

    def _unit(self, knob: Knob) -> int:
        """Return what every sum of whole nodes is a multiple of; 0 for what is not counted."""
        if not knob.whole:
            return 0
        if not knob.limit.startswith("limits.max_vcpus."):
            return 1
        problem = self._problem_of(knob.turned(knob.now))
        offers = (*problem.worker_offers, *problem.server_offers)
        vcpus = [offer.instance_type.vcpu_count for offer in offers]
        return math.gcd(*map(int, vcpus)) if all(v == int(v) for v in vcpus) else 1
