"""A linear program over node counts, solved by OR-Tools; bounds are recomputed from its duals.

    minimise    objective . x + constant
    subject to  low <= rows . x <= high,   lower <= x <= upper

For any multipliers m of the rows, objective . x >= m . b + sum_i min over [lower, upper] of
(objective - m . rows)_i x_i, where b is low where m > 0 and high where m < 0. The bound in use is
this one, at the multipliers the solver found: it holds whatever the solver's tolerances are. That a
program has no solution is proved in the same way: with no objective, the bound is above 0.

Why GLOP, filled from arrays: docs/decisions/0005-planner.md; `make bench-planner` measures again.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder_helper  # model_builder imports pandas
from scipy.sparse import csr_matrix

from spotwright.domain.errors import SolverGaveUpError

Floats = NDArray[np.float64]

_TOLERANCE = 1e-7
_ROUNDING = 1e-9
_EASE = 10.0  # times the tolerance: solvers call programs empty that hold a point by a hair
_NOISE = 1e-12  # of a row's largest figure: what differences leave, and solvers scale up
# Far beyond what programs take; GLOP was seen to cycle for ever on a badly scaled one. Counted in
# steps, not seconds, so that the same program always has the same answer.
_LIMITS = "max_number_of_iterations: 5000"
_OPTIMAL = model_builder_helper.SolveStatus.OPTIMAL
_INFEASIBLE = model_builder_helper.SolveStatus.INFEASIBLE


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """The program; rows may be unbounded on either side."""

    objective: Floats
    constant: float
    rows: Floats  # (rows, columns)
    low: Floats
    high: Floats
    lower: Floats
    upper: Floats

    def relaxed(self, hot: NDArray[np.bool_]) -> "Optimum | Empty":
        """Solve with fractions allowed.

        Most rows never bind. Only those marked in `hot` are given to the solver; one that its
        solution breaks is marked, and the rest is solved again.

        Raises:
            SolverGaveUpError: neither an optimum nor a proof that there is no solution.
        """
        columns = np.flatnonzero((self.upper > 0) | (self.lower > 0))
        point = np.zeros(len(self.objective))
        while True:
            rows = np.flatnonzero(hot)
            solver = self._solved(rows=rows, columns=columns)
            if solver is None:
                return self._emptiness(hot)
            point[columns] = solver.variable_values()
            sums = self.rows @ point
            broken = (sums > self.high + _slack(self.high)) | (sums < self.low - _slack(self.low))
            broken &= ~hot
            if not broken.any():
                multipliers = np.zeros(len(self.low))
                multipliers[rows] = solver.dual_values()
                return Optimum(point, multipliers)
            hot |= broken

    def _emptiness(self, hot: NDArray[np.bool_]) -> "Empty":
        """Prove that there is no solution: the least by which rows must be broken is above 0.

        Raises:
            SolverGaveUpError: it is not, or too little to be sure.
        """
        multipliers = np.zeros(len(self.low))
        if (self.lower > self.upper).any() or (self.low > self.high).any():
            return Empty(multipliers)
        least, most = (np.flatnonzero(hot & np.isfinite(ends)) for ends in (self.low, self.high))
        rows = np.concatenate((least, most))
        scale = np.abs(self.rows).max(axis=1, initial=0.0)[rows]
        scale[scale == 0] = 1.0
        signs = np.repeat((1.0, -1.0), (len(least), len(most)))
        eased = replace(
            self,
            objective=np.append(np.zeros_like(self.objective), 1.0),
            rows=np.column_stack((self.rows[rows], signs * scale)),
            low=np.where(signs > 0, self.low[rows], -np.inf),
            high=np.where(signs < 0, self.high[rows], np.inf),
            lower=np.append(self.lower, 0.0),
            upper=np.append(self.upper, np.inf),
        )
        everything = np.arange(len(rows)), np.arange(len(eased.lower))
        solver = eased._solved(rows=everything[0], columns=everything[1])
        if solver is not None:
            np.add.at(multipliers, rows, solver.dual_values())
            if self.is_empty_by(multipliers):
                return Empty(multipliers)
        raise SolverGaveUpError(f"glop calls a program of {len(rows)} rows empty, without proof")

    def is_empty_by(self, multipliers: Floats) -> bool:
        """Tell whether multipliers prove that there is no solution (Farkas)."""
        nothing = replace(self, objective=np.zeros_like(self.objective), constant=0.0)
        least, _ = nothing.bound(multipliers)
        if least <= 0:
            return False
        limits = np.where(multipliers > 0, self.low, self.high)
        weights = np.where(np.isfinite(limits), np.abs(multipliers), 0.0)
        size = weights @ np.where(np.isfinite(limits), np.abs(limits), 0.0)
        size += weights @ np.abs(self.rows) @ np.abs(self.upper)  # before anything cancels out
        return bool(least > _ROUNDING * size)

    def bound(self, multipliers: Floats) -> tuple[float, Floats]:
        """Return a lower bound of the optimum, and the reduced costs it was made with."""
        limits = np.where(multipliers > 0, self.low, self.high)
        active = np.isfinite(limits)  # rounding may leave a multiplier where there is no limit
        multipliers = np.where(active, multipliers, 0.0)
        reduced = self.objective - multipliers @ self.rows
        least = np.where(reduced > 0, self.lower, self.upper)
        bound = reduced @ least + multipliers[active] @ limits[active] + self.constant
        return float(bound), reduced

    def with_row(self, row: Floats, high: float) -> "LinearProgram":
        """Add row . x <= high."""
        return replace(
            self,
            rows=np.vstack((self.rows, row)),
            low=np.append(self.low, -np.inf),
            high=np.append(self.high, high),
        )

    def _solved(
        self, *, rows: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> model_builder_helper.ModelSolverHelper | None:
        if (self.lower > self.upper).any() or (self.low > self.high).any():
            return None
        width = len(columns)
        figures = self.rows[np.ix_(rows, columns)]
        largest = np.abs(figures).max(axis=1, initial=0.0, keepdims=True)
        figures[np.abs(figures) < _NOISE * largest] = 0.0
        matrix = csr_matrix(
            (
                figures.ravel(),
                np.tile(np.arange(width, dtype=np.int32), len(rows)),
                width * np.arange(len(rows) + 1, dtype=np.int32),
            ),
            shape=(len(rows), width),
        )
        model: Any = model_builder_helper.ModelBuilderHelper()  # its stubs name other types
        model.fill_model_from_sparse_data(
            self.lower[columns],
            self.upper[columns],
            self.objective[columns],
            (self.low - _EASE * _slack(self.low))[rows],
            (self.high + _EASE * _slack(self.high))[rows],
            matrix,
        )
        solver = model_builder_helper.ModelSolverHelper("glop")
        solver.set_solver_specific_parameters(_LIMITS)
        solver.solve(model)
        if solver.status() == _INFEASIBLE:
            return None
        if solver.status() != _OPTIMAL:
            raise SolverGaveUpError(f"glop ended as {solver.status()}, {len(rows)} x {width}")
        return solver


def _slack(limits: Floats) -> Floats:
    """Return what a row may be off by, for the solver's tolerances."""
    finite = np.where(np.isfinite(limits), limits, 0.0)
    return _TOLERANCE * np.maximum(1.0, np.abs(finite))


@dataclass(frozen=True, slots=True)
class Optimum:
    """Where a relaxation is smallest, and the multipliers that prove it."""

    point: Floats
    multipliers: Floats


@dataclass(frozen=True, slots=True)
class Empty:
    """There is no solution, as these multipliers prove."""

    multipliers: Floats
