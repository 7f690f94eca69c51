"""Laws given back by the logs they made."""

from dataclasses import replace

import pytest

from spotwright.domain.errors import BadInputError, CannotFitError
from spotwright.domain.job import JobSpec, Target, TargetKind
from spotwright.domain.workload import CynthiaLoss, NoiseScaleLaw, SpotdnnLoss, Strategy
from spotwright.perfmodel.laws.loss_rows import LossRow
from spotwright.usecases.fit_loss_law import fit_loss_law
from tests.perfmodel.calibration.synthetic_rows import truth

GOAL = 0.5


def _job(kind: TargetKind = TargetKind.LOSS) -> JobSpec:
    job = truth(Strategy.ASP_PS)
    return replace(job, goal=replace(job.goal, target=Target(kind=kind, value=GOAL)))


def _run(batch: float, *, steps_to_goal: float, workers: int = 1) -> list[LossRow]:
    """Return a log that falls as 1 / step and has the goal at a given step."""
    return [
        LossRow(step=s, loss=GOAL * steps_to_goal / s, worker_count=workers, weighted_batch=batch)
        for s in range(10, 4000, 10)
    ]


def _noise_scale_log(*batches: float) -> list[LossRow]:
    return [row for b in batches for row in _run(b, steps_to_goal=500 * (1 + 256 / b))]


def test_the_noise_scale_follows_from_when_each_batch_reached_the_goal() -> None:
    rows = _noise_scale_log(64, 128, 256, 1024)

    found = fit_loss_law(rows, law="noise-scale", job=_job())

    assert isinstance(found.law, NoiseScaleLaw)
    assert found.law.minimum_steps == pytest.approx(500, rel=0.03)
    assert found.law.noise_scale_samples == pytest.approx(256, rel=0.06)
    assert found.law.loss == GOAL
    assert found.notes == ()


def test_runs_that_end_above_the_goal_are_left_out_and_named() -> None:
    short = _run(32, steps_to_goal=9_000)

    found = fit_loss_law([*_noise_scale_log(64, 1024), *short], law="noise-scale", job=_job())

    assert found.notes == ("left out, as they end above 0.5: runs of batch 32",)
    assert isinstance(found.law, NoiseScaleLaw)
    assert found.law.noise_scale_samples == pytest.approx(256, rel=0.06)


def test_a_goal_that_no_run_reached_cannot_be_fitted() -> None:
    rows = [*_run(64, steps_to_goal=9_000), *_run(128, steps_to_goal=9_000)]

    with pytest.raises(CannotFitError, match="0 batch sizes"):
        fit_loss_law(rows, law="noise-scale", job=_job())


@pytest.mark.parametrize(("law", "kind"), [("cynthia", CynthiaLoss), ("spotdnn", SpotdnnLoss)])
def test_the_other_laws_are_fitted_by_their_names(law: str, kind: type) -> None:
    rows = [
        LossRow(
            step=s,
            loss=0.1 + 40 * (n * ((1 - 1 / n) ** 0.5 + 0.3)) ** 0.5 / (s + 20),
            worker_count=n,
            weighted_batch=64,
            convergence_coefficient=(1 - 1 / n) ** 0.5,
        )
        for n in (1, 4, 8)
        for s in range(10, 2000, 10)
    ]

    assert isinstance(fit_loss_law(rows, law=law, job=_job()).law, kind)


def test_a_goal_that_is_no_loss_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"set goal\.loss"):
        fit_loss_law(_noise_scale_log(64, 128), law="cynthia", job=_job(TargetKind.STEPS))
