import pytest

from spotwright.domain.job import TargetKind
from spotwright.domain.job_run import Progress
from tests.usecases.example_job_run import planned_run

SAMPLES, STEPS, LOSS = TargetKind.SAMPLES, TargetKind.STEPS, TargetKind.LOSS


@pytest.mark.parametrize(
    ("kind", "progress", "fraction"),
    [
        (SAMPLES, Progress(samples=25_000), 0.25),
        (SAMPLES, Progress(steps=500), 0.5),
        (SAMPLES, Progress(samples=25_000, steps=900), 0.25),
        (STEPS, Progress(samples=25_000, steps=900), 0.9),
        (TargetKind.EPOCHS, Progress(samples=10_000), 0.1),
        (TargetKind.TOKENS, Progress(steps=100), 0.1),
        (LOSS, Progress(steps=300, loss=0.9), 0.3),
        (LOSS, Progress(loss=0.9), None),
        (SAMPLES, Progress(loss=0.9), None),
        (SAMPLES, Progress(samples=120_000), 1.0),
    ],
)
def test_progress_is_measured_by_what_the_goal_counts_or_else_by_what_was_told(
    kind: TargetKind, progress: Progress, fraction: float | None
) -> None:
    assert planned_run(kind, 0.5).fraction(progress) == pytest.approx(fraction)


def test_a_loss_is_reached_when_it_is_at_or_below_the_target_however_early() -> None:
    planned = planned_run(LOSS, 0.5)

    assert not planned.is_reached(Progress(steps=10, loss=0.5001))
    assert planned.is_reached(Progress(steps=10, loss=0.5))
    assert planned.fraction(Progress(steps=10, loss=0.5)) == 1.0


def test_nothing_can_be_told_after_the_planned_steps_with_the_loss_still_too_high() -> None:
    progress = Progress(steps=1_200, loss=0.6)

    assert not planned_run(LOSS, 0.5).is_reached(progress)
    assert planned_run(LOSS, 0.5).fraction(progress) is None


def test_rounding_keeps_no_job_from_its_goal() -> None:
    assert planned_run(SAMPLES).is_reached(Progress(samples=0.1 * 3 * 333_333.3333333333))
