"""What a relaxation says whose optimum is at a given point."""

import numpy as np
from numpy.typing import NDArray

from spotwright.planner.branch_and_bound import Relaxed
from spotwright.planner.linear_program import LinearProgram


def relaxed_at(point: NDArray[np.float64]) -> Relaxed:
    nothing, no_rows = np.zeros_like(point), np.zeros(0)
    program = LinearProgram(
        objective=nothing,
        constant=0.0,
        rows=np.zeros((0, len(point))),
        low=no_rows,
        high=no_rows,
        lower=nothing,
        upper=np.ceil(point),
    )
    return Relaxed(
        bound=0.0,
        promise=0.0,
        point=point,
        fleets=None,
        lower=program.lower,
        upper=program.upper,
        reduced=nothing,
        program=program,
        asked=True,
    )
