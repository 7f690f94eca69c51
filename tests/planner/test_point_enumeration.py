"""The fleets that a linear bound leaves, against every product of counts."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from spotwright.planner.point_enumeration import Moves, enumerate_fleets, reach

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


def listed(seed: int, most_counts: int = 10**6) -> Moves | None:
    reduced, slack, lower, upper, nodes = drawn(seed)
    near = reach(reduced, slack, lower=lower, upper=upper)
    return enumerate_fleets(near, slack, node_range=nodes, most_counts=most_counts)


@pytest.mark.parametrize("seed", range(200))
def test_every_fleet_within_the_slack_is_listed_once(seed: int) -> None:
    moves = listed(seed)

    assert moves is not None
    fleets = [tuple(fleet) for fleet in moves.fleets().T.astype(int).tolist()]
    assert len({*fleets}) == len(fleets)
    assert {*fleets} == by_hand(*drawn(seed))


@pytest.mark.parametrize("seed", range(200))
def test_no_fleet_within_the_slack_is_out_of_reach(seed: int) -> None:
    reduced, slack, lower, upper, nodes = drawn(seed)

    near = reach(reduced, slack, lower=lower, upper=upper)

    assert (near.lower >= lower).all()
    assert (near.upper <= upper).all()
    for fleet in by_hand(reduced, slack, lower, upper, nodes):
        assert (near.lower <= fleet).all()
        assert (near.upper >= fleet).all()


@pytest.mark.parametrize("seed", range(200))
def test_each_count_within_reach_is_within_the_slack_alone(seed: int) -> None:
    reduced, slack, lower, upper, _ = drawn(seed)

    near = reach(reduced, slack, lower=lower, upper=upper)

    corner = np.where(reduced > 0, lower, upper)
    for ends in (near.lower, near.upper):
        assert (np.abs(reduced) * np.abs(ends - corner) <= slack + 1e-8).all()


def test_everything_is_within_reach_of_an_endless_slack() -> None:
    near = reach(np.array([1.0, 0.0, -1.0]), np.inf, lower=np.zeros(3), upper=np.full(3, 4.0))

    assert near.lower.tolist() == [0.0] * 3
    assert near.upper.tolist() == [4.0] * 3


def test_too_many_fleets_are_not_listed() -> None:
    columns = 10
    near = reach(np.full(columns, 0.1), 100.0, lower=np.zeros(columns), upper=np.full(columns, 9.0))

    moves = enumerate_fleets(near, 100.0, node_range=(0, 90), most_counts=100_000)

    assert moves is None


@pytest.mark.parametrize("most_counts", [1, 10, 50, 300])
@pytest.mark.parametrize("seed", range(20))
def test_a_list_is_whole_or_missing(seed: int, most_counts: int) -> None:
    moves = listed(seed, most_counts)

    if moves is not None:
        assert moves.steps.shape[1] == len(by_hand(*drawn(seed)))
