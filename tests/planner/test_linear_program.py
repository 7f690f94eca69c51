"""Random programs, against scipy's solver and what weak duality says."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from spotwright.planner.linear_program import Empty, LinearProgram, Optimum

Floats = NDArray[np.float64]

SEEDS = range(60)
EASED = 1e-4  # solvers are given rows a millionth looser than they are


def drawn(seed: int, *, columns: int = 5, empty_fraction: float = 0.2) -> LinearProgram:
    """Return a program with rows limited on one side, on both, and on neither."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 7))
    rows = random.integers(-3, 6, (count, columns)).astype(np.float64)
    rows += np.round(random.normal(size=rows.shape), 3)
    lower = random.integers(0, 2, columns).astype(np.float64)
    upper = lower + random.integers(0, 4, columns)
    inside = rows @ (lower + random.random(columns) * (upper - lower))
    width = random.random(count) * random.choice([0.2, 3.0])
    low = np.where(random.random(count) < 0.5, inside - width, -np.inf)
    high = np.where(random.random(count) < 0.5, inside + width, np.inf)
    if random.random() < empty_fraction:  # nothing is left
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
    assert found.status in (0, 2), found.message  # solved, or no solution
    return float(found.fun) + program.constant if found.success else None


def value(program: LinearProgram, point: Floats) -> float:
    return float(program.objective @ point) + program.constant


def none_hot(program: LinearProgram) -> NDArray[np.bool_]:
    return np.zeros(len(program.low), dtype=np.bool_)


def all_hot(program: LinearProgram) -> NDArray[np.bool_]:
    return np.ones(len(program.low), dtype=np.bool_)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relaxed_optimum_is_that_of_another_solver(seed: int) -> None:
    program = drawn(seed)
    best, found = by_scipy(program), program.relaxed(none_hot(program))

    assert isinstance(found, Empty) == (best is None)
    if isinstance(found, Optimum):
        assert value(program, found.point) == pytest.approx(best, abs=EASED)
        assert program.bound(found.multipliers)[0] == pytest.approx(best, abs=EASED)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relaxed_optimum_keeps_rows_that_the_solver_was_not_given(seed: int) -> None:
    program = drawn(seed, empty_fraction=0.0)
    found = program.relaxed(none_hot(program))

    assert isinstance(found, Optimum)
    sums = program.rows @ found.point
    assert (sums <= program.high + EASED).all()
    assert (sums >= program.low - EASED).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_were_hot_before_change_nothing(seed: int) -> None:
    program = drawn(seed)
    cold, hot = program.relaxed(none_hot(program)), program.relaxed(all_hot(program))

    assert type(cold) is type(hot)
    if isinstance(cold, Optimum) and isinstance(hot, Optimum):
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


@pytest.mark.parametrize("seed", range(10))
def test_a_row_added_is_kept(seed: int) -> None:
    program = drawn(seed)
    row = np.random.default_rng(seed).normal(size=len(program.objective))
    narrower = program.with_row(row, 1.0)
    found, best = narrower.relaxed(none_hot(narrower)), by_scipy(narrower)

    assert isinstance(found, Empty) == (best is None)
    if isinstance(found, Optimum):
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

    assert isinstance(program.relaxed(none_hot(program)), Optimum)
    assert isinstance(program.relaxed(all_hot(program)), Optimum)


def test_bounds_that_cross_have_no_solution() -> None:
    program = drawn(1)
    crossed = replace(program, upper=program.lower - 1)

    assert isinstance(crossed.relaxed(none_hot(crossed)), Empty)


@pytest.mark.parametrize(("least", "kind"), [(0.0, Optimum), (1.0, Empty)])
def test_columns_may_all_be_fixed_at_0(least: float, kind: type) -> None:
    one_row, nothing = np.ones((1, 3)), np.zeros(3)
    program = LinearProgram(
        np.ones(3), 0.0, one_row, np.array([least]), np.array([2.0]), nothing, nothing
    )

    assert isinstance(program.relaxed(all_hot(program)), kind)


def test_limits_that_cross_have_no_solution() -> None:
    program = drawn(1)
    crossed = replace(program, low=np.full(3, 2.0), high=np.full(3, 1.0))

    assert isinstance(crossed.relaxed(none_hot(crossed)), Empty)


# ----- proofs that there is no solution


def proof(program: LinearProgram) -> Floats:
    found = program.relaxed(none_hot(program))
    assert isinstance(found, Empty)
    return found.multipliers


def moved(program: LinearProgram, random: np.random.Generator) -> LinearProgram:
    """Return a program of the same shape not far off, as the next box has."""
    far = random.choice([0.01, 0.3, 2.0])
    low = program.low + far * random.normal(size=len(program.low))
    high = program.high + far * random.normal(size=len(program.high))
    return replace(
        program,
        rows=program.rows + far * random.normal(size=program.rows.shape),
        low=np.minimum(low, high),
        high=np.maximum(low, high),
        upper=program.upper + random.integers(0, 3, len(program.upper)),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_proof_of_emptiness_holds_where_it_was_found(seed: int) -> None:
    program = drawn(seed, empty_fraction=1.0)

    assert by_scipy(program) is None
    assert program.is_empty_by(proof(program))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_proof_of_emptiness_holds_in_every_part_of_a_program(seed: int) -> None:
    program, random = drawn(seed, empty_fraction=1.0), np.random.default_rng(seed)
    lower = random.uniform(program.lower, program.upper)
    part = replace(program, lower=lower, upper=random.uniform(lower, program.upper))

    assert part.is_empty_by(proof(program))


def test_a_proof_of_emptiness_is_never_accepted_where_there_is_a_solution() -> None:
    solved = accepted = 0
    for seed in SEEDS:
        program, random = drawn(seed, empty_fraction=1.0), np.random.default_rng(seed)
        multipliers = proof(program)
        for _ in range(20):
            other = moved(program, random)
            is_solved, is_accepted = by_scipy(other) is not None, other.is_empty_by(multipliers)

            assert not (is_solved and is_accepted), seed
            solved, accepted = solved + is_solved, accepted + is_accepted
    assert solved > 100
    assert accepted > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_no_multipliers_prove_a_program_empty_that_has_a_solution(seed: int) -> None:
    program, random = drawn(seed, empty_fraction=0.0), np.random.default_rng(seed)

    for size in (1e-9, 1.0, 1e9):
        for multipliers in size * random.normal(size=(50, len(program.low))):
            assert not program.is_empty_by(multipliers)


def held_by(rows: Floats, point: Floats) -> LinearProgram:
    """Return a program whose rows leave nothing but what they are at a point."""
    return LinearProgram(
        objective=np.zeros(len(point)),
        constant=0.0,
        rows=rows,
        low=rows @ point,
        high=rows @ point,
        lower=np.floor(point),
        upper=np.ceil(point),
    )


@pytest.mark.parametrize(
    ("part", "most"),
    [(0.5, 3.0), (0.1, 0.6)],  # 0.1 * 6 is 0.6000000000000001
)
def test_a_row_that_is_part_of_another_proves_nothing(part: float, most: float) -> None:
    program = replace(
        held_by(np.array([[1.0] * 4, [part] * 4]), np.full(4, 1.5)),
        low=np.array([6.0, -np.inf]),
        high=np.array([6.0, most]),
    )

    assert by_scipy(program) is not None
    assert not program.is_empty_by(np.array([part, -1.0]))
    assert isinstance(program.relaxed(all_hot(program)), Optimum)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_that_follows_from_others_proves_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, weights = random.normal(size=(3, 6)), random.normal(size=3) * random.choice([1, 1e3, 1e6])
    program = held_by(np.vstack((rows, weights @ rows)), random.uniform(0, 9, 6))

    assert by_scipy(program) is not None
    for sign in (1.0, -1.0):
        assert not program.is_empty_by(sign * np.append(weights, -1.0))


@pytest.mark.parametrize("seed", range(20))
def test_a_proof_does_not_empty_what_holds_a_point_by_a_hair(seed: int) -> None:
    program = equal_workers(seed)
    most = float(program.upper[2])
    hurried = replace(program, lower=np.array([0, 0, 0, 1.05 * most]), upper=program.upper * 1.1)
    multipliers = proof(hurried)

    assert hurried.is_empty_by(multipliers)
    assert not program.is_empty_by(multipliers)
