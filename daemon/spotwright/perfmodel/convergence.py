"""How many updates reach the goal.

    spotdnn      j = (c2 b_w + c3) sqrt((R + c4) n) / (L - c5) - c1
    cynthia      s = (k0 / (L - k1) - k2) n^p,  p = 0 when synchronous
    noise-scale  s = s_min (1 + B_noise / b_w), for the loss it was measured at
    fixed work   samples, epochs and tokens / b_w; steps as they are

b_w is the weighted batch. R is spotDNN's convergence coefficient: with update shares w_i = v_i / v,
w_1 that of the fastest worker, R = sqrt((w_1 - 1)^2 + w_2^2 + ... + w_n^2), which
by classes of equal workers is R^2 = 1 - 2 v_f / V + Q / V^2, V = sum n_i v_i, Q = sum n_i v_i^2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import (
    BadInputError,
    MissingFactError,
    OutsideFittedRangeError,
    UnreachableTargetError,
)
from spotwright.domain.job import Target, TargetKind
from spotwright.domain.workload import (
    CynthiaLoss,
    Dataset,
    LossLaw,
    NoiseScaleLaw,
    SpotdnnLoss,
    Workload,
)

Floats = NDArray[np.float64]

_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the laws need to know of fleets; one entry per fleet."""

    weighted_batch: Floats
    worker_count: Floats
    coefficient: Floats  # R; 0 for synchronous training
    asynchronous: bool


def convergence_coefficient(counts: Floats, worker_samples_per_s: Floats) -> Floats:
    """Return R of each fleet from the speed of one worker of each class, (classes, fleets)."""
    total = (counts * worker_samples_per_s).sum(axis=0)
    squares = (counts * worker_samples_per_s**2).sum(axis=0)
    fastest = np.where(counts > 0, worker_samples_per_s, 0.0).max(axis=0)
    return _root(1 - 2 * fastest / total + squares / total**2)


def group_coefficient(counts: Floats, group_samples_per_s: Floats) -> Floats:
    """Return R of each fleet from the speeds of whole groups; faster, for whole counts."""
    per_worker = group_samples_per_s / np.maximum(counts, 1.0)
    total = group_samples_per_s.sum(axis=0)
    squares = np.einsum("ij,ij->j", group_samples_per_s, per_worker)
    return _root(1 + (squares / total - 2 * per_worker.max(axis=0)) / total)


def _root(squared: Floats) -> Floats:
    """Return the square root; of a lone worker's zero, rounding must not leave 1e-8."""
    return np.sqrt(np.where(squared > _ROUNDING, squared, 0.0))


def updates_to_goal(workload: Workload, target: Target, progress: Progress) -> Floats:
    """Return the updates each fleet needs.

    Raises:
        UnreachableTargetError: the loss lies below the law's floor.
        MissingFactError: the goal is a loss and the job has no convergence law.
    """
    match target.kind:
        case TargetKind.LOSS:
            return _updates_to_loss(workload.convergence, target.value, progress)
        case TargetKind.STEPS:
            return np.full_like(progress.weighted_batch, target.value)
        case _:
            return _samples(workload.dataset, target) / progress.weighted_batch


def check_fitted_range(law: LossLaw | None, progress: Progress) -> None:
    """Raise OutsideFittedRangeError where a law would be asked beyond the runs it was fitted on."""
    if not isinstance(law, SpotdnnLoss):
        return
    for quantity, values, (low, high) in (
        ("the weighted batch", progress.weighted_batch, law.batch_range),
        ("the convergence coefficient", progress.coefficient, law.coefficient_range),
    ):
        inside = _inside(values, low, high)
        if not inside.all():
            value = float(values[~inside][0])
            raise OutsideFittedRangeError(quantity, value=value, low=low, high=high)


def in_fitted_range(law: LossLaw | None, progress: Progress) -> NDArray[np.bool_]:
    """Return which fleets the law may be asked about."""
    if not isinstance(law, SpotdnnLoss):
        return np.ones(progress.weighted_batch.shape, dtype=np.bool_)
    batch_inside = _inside(progress.weighted_batch, *law.batch_range)
    return batch_inside & _inside(progress.coefficient, *law.coefficient_range)


def _inside(values: Floats, low: float, high: float) -> NDArray[np.bool_]:
    return (values >= low * (1 - 1e-9)) & (values <= high * (1 + 1e-9))


def relative_sd(law: LossLaw | None, target: Target) -> float:
    """Return the relative uncertainty of the number of updates."""
    return law.relative_sd if law is not None and target.kind is TargetKind.LOSS else 0.0


def _updates_to_loss(law: LossLaw | None, loss: float, progress: Progress) -> Floats:
    match law:
        case SpotdnnLoss():
            if not progress.asynchronous:
                raise BadInputError("the spotdnn law describes asynchronous training: asp-ps only")
            above_floor = _above_floor(loss, law.floor_loss)
            scale = law.c2 * progress.weighted_batch + law.c3
            crowd = np.sqrt((progress.coefficient + law.c4) * progress.worker_count)
            updates = np.maximum(scale * crowd / above_floor - law.c1, 1.0)
            return np.where(scale > 0, updates, np.inf)  # beyond c3 / |c2| the law says nothing
        case CynthiaLoss():
            above_floor = _above_floor(loss, law.floor_loss)
            exponent = law.worker_exponent if progress.asynchronous else 0.0
            alone = law.k0 / above_floor - law.k2
            return np.maximum(alone * progress.worker_count**exponent, 1.0)
        case NoiseScaleLaw():
            if not np.isclose(loss, law.loss):
                raise BadInputError(
                    f"the noise-scale law was measured for a loss of {law.loss:g}, the goal is "
                    f"{loss:g}; set goal.loss to {law.loss:g} or measure again"
                )
            noise = law.noise_scale_samples / progress.weighted_batch
            return law.minimum_steps * (1 + noise)
        case None:
            raise MissingFactError("how the loss falls", way_out="add workload.convergence")


def _above_floor(loss: float, floor: float) -> float:
    if loss <= floor:
        raise UnreachableTargetError(target_loss=loss, floor_loss=floor)
    return loss - floor


def _samples(dataset: Dataset | None, target: Target) -> float:
    match target.kind:
        case TargetKind.EPOCHS if dataset is not None:
            return target.value * dataset.sample_count
        case TargetKind.TOKENS if dataset is not None and dataset.tokens_per_sample:
            return target.value / dataset.tokens_per_sample
        case TargetKind.SAMPLES:
            return target.value
    raise MissingFactError(f"how many samples {target.kind} are", way_out="add workload.dataset")
