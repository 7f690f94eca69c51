"""From the rows of a box to what they prove.

In a box, cost and time are both bounded below by ratios with one denominator D > 0, linear in x:

    cost >= (cost . x + cost0) / D(x)          time >= seconds / D(x)

so that a fleet which costs at most u obeys cost . x + cost0 - u D(x) <= 0: the objective of a
linear program whose optimum above 0 proves that there is none. The other goal is a row. From the
program's multipliers follow the least u at which a fleet may exist, which is the box's bound, and
the whole fleets that are left (point_enumeration.py).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.plan import Objective
from spotwright.planner.branch_and_bound import Relaxed
from spotwright.planner.linear_program import LinearProgram, Optimum
from spotwright.planner.point_enumeration import enumerate_fleets, reach
from spotwright.planner.switching import SwitchingBound

Floats = NDArray[np.float64]

_WHOLE = 1e-6
_LOWER_TARGETS = np.linspace(0.0, 1.0, 33)[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Lower bounds of cost and time over one denominator, by column.

    Attributes:
        cost: dollars times the denominator.
        seconds: of the time, times the denominator.
        denominator: D.
        range: what D can be.
        switching: dollars beside the ratio (switching.py).
    """

    cost: Floats
    cost0: float
    seconds: float
    denominator: Floats
    denominator0: float = 0.0
    range: tuple[float, float]
    switching: SwitchingBound

    def at(self, x: Floats, objective: Objective) -> float:
        """Return the bound of the objective at a point."""
        below = self.denominator @ x + self.denominator0
        if objective is Objective.COST:
            cost, cost0 = self.whole_cost()
            return float((cost @ x + cost0) / below)
        return float(self.seconds / below)

    def whole_cost(self) -> tuple[Floats, float]:
        """Return dollars times the denominator, switching counted at the least denominator."""
        cost, cost0 = self.cost.copy(), self.cost0 + self.range[0] * self.switching.constant
        cost[: len(self.switching.per_node)] += self.range[0] * self.switching.per_node
        return cost, cost0

    def least_cost(self) -> tuple[Floats, float]:
        """Return dollars at the largest denominator, switching counted in full."""
        most = self.range[1]
        cost, cost0 = self.cost / most, self.cost0 / most + self.switching.constant
        cost[: len(self.switching.per_node)] += self.switching.per_node
        return cost, cost0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxRows:
    """The rows that hold in a box; the first columns are pools, others are auxiliary.

    The last two rows are spare: the question asked of the box puts the other goal there, and what
    switching costs beside the rent.
    """

    rows: Floats
    low: Floats
    high: Floats
    lower: Floats
    upper: Floats
    node_range: tuple[int, int]
    ratios: Ratios


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether a box holds a fleet within some caps."""

    box: BoxRows
    objective: Objective
    cost_cap: float
    time_cap: float

    @property
    def target(self) -> float:
        """What the objective has to beat."""
        return self.cost_cap if self.objective is Objective.COST else self.time_cap

    def program(self) -> LinearProgram:
        """Return the program whose optimum above 0 says no."""
        box, ratios = self.box, self.box.ratios
        below, below0 = ratios.denominator, ratios.denominator0
        cost, seconds = ratios.whole_cost(), (np.zeros_like(below), ratios.seconds)
        asked, other, cap = (
            (cost, seconds, self.time_cap)
            if self.objective is Objective.COST
            else (seconds, cost, self.cost_cap)
        )
        u = self.target if math.isfinite(self.target) else 0.0
        box.low[-2:], box.high[-2:] = -np.inf, np.inf
        if math.isfinite(self.cost_cap) and ratios.switching.per_node.any():
            box.rows[-2], least = ratios.least_cost()
            box.high[-2] = self.cost_cap - least
        if math.isfinite(cap):
            box.rows[-1] = other[0] - cap * below
            box.high[-1] = cap * below0 - other[1]
        return LinearProgram(
            objective=asked[0] - u * below,
            constant=asked[1] - u * below0,
            rows=box.rows,
            low=box.low,
            high=box.high,
            lower=box.lower,
            upper=box.upper,
        )

    def answer(
        self, program: LinearProgram, optimum: Optimum, *, pools: int, most_counts: int
    ) -> Relaxed | None:
        """Return what the multipliers prove; None: no such fleet."""
        value, reduced = program.bound(optimum.multipliers)
        asked = math.isfinite(self.target)
        if asked and value > 0:
            return None
        slack = -value if asked else math.inf
        near = reach(
            reduced[:pools], slack, lower=program.lower[:pools], upper=program.upper[:pools]
        )
        moves = enumerate_fleets(
            near, slack, node_range=self.box.node_range, most_counts=most_counts
        )
        return Relaxed(
            bound=self._least_target(program, optimum.multipliers) if asked else 0.0,
            promise=self.box.ratios.at(optimum.point, self.objective),
            point=optimum.point,
            fleets=None if moves is None else moves.fleets(),
            lower=near.lower,
            upper=near.upper,
            reduced=reduced[:pools],
            program=program,
            asked=asked,
        )

    def _least_target(self, program: LinearProgram, multipliers: Floats) -> float:
        """Return the largest of some lower targets that the same multipliers rule out."""
        ratios, targets = self.box.ratios, self.target * _LOWER_TARGETS
        limits = np.where(multipliers > 0, program.low, program.high)
        active = np.isfinite(limits)
        kept = np.where(active, multipliers, 0.0)
        eased = np.outer(self.target - targets, ratios.denominator)
        reduced = program.objective - kept @ program.rows + eased
        least = np.where(reduced > 0, program.lower, program.upper)
        constant = program.constant + (self.target - targets) * ratios.denominator0
        values = (reduced * least).sum(axis=1) + kept[active] @ limits[active] + constant
        ruled_out = targets[values > 0]
        return float(ruled_out.max()) if len(ruled_out) else 0.0


def unsolved(lower: Floats, upper: Floats, program: LinearProgram) -> Relaxed:
    """Return what is known of a box whose program the solver gave up on: nothing."""
    middle = (program.lower + np.minimum(program.upper, program.lower + 1)) / 2
    return Relaxed(
        bound=0.0,
        promise=0.0,
        point=middle,
        fleets=None,
        lower=lower,
        upper=upper,
        reduced=np.zeros_like(lower),
        program=None,
        asked=False,
    )


def split_counts(
    lower: Floats, upper: Floats, relaxed: Relaxed, improves: Callable[[Floats], bool]
) -> tuple[list[tuple[Floats, Floats]], Floats | None]:
    """Cut by counts, so that the relaxation's point is left out; second, the point if it is whole.

    A whole point is a fleet: it is evaluated, and what is left are fleets in which some pool that
    it uses has fewer nodes, and those of more nodes.
    """
    x = np.maximum(relaxed.point[: len(lower)], 0.0)
    if relaxed.program is None:  # the solver gave up: the point means nothing
        i = int(np.argmax(upper - lower))
        if upper[i] - lower[i] < 1:
            improves(lower)  # the only fleet there is
            return [], None
        return _cut_at(lower, upper, i, math.floor((lower[i] + upper[i]) / 2)), None
    fleet = np.rint(x)
    i = int(np.argmax(np.abs(x - fleet)))
    if abs(x[i] - fleet[i]) > _WHOLE:
        return _cut_at(lower, upper, i, math.floor(x[i])), None
    improves(fleet)
    return _with_fewer(lower, upper, fleet), fleet


def _cut_at(lower: Floats, upper: Floats, i: int, at: float) -> list[tuple[Floats, Floats]]:
    below, above = upper.copy(), lower.copy()
    below[i], above[i] = at, at + 1
    return [(lower, below), (above, upper)]


def _with_fewer(lower: Floats, upper: Floats, fleet: Floats) -> list[tuple[Floats, Floats]]:
    """Cover every fleet in which some pool has fewer nodes than in a given one."""
    parts = []
    at_least = lower.copy()
    for i in np.flatnonzero(fleet > lower):
        fewer = upper.copy()
        fewer[i] = min(fewer[i], fleet[i] - 1)
        parts.append((at_least.copy(), fewer))
        at_least[i] = fleet[i]
    return parts
