"""Which of many fleets is best: by what is minimised, of equal ones by the other measure."""

import numpy as np

from spotwright.domain.plan import Objective
from spotwright.planner.context import Values

Rank = tuple[float, float]  # the less the better; infinite: no fleet meets the goal


def best_value(values: Values, objective: Objective) -> tuple[Rank, int]:
    """Return the rank and the index of the best of one fleet or more."""
    other = values.duration_s if objective is Objective.COST else values.cost_usd
    equal = np.flatnonzero(values.objective == values.objective.min())
    index = int(equal[np.argmin(other[equal])])
    return (float(values.objective[index]), float(other[index])), index
