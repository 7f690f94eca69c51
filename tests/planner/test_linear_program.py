"""Random programs, against scipy's solver, brute force and what weak duality says."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from spotwright.planner.linear_program import LinearProgram

Floats = NDArray[np.float64]

SEEDS = range(60)
EASED = 1e-4  # solvers are given rows a millionth looser than they are


def drawn(seed: int, *, columns: int = 5, whole: bool = False) -> LinearProgram:
    """Return a program with rows limited on one side, on both, and on neither."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 7))
    rows = random.integers(-3, 6, (count, columns)).astype(np.float64)
    if not whole:
        rows += np.round(random.normal(size=rows.shape), 3)
    lower = random.integers(0, 2, columns).astype(np.float64)
    upper = lower + random.integers(0, 4, columns)
    inside = rows @ (lower + random.random(columns) * (upper - lower))
    width = random.random(count) * random.choice([0.2, 3.0])
    low = np.where(random.random(count) < 0.5, inside - width, -np.inf)
    high = np.where(random.random(count) < 0.5, inside + width, np.inf)
    if random.random() < 0.2:  # now and then nothing is left
        high[0] = float(rows[0] @ np.where(rows[0] > 0, lower, upper)) - 0.5
        low[0] = -np.inf
    return LinearProgram(
        objective=random.normal(size=columns),
        constant=float(random.normal()),
        rows=rows,
        low=low,
        high=high,
        lower=lower,
        upper=upper,
    )


def by_scipy(program: LinearProgram) -> float | None:
    """Return the optimum; None: no solution."""
    above, below = np.isfinite(program.low), np.isfinite(program.high)
    found = linprog(
        program.objective,
        A_ub=np.vstack((program.rows[below], -program.rows[above])),
        b_ub=np.concatenate((program.high[below], -program.low[above])),
        bounds=np.stack((program.lower, program.upper), axis=1),
    )
    return float(found.fun) + program.constant if found.success else None


def value(program: LinearProgram, point: Floats) -> float:
    return float(program.objective @ point) + program.constant


def none_hot(program: LinearProgram) -> NDArray[np.bool_]:
    return np.zeros(len(program.low), dtype=np.bool_)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relaxed_optimum_is_that_of_another_solver(seed: int) -> None:
    program = drawn(seed)
    best, found = by_scipy(program), program.relaxed(none_hot(program))

    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert value(program, found.point) == pytest.approx(best, abs=EASED)
        assert program.bound(found.multipliers)[0] == pytest.approx(best, abs=EASED)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relaxed_optimum_keeps_rows_that_the_solver_was_not_given(seed: int) -> None:
    program = drawn(seed)
    found = program.relaxed(none_hot(program))

    if found is not None:
        sums = program.rows @ found.point
        assert (sums <= program.high + EASED).all()
        assert (sums >= program.low - EASED).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_were_hot_before_change_nothing(seed: int) -> None:
    program = drawn(seed)
    all_hot = np.ones(len(program.low), dtype=np.bool_)
    cold, hot = program.relaxed(none_hot(program)), program.relaxed(all_hot)

    assert (cold is None) == (hot is None)
    if cold is not None and hot is not None:
        assert value(program, cold.point) == pytest.approx(value(program, hot.point), abs=EASED)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_multipliers_give_a_bound_above_the_optimum(seed: int) -> None:
    program, random = drawn(seed), np.random.default_rng(seed)
    best = by_scipy(program)

    for size in (0.0, 0.01, 1.0, 100.0):
        bound, _ = program.bound(size * random.normal(size=len(program.low)))
        assert best is None or bound <= best + 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bound_and_its_reduced_costs_hold_at_every_point(seed: int) -> None:
    program, random = drawn(seed), np.random.default_rng(seed)
    bound, reduced = program.bound(random.normal(size=len(program.low)))
    corner = np.where(reduced > 0, program.lower, program.upper)

    for point in random.uniform(program.lower, program.upper, (200, len(program.lower))):
        sums = program.rows @ point
        if ((sums <= program.high) & (sums >= program.low)).all():
            steps = float(np.abs(reduced) @ np.abs(point - corner))
            assert value(program, point) >= bound + steps - 1e-9


def whole_points(program: LinearProgram) -> list[Floats]:
    ranges = [range(int(a), int(b) + 1) for a, b in zip(program.lower, program.upper, strict=True)]
    points = [np.array(point, dtype=np.float64) for point in product(*ranges)]
    return [
        point
        for point in points
        if (program.rows @ point <= program.high + 1e-9).all()
        and (program.rows @ point >= program.low - 1e-9).all()
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_whole_optimum_is_the_best_of_all_whole_points(seed: int) -> None:
    program = drawn(seed, whole=True)
    best = min((value(program, point) for point in whole_points(program)), default=None)

    found = program.whole(np.arange(len(program.objective)))

    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert found == pytest.approx(np.round(found), abs=1e-6)
        assert value(program, found) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_columns_that_need_not_be_whole_may_be_fractions(seed: int) -> None:
    program = drawn(seed, whole=True)
    found, best = program.whole(np.array([], dtype=np.intp)), by_scipy(program)

    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert best - 1e-3 <= value(program, found) <= best + 1e-6  # rows are eased a little


@pytest.mark.parametrize("seed", range(10))
def test_a_row_added_is_kept(seed: int) -> None:
    program = drawn(seed)
    row = np.random.default_rng(seed).normal(size=len(program.objective))
    narrower = program.with_row(row, 1.0)
    found, best = narrower.relaxed(none_hot(narrower)), by_scipy(narrower)

    assert (found is None) == (best is None)
    if found is not None:
        assert row @ found.point <= 1.0 + EASED


def equal_workers(seed: int) -> LinearProgram:
    """Return a program like those of queues in which all workers are equal.

    Columns are the nodes of two pools, steps/s y and samples/s V; rows leave a hair's breadth
    around y = V = rate * nodes, at the upper bounds of both pools.
    """
    random = np.random.default_rng(seed)
    each, rate, hair = int(random.integers(1, 7)), random.uniform(0.1, 5.0), 1e-9
    tangent = rate * random.uniform(0.99, 1.0)
    most = rate * 2 * each * random.uniform(1.0, 1.01)
    return LinearProgram(
        objective=np.array([3e4, 1e4, 0.0, 0.0]),
        constant=4e3,
        rows=np.array(
            [
                [1.0, 1.0, 0.0, 0.0],
                [rate, rate, 0.0, -1.0],
                [rate, rate, 0.0, -1.0],
                [0.0, 0.0, -1.0, 1.0],
                [0.0, 0.0, -1.0, 1.0],
                [-rate, -rate, 1.0, 0.0],
                [-tangent, -tangent, 1.0, 0.0],
            ]
        ),
        low=np.array([2.0 * each, -hair, -np.inf, -np.inf, -hair, -hair, -np.inf]),
        high=np.array(
            [2.0 * each, np.inf, hair, hair, np.inf, np.inf, (rate - tangent) * 2 * each + hair]
        ),
        lower=np.array([0.0, 0.0, 0.0, 0.9 * most]),
        upper=np.array([each, each, most, most]),
    )


@pytest.mark.parametrize("seed", range(100))
def test_a_program_that_holds_a_point_by_a_hair_is_not_called_empty(seed: int) -> None:
    program = equal_workers(seed)

    assert program.relaxed(none_hot(program)) is not None
    assert program.relaxed(np.ones(len(program.low), dtype=np.bool_)) is not None
    assert program.whole(np.arange(2)) is not None


def test_bounds_that_cross_have_no_solution() -> None:
    program = drawn(1)
    crossed = replace(program, upper=program.lower - 1)

    assert crossed.relaxed(none_hot(crossed)) is None
    assert crossed.whole(np.arange(5)) is None
