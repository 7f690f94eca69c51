"""The fit against models whose parameters are known."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from spotwright.perfmodel.calibration.map_fit import MapFit, Parameter, fit_map

Floats = NDArray[np.float64]
BATCH = np.array([8.0, 16, 32, 64, 128, 256] * 3)
TRUTH = {"fixed": 0.05, "per_sample": 0.004, "share": 0.3}
PRIORS = [
    Parameter(name="fixed", centre=0.2, log_sd=2.0),
    Parameter(name="per_sample", centre=0.001, log_sd=3.0),
    Parameter(name="share", centre=0.5, log_sd=1.5, share=True),
]
NODES = np.repeat([1.0, 2.0, 8.0], 6)


def _log_steps(values: Mapping[str, float]) -> Floats:
    compute = values["fixed"] + values["per_sample"] * BATCH
    logs: Floats = np.log(compute * (1 + values["share"] * (NODES - 1)))
    return logs


def _fit(target: Floats, model: Callable[[Mapping[str, float]], Floats] = _log_steps) -> MapFit:
    return fit_map(PRIORS, model, target)


def test_known_parameters_are_recovered_from_exact_steps() -> None:
    found = _fit(_log_steps(TRUTH))

    assert dict(found.values) == pytest.approx(TRUTH, rel=2e-3)
    assert min(found.learned.values()) > 0.98


def test_known_parameters_are_recovered_from_noisy_steps_within_the_noise() -> None:
    noise = np.random.default_rng(5).normal(0, 0.02, len(BATCH))

    found = _fit(_log_steps(TRUTH) + noise)

    assert dict(found.values) == pytest.approx(TRUTH, rel=0.06)


def test_a_parameter_that_the_rows_do_not_show_stays_at_its_prior() -> None:
    unseen = Parameter(name="network", centre=123.0, log_sd=0.7)

    found = fit_map([*PRIORS, unseen], _log_steps, _log_steps(TRUTH))

    assert found.values["network"] == pytest.approx(123.0, rel=1e-6)
    assert found.learned["network"] == pytest.approx(0.0, abs=1e-6)
    assert found.values["fixed"] == pytest.approx(TRUTH["fixed"], rel=2e-3)


def test_one_row_moves_a_parameter_as_far_as_the_closed_form_says() -> None:
    prior = Parameter(name="step", centre=1.0, log_sd=0.05)  # as sharp as the row itself
    target = np.array([0.02])

    found = fit_map([prior], lambda v: np.array([np.log(v["step"])]), target)

    # Residuals much smaller than 0.05 are squared: equal weights meet in the middle.
    assert np.log(found.values["step"]) == pytest.approx(0.01, rel=0.03)
    assert found.learned["step"] == pytest.approx(0.5, abs=0.02)


def test_the_order_of_the_rows_does_not_matter() -> None:
    noise = np.random.default_rng(6).normal(0, 0.05, len(BATCH))
    order = np.random.default_rng(7).permutation(len(BATCH))
    target = _log_steps(TRUTH) + noise

    shuffled = _fit(target[order], lambda values: _log_steps(values)[order])

    assert dict(shuffled.values) == pytest.approx(dict(_fit(target).values), rel=1e-4)


@pytest.mark.parametrize("factor", [20.0, 0.05])
@pytest.mark.parametrize("row", [0, 7, 17])
def test_one_gross_outlier_hardly_moves_the_fit(row: int, factor: float) -> None:
    target = _log_steps(TRUTH)
    target[row] += np.log(factor)

    robust = _log_steps(_fit(target).values)

    others = np.arange(len(BATCH)) != row
    assert np.abs(robust - _log_steps(TRUTH))[others].max() < 0.03
    shift = np.mean(target - _log_steps(TRUTH))  # of every row, had squares been minimised
    assert abs(shift) > 0.15


def test_the_better_of_two_basins_is_found_from_another_start() -> None:
    def two_basins(values: Mapping[str, float]) -> Floats:
        log = np.log(values["x"])
        return np.array([(log**2 - 4) ** 2 / 16 + 0.3 * (log + 2)])

    prior = Parameter(name="x", centre=float(np.exp(2)), log_sd=10.0)

    here = fit_map([prior], two_basins, np.array([0.0]))
    both = fit_map([prior], two_basins, np.array([0.0]), other_starts=[{"x": float(np.exp(-4))}])

    assert np.log(here.values["x"]) > 0
    assert np.log(both.values["x"]) == pytest.approx(-2, abs=0.2)


def test_a_share_never_leaves_its_bounds() -> None:
    found = _fit(_log_steps(TRUTH | {"share": 5.0}))

    assert 0.9 < found.values["share"] < 1


@pytest.mark.parametrize("real", [1.02, 1.5, 9.0])
def test_a_parameter_with_a_floor_is_found_close_above_it_and_far_away(real: float) -> None:
    prior = Parameter(name="power", centre=4.0, log_sd=2.0, floor=1.0)

    def steps(values: Mapping[str, float]) -> Floats:
        logs: Floats = np.log(np.power(BATCH, 1 / values["power"]))
        return logs

    found = fit_map([prior], steps, steps({"power": real}))

    assert found.values["power"] == pytest.approx(real, rel=0.01)
    assert found.values["power"] > 1


def test_rows_that_ask_for_less_than_the_floor_end_just_above_it() -> None:
    prior = Parameter(name="x", centre=4.0, log_sd=2.0, floor=1.0)
    target = np.full(50, np.log(0.5))

    found = fit_map([prior], lambda values: np.full(50, np.log(values["x"])), target)

    assert 1 < found.values["x"] < 1.05
