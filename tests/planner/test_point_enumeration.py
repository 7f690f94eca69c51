"""The fleets that a linear bound leaves, against every product of counts."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from spotwright.planner.point_enumeration import enumerate_fleets

Floats = NDArray[np.float64]


def drawn(seed: int) -> tuple[Floats, float, Floats, Floats, tuple[int, int]]:
    """Return reduced costs with ties and zeros, a slack, bounds of columns and of nodes."""
    random = np.random.default_rng(seed)
    columns = int(random.integers(1, 6))
    reduced = np.round(random.normal(size=columns), int(random.integers(0, 3)))
    slack = float(random.choice([0.0, random.random(), 3 * random.random()]))
    lower = random.integers(0, 3, columns).astype(np.float64)
    upper = lower + random.integers(0, 4, columns)
    least = int(random.integers(0, int(upper.sum()) + 2))
    return reduced, slack, lower, upper, (least, least + int(random.integers(0, 8)))


def by_hand(
    reduced: Floats, slack: float, lower: Floats, upper: Floats, node_range: tuple[int, int]
) -> set[tuple[int, ...]]:
    """Return every fleet whose steps away from its cheapest corner cost no more than the slack."""
    corner = np.where(reduced > 0, lower, upper)
    ranges = [range(int(a), int(b) + 1) for a, b in zip(lower, upper, strict=True)]
    return {
        fleet
        for fleet in product(*ranges)
        if node_range[0] <= sum(fleet) <= node_range[1]
        and np.abs(reduced) @ np.abs(np.array(fleet) - corner) <= slack + 1e-9 * max(1.0, slack)
    }


@pytest.mark.parametrize("seed", range(200))
def test_every_fleet_within_the_slack_is_listed_once(seed: int) -> None:
    reduced, slack, lower, upper, nodes = drawn(seed)

    moves = enumerate_fleets(
        reduced, slack, lower=lower, upper=upper, node_range=nodes, most=100_000
    )

    assert moves is not None
    fleets = moves.fleets(np.ones(moves.steps.shape[1], dtype=np.bool_))
    listed = [tuple(fleet) for fleet in fleets.T.astype(int).tolist()]
    assert len({*listed}) == len(listed)
    assert {*listed} == by_hand(reduced, slack, lower, upper, nodes)


@pytest.mark.parametrize("seed", range(20))
def test_sums_over_moves_are_those_of_whole_fleets(seed: int) -> None:
    reduced, slack, lower, upper, nodes = drawn(seed)
    rows = np.random.default_rng(seed).normal(size=(3, len(reduced)))
    moves = enumerate_fleets(reduced, slack, lower=lower, upper=upper, node_range=nodes, most=10**5)
    assert moves is not None
    kept = np.arange(moves.steps.shape[1]) % 2 == 0

    sums, fleets = moves.sums(rows), moves.fleets(kept)

    assert sums[:, kept] == pytest.approx(rows @ fleets)


def test_too_many_fleets_are_not_listed() -> None:
    columns = 10

    moves = enumerate_fleets(
        np.full(columns, 0.1),
        100.0,
        lower=np.zeros(columns),
        upper=np.full(columns, 9.0),
        node_range=(0, 90),
        most=10_000,
    )

    assert moves is None


@pytest.mark.parametrize("most", [1, 5, 20, 100])
@pytest.mark.parametrize("seed", range(20))
def test_a_list_is_whole_or_missing(seed: int, most: int) -> None:
    reduced, slack, lower, upper, nodes = drawn(seed)

    moves = enumerate_fleets(reduced, slack, lower=lower, upper=upper, node_range=nodes, most=most)

    if moves is not None:
        assert moves.steps.shape[1] == len(by_hand(reduced, slack, lower, upper, nodes))
