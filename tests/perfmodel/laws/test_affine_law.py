"""The line through step times."""

import numpy as np
import pytest

from spotwright.domain.errors import CannotFitError
from spotwright.perfmodel.laws.affine_law import fit_affine

BATCHES = (8, 16, 24, 32)


def _rows(fixed_s: float, per_sample_s: float, *, rounds: int = 8) -> list[tuple[float, float]]:
    return [(b, fixed_s + per_sample_s * b) for _ in range(rounds) for b in BATCHES]


@pytest.mark.parametrize(("fixed_s", "per_sample_s"), [(0.02, 0.004), (0.0, 1e-4), (3.0, 0.01)])
def test_a_line_is_recovered(fixed_s: float, per_sample_s: float) -> None:
    law = fit_affine(_rows(fixed_s, per_sample_s))

    assert law.fixed_s.mid == pytest.approx(fixed_s, rel=1e-4, abs=1e-4 * per_sample_s)
    assert law.per_sample_s.mid == pytest.approx(per_sample_s, rel=1e-4)
    assert law.step_s(64).mid == pytest.approx(fixed_s + 64 * per_sample_s, rel=1e-4)
    assert law.misfit_fraction < 1e-4


def test_spikes_move_the_line_little() -> None:
    rows = [(b, s * (3.0 if i % 9 == 4 else 1.0)) for i, (b, s) in enumerate(_rows(0.02, 0.004))]

    law = fit_affine(rows)

    assert law.step_s(32).mid == pytest.approx(0.148, rel=0.02)


def test_a_line_goes_through_times_that_vary_tenfold_and_not_below_them() -> None:
    random = np.random.default_rng(11)
    rows = [(b, s * random.lognormal(0.0, 1.2)) for b, s in _rows(0.02, 0.004)]

    assert 0.05 < fit_affine(rows).step_s(20).mid < 0.2


def test_intervals_hold_the_truth_nine_times_of_ten() -> None:
    random, held = np.random.default_rng(7), 0
    for _ in range(200):
        rows = [(b, s * random.normal(1.0, 0.05)) for b, s in _rows(0.02, 0.004)]
        interval = fit_affine(rows).step_s(20)
        held += interval.low <= 0.1 <= interval.high

    assert held >= 175  # 180 of 200, less two standard deviations; wider ones do no harm


def test_no_fixed_time_is_zero_and_not_known_better_than_the_rows() -> None:
    random = np.random.default_rng(3)
    rows = [(b, 0.005 * b**1.1 * random.normal(1.0, 0.1)) for _ in range(8) for b in BATCHES]

    fixed = fit_affine(rows).fixed_s

    assert (fixed.low, fixed.mid) == (0.0, 0.0)
    assert 0.001 < fixed.high < 0.1


def test_times_that_bend_widen_the_interval() -> None:
    bent = [(b, 1e-4 * b * b) for _ in range(8) for b in BATCHES]

    law = fit_affine(bent)

    assert law.misfit_fraction > 0.1
    assert law.step_s(16).low <= 0.0256 <= law.step_s(16).high


@pytest.mark.parametrize("rows", [[], [(8, 0.1), (8, 0.2)], [(8, 0.1), (16, 0.0)]])
def test_what_determines_no_line_is_refused(rows: list[tuple[float, float]]) -> None:
    with pytest.raises(CannotFitError, match="affine step time"):
        fit_affine(rows)
