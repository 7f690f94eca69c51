import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotwright.domain.errors import CannotFitError, UnreachableTargetError
from spotwright.domain.workload import SpotdnnLoss
from spotwright.perfmodel.laws.loss_law import fit_cynthia_loss, fit_spotdnn_loss
from spotwright.perfmodel.laws.loss_rows import LossRow

Setting = tuple[int, float]

REFERENCE = SpotdnnLoss(c1=900, c2=-0.2, c3=2500, c4=0.2, c5=0.5, batch_range=(256, 512))
RUNS: list[Setting] = [(1, 256.0), (2, 256.0), (4, 512.0), (8, 512.0)]
STEPS = range(10, 6_000, 120)


def coefficient(workers: int) -> float:
    return math.sqrt(1 - 1 / workers)


def amplitude(law: SpotdnnLoss, setting: Setting) -> float:
    workers, batch = setting
    crowd = math.sqrt((coefficient(workers) + law.c4) * workers)
    return (law.c2 * batch + law.c3) * crowd


def updates(law: SpotdnnLoss, setting: Setting, loss: float) -> float:
    return amplitude(law, setting) / (loss - law.c5) - law.c1


def spotdnn_rows(
    law: SpotdnnLoss = REFERENCE,
    runs: Sequence[Setting] = RUNS,
    steps: Iterable[int] = STEPS,
    noise: float = 0.0,
    seed: int = 7,
) -> list[LossRow]:
    random = np.random.default_rng(seed)
    return [
        LossRow(
            step=step,
            loss=amplitude(law, run) / (step + law.c1) + law.c5 + noise * random.standard_normal(),
            worker_count=run[0],
            weighted_batch=run[1],
            convergence_coefficient=coefficient(run[0]),
        )
        for run in runs
        for step in steps
    ]


def cynthia_rows(
    workers: Sequence[int] = (1, 4), *, asynchronous: bool = True, noise: float = 0.0
) -> list[LossRow]:
    random = np.random.default_rng(3)
    return [
        LossRow(
            step=s,
            loss=400 * n ** (0.5 * asynchronous) / s + 0.3 + noise * random.standard_normal(),
            worker_count=n,
            weighted_batch=128,
            asynchronous=asynchronous,
        )
        for n in workers
        for s in range(100, 5_000, 100)
    ]


@settings(max_examples=15, deadline=None)
@given(
    c1=st.floats(50, 3_000),
    c2=st.floats(-1.5, -0.05),
    c3=st.floats(1_000, 9_000),
    c4=st.floats(0.02, 2),
    c5=st.floats(0, 2),
)
def test_exact_logs_give_the_spotdnn_law_back(
    c1: float, c2: float, c3: float, c4: float, c5: float
) -> None:
    law = SpotdnnLoss(c1=c1, c2=c2, c3=c3, c4=c4, c5=c5, batch_range=(256, 512))

    found = fit_spotdnn_loss(spotdnn_rows(law), goal_loss=c5 + 0.5).law

    assert (found.c1, found.c3, found.c4) == pytest.approx((c1, c3, c4), rel=1e-3)
    assert found.c2 == pytest.approx(c2, rel=0.02)
    assert found.c5 == pytest.approx(c5, abs=1e-3)


def test_ranges_and_sureness_come_from_the_log() -> None:
    found = fit_spotdnn_loss(spotdnn_rows(), goal_loss=0.8).law

    assert found.batch_range == (256, 512)
    assert found.coefficient_range == (0, coefficient(8))
    assert found.relative_sd == pytest.approx(0.03, abs=1e-3)  # no noise: the law's own error


@pytest.mark.parametrize("seed", range(8))
def test_updates_to_the_goal_lie_within_their_stated_uncertainty(seed: int) -> None:
    found = fit_spotdnn_loss(spotdnn_rows(noise=0.1, seed=seed), goal_loss=0.8).law

    errors = [updates(found, run, 0.8) / updates(REFERENCE, run, 0.8) - 1 for run in RUNS]

    assert max(abs(error) for error in errors) < 2.6 * found.relative_sd


def test_noisier_and_shorter_logs_are_less_sure() -> None:
    quiet = fit_spotdnn_loss(spotdnn_rows(noise=0.02), goal_loss=0.8).law
    noisy = fit_spotdnn_loss(spotdnn_rows(noise=0.2), goal_loss=0.8).law
    short = fit_spotdnn_loss(spotdnn_rows(steps=range(10, 900, 18), noise=0.02), goal_loss=0.8).law

    assert quiet.relative_sd < noisy.relative_sd
    assert quiet.relative_sd < short.relative_sd


def test_spikes_do_not_move_the_law() -> None:
    rows = spotdnn_rows(noise=0.01)
    spiked = [replace(r, loss=r.loss + 20) if i % 25 == 24 else r for i, r in enumerate(rows)]

    found = fit_spotdnn_loss(spiked, goal_loss=0.8).law

    assert [updates(found, run, 0.8) for run in RUNS] == pytest.approx(
        [updates(REFERENCE, run, 0.8) for run in RUNS], rel=0.03
    )


def test_a_long_flat_tail_does_not_hide_the_start() -> None:
    rows = spotdnn_rows(steps=range(10, 300_000, 60), noise=0.05)

    found = fit_spotdnn_loss(rows, goal_loss=0.8).law

    assert found.c1 == pytest.approx(900, rel=0.05)
    assert found.c5 == pytest.approx(0.5, abs=0.01)


def test_order_of_rows_does_not_matter() -> None:
    rows = spotdnn_rows(noise=0.05)

    assert fit_spotdnn_loss(rows[::-1], goal_loss=0.8) == fit_spotdnn_loss(rows, goal_loss=0.8)


def test_units_of_loss_and_step_do_not_matter() -> None:
    rows = spotdnn_rows(noise=0.05)
    scaled = [replace(row, step=row.step / 100, loss=row.loss * 8) for row in rows]

    law = fit_spotdnn_loss(rows, goal_loss=0.8).law
    other = fit_spotdnn_loss(scaled, goal_loss=6.4).law

    assert (other.c1, other.c3, other.c5) == pytest.approx(
        (law.c1 / 100, law.c3 * 8 / 100, law.c5 * 8), rel=1e-4
    )
    assert other.relative_sd == pytest.approx(law.relative_sd, rel=1e-3)


def test_one_batch_size_leaves_c2_at_zero_and_says_so() -> None:
    found = fit_spotdnn_loss(spotdnn_rows(runs=[(1, 256.0), (4, 256.0)]), goal_loss=0.8)

    assert found.law.c2 == 0
    assert found.law.c3 == pytest.approx(2500 - 0.2 * 256, rel=1e-3)
    assert found.law.batch_range == (256, 256)
    assert "one batch size" in found.notes[0]


def test_one_worker_count_does_not_identify_the_spotdnn_law() -> None:
    with pytest.raises(CannotFitError, match=r"all rows have 4 workers.*not identified"):
        fit_spotdnn_loss(spotdnn_rows(runs=[(4, 256.0), (4, 512.0)]), goal_loss=0.8)


def test_batch_and_workers_that_change_together_are_not_separated() -> None:
    with pytest.raises(CannotFitError, match="do not separate"):
        fit_spotdnn_loss(spotdnn_rows(runs=[(1, 256.0), (2, 512.0)]), goal_loss=0.8)


def test_synchronous_rows_are_not_spotdnns() -> None:
    rows = [replace(row, asynchronous=False) for row in spotdnn_rows()]

    with pytest.raises(CannotFitError, match="synchronous"):
        fit_spotdnn_loss(rows, goal_loss=0.8)


def test_a_goal_below_the_floor_is_unreachable() -> None:
    with pytest.raises(UnreachableTargetError):
        fit_spotdnn_loss(spotdnn_rows(), goal_loss=0.4)
    with pytest.raises(UnreachableTargetError):
        fit_cynthia_loss(cynthia_rows(), goal_loss=0.2)


@pytest.mark.parametrize("asynchronous", [True, False])
def test_exact_logs_give_the_cynthia_law_back(asynchronous: bool) -> None:
    found = fit_cynthia_loss(cynthia_rows(asynchronous=asynchronous), goal_loss=0.5)

    assert (found.law.k0, found.law.k1) == pytest.approx((400, 0.3), rel=1e-4)
    assert found.law.k2 == pytest.approx(0, abs=0.5)
    assert found.law.relative_sd == pytest.approx(0.03, abs=1e-3)
    told = ("steps to a loss grow with the workers to the power 0.50",)
    assert found.notes == (told if asynchronous else ())


@pytest.mark.parametrize("exponent", [0.0, 0.1, 1.0])
def test_the_cynthia_law_learns_what_stale_gradients_cost(exponent: float) -> None:
    rows = [
        replace(row, loss=300 / (row.step / row.worker_count**exponent + 250) + 0.3)
        for row in cynthia_rows([2, 4])
    ]

    found = fit_cynthia_loss(rows, goal_loss=0.5).law

    assert (found.k0, found.k1, found.k2) == pytest.approx((300, 0.3, 250), rel=0.01)
    assert found.worker_exponent == pytest.approx(exponent, abs=0.01)


def test_the_cynthia_law_says_when_the_effect_of_workers_is_assumed() -> None:
    found = fit_cynthia_loss(cynthia_rows([4], noise=0.01), goal_loss=0.5)

    assert found.law.k0 == pytest.approx(400, rel=0.05)
    assert found.notes == ("all rows have 4 workers: sqrt(n) is assumed, not identified",)
    assert fit_cynthia_loss(cynthia_rows([4], asynchronous=False), goal_loss=0.5).notes == ()


def test_cynthia_leaves_out_the_loss_before_the_first_step() -> None:
    start = LossRow(step=0, loss=11.0, worker_count=1, weighted_batch=128)

    assert fit_cynthia_loss([start, *cynthia_rows()], goal_loss=0.5).law.k0 == pytest.approx(400)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_diverged_run_is_named(loss: float) -> None:
    rows = [replace(spotdnn_rows()[0], loss=loss), *spotdnn_rows()[1:]]

    with pytest.raises(CannotFitError, match=r"at step 10 of the run with 1 workers.*diverged"):
        fit_spotdnn_loss(rows, goal_loss=0.8)


def test_a_loss_that_rises_is_named() -> None:
    rising = [replace(row, loss=5 - row.loss) for row in cynthia_rows()]

    with pytest.raises(CannotFitError, match="does not fall"):
        fit_cynthia_loss(rising, goal_loss=0.5)
    with pytest.raises(CannotFitError, match="does not fall"):
        fit_cynthia_loss([r for r in rising if r.step in {100, 900, 2000}], goal_loss=0.5)


@pytest.mark.parametrize(
    "bad",
    [
        {"step": -1.0},
        {"worker_count": 0},
        {"weighted_batch": 0.0},
        {"weighted_batch": math.nan},
        {"convergence_coefficient": 1.5},
    ],
)
def test_impossible_rows_are_refused(bad: dict[str, float]) -> None:
    rows = [replace(cynthia_rows()[0], **bad), *cynthia_rows()]  # type: ignore[arg-type]

    with pytest.raises(CannotFitError, match="R between 0 and 1"):
        fit_cynthia_loss(rows, goal_loss=0.5)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(CannotFitError, match="7 rows are too few; give at least 8"):
        fit_spotdnn_loss(spotdnn_rows()[:7], goal_loss=0.8)
    with pytest.raises(CannotFitError, match="0 rows are too few"):
        fit_cynthia_loss([], goal_loss=0.8)
