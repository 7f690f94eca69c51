"""The solvers inside OR-Tools, each given the same program.

    minimise objective . x   subject to   low <= rows . x <= high,   lower <= x <= upper

and in leaves, the first columns of x whole: nodes of pools. The others are speeds.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder, model_builder_helper
from ortools.math_opt.python import mathopt
from ortools.sat.python import cp_model
from scipy.sparse import csr_matrix

from spotwright.planner.linear_program import LinearProgram

Floats = NDArray[np.float64]
# Takes a program and how many of its columns are whole; returns the optimum, nan for none found.
Solve = Callable[[LinearProgram, int], float]

_GIVE_UP = timedelta(seconds=5)
_SCALE, _STEPS = 1e11, 10**6  # CP-SAT knows whole coefficients and whole columns only


def narrowed(program: LinearProgram, whole: int = 0) -> tuple[LinearProgram, int]:
    """Return a program without the columns that are fixed at 0, and how many of it are whole."""
    kept = np.flatnonzero((program.upper > 0) | (program.lower > 0))
    narrow = LinearProgram(
        objective=program.objective[kept],
        constant=program.constant,
        rows=np.ascontiguousarray(program.rows[:, kept]),
        low=program.low,
        high=program.high,
        lower=program.lower[kept],
        upper=program.upper[kept],
    )
    return narrow, int((kept < whole).sum())


def from_arrays(name: str) -> Solve:
    """Return a solver that is given arrays, through the helper under model_builder."""

    def solve(program: LinearProgram, whole: int) -> float:
        program, whole = narrowed(program, whole)
        model: Any = model_builder_helper.ModelBuilderHelper()
        model.fill_model_from_sparse_data(
            program.lower,
            program.upper,
            program.objective,
            program.low,
            program.high,
            csr_matrix(program.rows),
        )
        for i in range(whole):
            model.set_var_integrality(i, True)
        solver = model_builder_helper.ModelSolverHelper(name)
        solver.set_time_limit_in_seconds(_GIVE_UP.total_seconds())
        solver.solve(model)
        return float(solver.objective_value()) if solver.has_solution() else float("nan")

    return solve


def from_expressions(name: str) -> Solve:
    """Return a solver whose model is written down variable by variable, row by row."""

    def solve(program: LinearProgram, whole: int) -> float:
        program, _ = narrowed(program, whole)
        model: Any = model_builder.Model()
        bounds = zip(program.lower.tolist(), program.upper.tolist(), strict=True)
        x = [model.new_num_var(low, high, "") for low, high in bounds]
        for row, low, high in zip(program.rows, program.low, program.high, strict=True):
            total = model_builder.LinearExpr.weighted_sum(x, row.tolist())
            model.add_linear_constraint(total, float(low), float(high))
        model.minimize(model_builder.LinearExpr.weighted_sum(x, program.objective.tolist()))
        solver: Any = model_builder.Solver(name)
        solver.solve(model)
        return float(solver.objective_value)

    return solve


def math_opt(solver: mathopt.SolverType) -> Solve:
    """Return a MathOpt solver that gets a new model every time."""

    def solve(program: LinearProgram, whole: int) -> float:
        model = _MathOptModel(*narrowed(program, whole))
        return _objective(mathopt.solve(model.model, solver, params=_parameters()))

    return solve


class MathOptIncremental:
    """One MathOpt model that is changed into each program in turn and starts from the last basis.

    Columns that are fixed at 0 stay in, so that the shape of the programs stays the same.
    """

    def __init__(self, solver: mathopt.SolverType) -> None:
        self._type = solver
        self._model: _MathOptModel | None = None
        self._solver: Any = None

    def __call__(self, program: LinearProgram, _whole: int) -> float:
        """Return the optimum."""
        if self._model is None or self._model.program.rows.shape != program.rows.shape:
            self._model = _MathOptModel(program, 0)
            self._solver = mathopt.IncrementalSolver(self._model.model, self._type)
        else:
            self._model.change(program)
        return _objective(self._solver.solve(params=_parameters()))


class _MathOptModel:
    def __init__(self, program: LinearProgram, whole: int) -> None:
        self.program, self.model = program, mathopt.Model()
        bounds = zip(program.lower.tolist(), program.upper.tolist(), strict=True)
        self._x = [
            self.model.add_variable(lb=low, ub=high, is_integer=i < whole)
            for i, (low, high) in enumerate(bounds)
        ]
        self._rows = []
        for row, low, high in zip(program.rows, program.low, program.high, strict=True):
            constraint = self.model.add_linear_constraint(lb=float(low), ub=float(high))
            for i in np.flatnonzero(row):
                constraint.set_coefficient(self._x[i], float(row[i]))
            self._rows.append(constraint)
        for variable, cost in zip(self._x, program.objective.tolist(), strict=True):
            self.model.objective.set_linear_coefficient(variable, cost)

    def change(self, program: LinearProgram) -> None:
        """Change what differs."""
        old, self.program = self.program, program
        for i in np.flatnonzero(old.lower != program.lower):
            self._x[i].lower_bound = float(program.lower[i])
        for i in np.flatnonzero(old.upper != program.upper):
            self._x[i].upper_bound = float(program.upper[i])
        for i in np.flatnonzero(old.objective != program.objective):
            self.model.objective.set_linear_coefficient(self._x[i], float(program.objective[i]))
        for i in np.flatnonzero(old.low != program.low):
            self._rows[i].lower_bound = float(program.low[i])
        for i in np.flatnonzero(old.high != program.high):
            self._rows[i].upper_bound = float(program.high[i])
        for i, j in zip(*np.nonzero(old.rows != program.rows), strict=True):
            self._rows[i].set_coefficient(self._x[j], float(program.rows[i, j]))


def cp_sat(program: LinearProgram, whole: int) -> float:
    """Solve in whole nodes by CP-SAT, one worker; speeds in millionths of their range."""
    program, whole = narrowed(program, whole)
    is_speed = np.arange(len(program.objective)) >= whole
    least = np.where(is_speed, program.lower, 0.0)
    step = np.where(is_speed, (program.upper - program.lower) / _STEPS, 1.0)
    model = cp_model.CpModel()
    lowest = np.where(is_speed, 0, program.lower).astype(int).tolist()
    highest = np.where(is_speed, _STEPS, program.upper).astype(int).tolist()
    x = [model.new_int_var(*ends, "") for ends in zip(lowest, highest, strict=True)]
    for row, low, high in zip(program.rows, program.low, program.high, strict=True):
        if not row.any():
            continue
        total, scale = _scaled(x, row * step)
        if np.isfinite(low):
            model.add(total >= int(np.floor((low - row @ least) * scale)))
        if np.isfinite(high):
            model.add(total <= int(np.ceil((high - row @ least) * scale)))
    total, scale = _scaled(x, program.objective * step)
    model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = _GIVE_UP.total_seconds()
    found = solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    optimum = solver.objective_value / scale + float(program.objective @ least)
    return optimum if found else float("nan")


def _scaled(x: Sequence[cp_model.IntVar], row: Floats) -> tuple[Any, float]:
    scale = float(_SCALE / np.abs(row).max())
    return cp_model.LinearExpr.weighted_sum(x, np.rint(row * scale).astype(int).tolist()), scale


def _objective(result: mathopt.SolveResult) -> float:
    return (
        float(result.objective_value()) if result.has_primal_feasible_solution() else float("nan")
    )


def _parameters() -> mathopt.SolveParameters:
    return mathopt.SolveParameters(time_limit=_GIVE_UP)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep HiGHS from printing its name at every solve, which it does below Python."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def linear_back_ends() -> Mapping[str, Solve]:
    """Return everything that solves relaxations; the first is in use."""
    return {
        "GLOP, from arrays": from_arrays("glop"),
        "GLOP, model_builder expressions": from_expressions("glop"),
        "GLOP, MathOpt, incremental": MathOptIncremental(mathopt.SolverType.GLOP),
        "GLOP, MathOpt, new model": math_opt(mathopt.SolverType.GLOP),
        "HiGHS, from arrays": from_arrays("highs"),
        "HiGHS, MathOpt, new model": math_opt(mathopt.SolverType.HIGHS),
        "PDLP, from arrays": from_arrays("pdlp"),
    }


def whole_back_ends() -> Mapping[str, Solve]:
    """Return everything that solves programs in whole nodes."""
    return {
        "SCIP, from arrays": from_arrays("scip"),
        "CP-SAT, 1 worker, coefficients x 1e11": cp_sat,
        "HiGHS, from arrays": from_arrays("highs"),
        "HiGHS, MathOpt": math_opt(mathopt.SolverType.HIGHS),
        "SCIP, MathOpt": math_opt(mathopt.SolverType.GSCIP),
    }
