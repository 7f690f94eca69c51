"""Boxes cut by counts, against every fleet there is in them."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from spotwright.planner.relaxation import split_counts
from tests.planner.dice import Dice
from tests.planner.relaxed_points import relaxed_at

Floats = NDArray[np.float64]
Fleet = tuple[int, ...]
Part = tuple[Floats, Floats]

SEEDS = range(200)


class Offered:
    """Fleets that were evaluated on the way; none is the best so far."""

    def __init__(self) -> None:
        self.fleets: list[list[float]] = []

    def __call__(self, fleet: Floats) -> bool:
        self.fleets.append(fleet.tolist())
        return False


def drawn(dice: Dice) -> Part:
    """Return a small box; some of its counts are fixed, one is not."""
    lower = np.array([float(dice.whole(0, 2)) for _ in range(dice.whole(1, 4))])
    upper = lower + [dice.whole(0, 3) for _ in lower]
    upper[0] += 1
    return lower, upper


def held(lower: Floats, upper: Floats) -> list[Fleet]:
    ranges = [range(int(a), int(b) + 1) for a, b in zip(lower, upper, strict=True)]
    return list(product(*ranges))


def whole_point(dice: Dice, lower: Floats, upper: Floats) -> Floats:
    return np.array(dice.pick(held(lower, upper)), dtype=np.float64)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_fleet_of_as_many_nodes_but_the_point_is_in_one_part(seed: int) -> None:
    dice = Dice(seed, 21)
    lower, upper = drawn(dice)
    point = whole_point(dice, lower, upper)
    nodes = point.sum()

    parts, _ = split_counts(lower, upper, relaxed_at(point), Offered())

    found = [fleet for part in parts for fleet in held(*part) if sum(fleet) == nodes]
    others = [fleet for fleet in held(lower, upper) if sum(fleet) == nodes]
    assert sorted([*found, tuple(point.astype(int))]) == sorted(others)


@pytest.mark.parametrize("seed", SEEDS)
def test_fleets_with_fewer_nodes_than_the_point_in_some_pool_are_in_one_part(seed: int) -> None:
    dice = Dice(seed, 22)
    lower, upper = drawn(dice)
    point = whole_point(dice, lower, upper)

    parts, fleet = split_counts(lower, upper, relaxed_at(point), Offered())

    assert fleet is not None
    found = [fleet for part in parts for fleet in held(*part)]
    assert sorted([*found, *held(fleet, upper)]) == sorted(held(lower, upper))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_whole_point_is_evaluated_and_told(seed: int) -> None:
    dice, offered = Dice(seed, 23), Offered()
    lower, upper = drawn(dice)
    point = whole_point(dice, lower, upper)
    nearly = point + dice.pick((0.0, 1e-9, -1e-9))  # as solvers say it
    speeds = np.array([0.3, 0.7])  # columns of other things come after the counts

    _, fleet = split_counts(lower, upper, relaxed_at(np.append(nearly, speeds)), offered)

    assert fleet is not None
    assert fleet.tolist() == point.tolist()
    assert offered.fleets == [point.tolist()]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fractional_point_is_cut_off_and_every_fleet_is_in_one_part(seed: int) -> None:
    dice, offered = Dice(seed, 24), Offered()
    lower, upper = drawn(dice)
    point = np.array([dice.between(a, b) for a, b in zip(lower, upper, strict=True)])

    parts, fleet = split_counts(lower, upper, relaxed_at(point), offered)

    assert fleet is None
    assert offered.fleets == []
    assert sorted(f for part in parts for f in held(*part)) == sorted(held(lower, upper))
    for least, most in parts:
        assert (point < least).any() or (point > most).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_box_that_was_not_solved_falls_into_smaller_ones(seed: int) -> None:
    dice = Dice(seed, 25)
    lower, upper = drawn(dice)
    unsolved = relaxed_at(whole_point(dice, lower, upper))._replace(program=None)

    parts, fleet = split_counts(lower, upper, unsolved, Offered())

    assert fleet is None
    assert sorted(f for part in parts for f in held(*part)) == sorted(held(lower, upper))
    assert all(len(held(*part)) < len(held(lower, upper)) for part in parts)


def test_the_only_fleet_of_a_box_that_was_not_solved_is_evaluated() -> None:
    only, offered = np.array([2.0, 0.0, 1.0]), Offered()

    parts, _ = split_counts(only, only, relaxed_at(only)._replace(program=None), offered)

    assert parts == []
    assert offered.fleets == [only.tolist()]


@pytest.mark.parametrize("seed", range(40))
def test_cutting_on_and_on_meets_every_fleet_once(seed: int) -> None:
    dice, offered = Dice(seed, 26), Offered()
    lower, upper = drawn(dice)
    nodes = whole_point(dice, lower, upper).sum()
    boxes = [(lower, upper)]
    while boxes:
        part = boxes.pop()
        same = [fleet for fleet in held(*part) if sum(fleet) == nodes]
        if same:
            point = np.array(dice.pick(same), dtype=np.float64)
            boxes += split_counts(*part, relaxed_at(point), offered)[0]

    met = sorted(tuple(fleet) for fleet in offered.fleets)
    assert met == sorted(fleet for fleet in held(lower, upper) if sum(fleet) == nodes)
