"""Oracles: a table worked by hand, and plain counting where no lifetime was cut short."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.perfmodel.survival import kaplan_meier

# Ten nodes; * = stopped by us. At risk, revoked and survival worked out beside each revocation.
LIVES = [(1.0, True),  # 10 at risk, 1 revoked: 9/10
         (2.0, True), (2.0, True), (2.0, False),  # 9 at risk, 2 revoked: 9/10 * 7/9 = 0.7
         (4.0, False),
         (5.0, True),  # 5 at risk, 1 revoked: 0.7 * 4/5 = 0.56
         (6.0, False),
         (8.0, True),  # 3 at risk, 1 revoked: 0.56 * 2/3
         (24.0, False), (24.0, False)]  # fmt: skip
CURVE = kaplan_meier([hours for hours, _ in LIVES], [revoked for _, revoked in LIVES])


@pytest.mark.parametrize(
    ("hours", "survival"),
    [(0, 1), (0.99, 1), (1, 0.9), (2, 0.7), (4.5, 0.7), (5, 0.56), (8, 1.12 / 3), (30, 1.12 / 3)],
)
def test_the_curve_is_that_of_the_hand_worked_table(hours: float, survival: float) -> None:
    assert CURVE.at(hours) == pytest.approx(survival)


def test_the_standard_error_is_greenwoods() -> None:
    greenwood = 1 / (10 * 9) + 2 / (9 * 7) + 1 / (5 * 4) + 1 / (3 * 2)

    assert CURVE.standard_error[-1] == pytest.approx(0.56 * 2 / 3 * math.sqrt(greenwood))


@given(lives=st.lists(st.integers(1, 30), min_size=1, max_size=60), at=st.integers(0, 31))
def test_without_cut_lifetimes_it_counts_who_lived_longer(lives: list[int], at: int) -> None:
    curve = kaplan_meier([float(hours) for hours in lives], [True] * len(lives))

    longer = sum(hours > at for hours in lives) / len(lives)

    assert curve.at(float(at)) == pytest.approx(longer, abs=1e-12)


def test_nodes_that_were_never_revoked_live_for_ever() -> None:
    curve = kaplan_meier([3.0, 7.0], [False, False])

    assert (curve.at(100.0), curve.hazard_per_hour(0.0, 100.0)) == (1.0, 0.0)


def test_the_hazard_is_the_slope_of_the_logarithm() -> None:
    assert CURVE.hazard_per_hour(1.0, 5.0) == pytest.approx(math.log(0.9 / 0.56) / 4)


def test_the_hazard_beyond_the_last_revocation_of_all_is_infinite() -> None:
    curve = kaplan_meier([1.0, 2.0], [True, True])

    assert curve.hazard_per_hour(0.0, 2.0) == curve.hazard_per_hour(2.0, 3.0) == math.inf
