import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import CannotFitError
from spotwright.perfmodel.laws.loss_rows import LossRow
from spotwright.perfmodel.laws.noise_scale_law import fit_noise_scale, steps_to_loss

BATCHES = (64, 256, 1024, 4096)


@given(minimum=st.floats(10, 1e5), noise=st.floats(10, 1e4))
def test_exact_runs_give_the_law_back(minimum: float, noise: float) -> None:
    law = fit_noise_scale([(b, minimum * (1 + noise / b)) for b in BATCHES], loss=0.7)

    assert law.minimum_steps == pytest.approx(minimum, rel=1e-5)
    assert law.noise_scale_samples == pytest.approx(noise, rel=1e-5)
    assert law.loss == 0.7
    assert law.relative_sd < 1e-6


def test_scatter_becomes_the_uncertainty() -> None:
    factors = (1.05, 0.95, 1.05, 0.95)
    runs = [(b, f * 1000 * (1 + 500 / b)) for b, f in zip(BATCHES, factors, strict=True)]

    law = fit_noise_scale(runs, loss=0.7)

    assert 0.03 < law.relative_sd < 0.10
    assert fit_noise_scale(runs[::-1], loss=0.7) == law


def test_few_batch_sizes_are_no_surer_than_the_default() -> None:
    law = fit_noise_scale([(64, 8_800), (256, 2_950)], loss=0.7)

    assert law.minimum_steps * (1 + law.noise_scale_samples / 64) == pytest.approx(8_800)
    assert law.relative_sd == 0.10


def test_steps_that_ignore_the_batch_have_no_noise_scale() -> None:
    assert fit_noise_scale([(64, 500), (256, 500)], loss=0.7).noise_scale_samples < 1e-6


@pytest.mark.parametrize("runs", [[], [(64, 100)], [(64, 100), (64, 120)]])
def test_fewer_than_two_batch_sizes_are_refused(runs: list[tuple[float, float]]) -> None:
    with pytest.raises(CannotFitError, match="run two batch sizes"):
        fit_noise_scale(runs, loss=0.7)


def test_steps_in_inverse_proportion_to_the_batch_show_no_minimum() -> None:
    with pytest.raises(CannotFitError, match="larger batch"):
        fit_noise_scale([(64, 4_000), (128, 1_900), (256, 900)], loss=0.7)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_steps_are_named(bad: float) -> None:
    with pytest.raises(CannotFitError, match="steps is"):
        fit_noise_scale([(64, bad), (128, 10)], loss=0.7)


def _run(losses: list[float], *, batch: float = 64, workers: int = 1) -> list[LossRow]:
    return [
        LossRow(step=10 * i, loss=loss, worker_count=workers, weighted_batch=batch)
        for i, loss in enumerate(losses)
    ]


def test_a_run_reaches_a_loss_where_the_median_of_five_rows_does() -> None:
    falling = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]

    assert steps_to_loss(_run(falling), loss=5.0) == {64: [40.0]}


@pytest.mark.parametrize("place", [1, 3])
def test_a_single_lucky_row_does_not_count(place: int) -> None:
    lucky = [9.0, 8.0, 7.0, 6.5, 6.0, 5.5, 4.0, 3.0, 2.0]
    lucky[place] = 0.1

    (steps,) = steps_to_loss(_run(lucky), loss=5.0)[64]

    assert steps is not None
    assert 50 <= steps <= 60


def test_runs_are_told_apart_by_batch_and_workers_whatever_the_order_of_rows() -> None:
    quick, slow = [3.0, 2.0, 1.0, 1.0, 1.0], [3.0, 3.0, 3.0, 3.0, 2.0]
    rows = [*_run(slow, batch=32), *_run(quick), *_run(slow, workers=4)]

    assert steps_to_loss(rows[::-1], loss=1.0) == {32: [None], 64: [20.0, None]}
