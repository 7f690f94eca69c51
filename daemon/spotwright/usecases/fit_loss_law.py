"""Fit how the loss of a job falls to the logs of its runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spotwright.domain.errors import BadInputError
from spotwright.domain.job import JobSpec, TargetKind
from spotwright.domain.workload import LossLaw
from spotwright.perfmodel.laws.loss_law import fit_cynthia_loss, fit_spotdnn_loss
from spotwright.perfmodel.laws.loss_rows import LossRow
from spotwright.perfmodel.laws.noise_scale_law import fit_noise_scale, steps_to_loss


@dataclass(frozen=True, slots=True)
class FittedLoss:
    """A law, and what the rows could not show."""

    law: LossLaw
    notes: tuple[str, ...]


def fit_loss_law(rows: Sequence[LossRow], *, law: str, job: JobSpec) -> FittedLoss:
    """Fit a law, by its name in job files, to the rows of a log.

    Raises:
        BadInputError: the goal of the job is no loss.
        CannotFitError: the rows do not show the law.
        UnreachableTargetError: the goal lies below the fitted floor.
    """
    target = job.goal.target
    if target.kind is not TargetKind.LOSS:
        raise BadInputError("a loss law needs a job whose goal is a loss; set goal.loss")
    return _FITS[law](rows, target.value)


def _spotdnn(rows: Sequence[LossRow], goal_loss: float) -> FittedLoss:
    found = fit_spotdnn_loss(rows, goal_loss=goal_loss)
    return FittedLoss(found.law, found.notes)


def _cynthia(rows: Sequence[LossRow], goal_loss: float) -> FittedLoss:
    found = fit_cynthia_loss(rows, goal_loss=goal_loss)
    return FittedLoss(found.law, found.notes)


def _noise_scale(rows: Sequence[LossRow], goal_loss: float) -> FittedLoss:
    steps = steps_to_loss(rows, loss=goal_loss)
    reached = [(batch, s) for batch, runs in steps.items() for s in runs if s is not None]
    short = [f"{batch:g}" for batch, runs in steps.items() if None in runs]
    notes = (f"left out, as they end above {goal_loss:g}: runs of batch {', '.join(short)}",)
    return FittedLoss(fit_noise_scale(reached, loss=goal_loss), notes if short else ())


_FITS: Mapping[str, Callable[[Sequence[LossRow], float], FittedLoss]] = {
    "spotdnn": _spotdnn,
    "cynthia": _cynthia,
    "noise-scale": _noise_scale,
}
