"""The interval against residuals whose distribution is known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from spotwright.domain.workload import StepInterval
from spotwright.perfmodel.calibration.conformal import LEAST_RESIDUALS, conformal_interval, covers

Floats = NDArray[np.float64]


def _normal(seed: int, count: int, shares: Floats) -> Floats:
    return np.random.default_rng(seed).normal(0, np.hypot(0.03, 0.2 * shares), count)


def _skewed(seed: int, count: int, shares: Floats) -> Floats:
    """Return delays: never much faster than predicted, at times much slower."""
    delay = np.random.default_rng(seed).exponential(1.0, count) - 0.3
    late: Floats = delay * np.hypot(0.03, 0.2 * shares)
    return late


def _shares(seed: int, count: int) -> Floats:
    return np.random.default_rng(seed + 1000).uniform(0, 0.9, count)


@pytest.mark.parametrize("noise", [_normal, _skewed])
@pytest.mark.parametrize("count", [20, 60, 300])
def test_about_nine_of_ten_fresh_residuals_lie_inside(noise: object, count: int) -> None:
    assert callable(noise)
    covered = []
    for seed in range(30):
        shares, fresh = _shares(seed, count), _shares(seed + 500, 4000)
        interval = conformal_interval(noise(seed, count, shares), shares)
        covered.append(covers(interval, noise(seed + 500, 4000, fresh), fresh).mean())

    # n residuals give at least 90 % on average, and no more than one rank on each side beyond it.
    assert 0.88 < np.mean(covered) < min(0.91 + 2 / count, 0.97)


def test_both_tails_of_skewed_noise_are_missed_equally_often() -> None:
    shares, fresh = _shares(1, 2000), _shares(2, 50_000)
    interval = conformal_interval(_skewed(1, 2000, shares), shares)
    residuals = _skewed(2, 50_000, fresh)

    scale = np.hypot(interval.base_scale, interval.network_scale * fresh)

    assert (residuals < interval.low_quantile * scale).mean() == pytest.approx(0.05, abs=0.015)
    assert (residuals > interval.high_quantile * scale).mean() == pytest.approx(0.05, abs=0.015)
    assert interval.high_quantile > 2 * -interval.low_quantile


def test_rows_that_communicate_more_get_a_wider_interval_where_they_are_noisier() -> None:
    shares = _shares(3, 2000)

    interval = conformal_interval(_normal(3, 2000, shares), shares)

    assert interval.network_scale / interval.base_scale == pytest.approx(0.2 / 0.03, rel=0.25)


def test_covers_agrees_with_the_definition_row_by_row() -> None:
    interval = StepInterval(
        low_quantile=-1.5, high_quantile=2.0, base_scale=0.03, network_scale=0.2
    )
    shares, residuals = _shares(4, 500), _normal(4, 500, _shares(4, 500))

    inside = covers(interval, residuals, shares)

    expected = []
    for residual, share in zip(residuals, shares, strict=True):
        scale = (0.03**2 + (0.2 * share) ** 2) ** 0.5
        expected.append(-1.5 * scale <= residual <= 2.0 * scale)
    assert inside.tolist() == expected
    assert 0 < sum(expected) < 500


def test_the_ends_of_the_interval_count_as_inside() -> None:
    interval = StepInterval(low_quantile=-1.0, high_quantile=2.0, base_scale=0.5)
    residuals = np.array([-0.5000001, -0.5, 1.0, 1.0000001])

    assert covers(interval, residuals, np.zeros(4)).tolist() == [False, True, True, False]


@pytest.mark.parametrize("sign", [1, -1])
def test_residuals_all_on_one_side_still_leave_the_prediction_inside(sign: int) -> None:
    residuals = sign * np.linspace(0.1, 0.2, LEAST_RESIDUALS)

    interval = conformal_interval(residuals, np.zeros(LEAST_RESIDUALS))

    assert interval.low_quantile <= 0 <= interval.high_quantile
    assert covers(interval, residuals, np.zeros(LEAST_RESIDUALS)).all()


def test_the_fewest_residuals_allowed_give_their_whole_range() -> None:
    residuals = np.random.default_rng(8).normal(0, 0.1, LEAST_RESIDUALS)

    interval = conformal_interval(residuals, np.zeros(LEAST_RESIDUALS))

    found = [q * interval.base_scale for q in (interval.low_quantile, interval.high_quantile)]
    assert found == pytest.approx([residuals.min(), residuals.max()])


@pytest.mark.parametrize(
    ("count", "low", "high"), [(12, 1, 12), (38, 1, 38), (39, 2, 38), (100, 5, 96), (200, 10, 191)]
)
def test_the_ends_are_the_ranks_of_the_textbook(count: int, low: int, high: int) -> None:
    """floor((n + 1) / 20) from below and ceil(19 (n + 1) / 20), within the n there are."""
    residuals = np.random.default_rng(count).permutation(np.linspace(-0.1, 0.1, count))

    interval = conformal_interval(residuals, np.zeros(count))

    ends = (
        interval.low_quantile * interval.base_scale,
        interval.high_quantile * interval.base_scale,
    )
    assert ends == pytest.approx((np.sort(residuals)[low - 1], np.sort(residuals)[high - 1]))
