"""Oracles: the definitions of MODEL.md section 1 worker by worker, and the laws plugged back in."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Strategy,
)
from spotwright.perfmodel.convergence import (
    Progress,
    check_fitted_range,
    convergence_coefficient,
    group_coefficient,
    in_fitted_range,
    relative_sd,
    updates_to_goal,
)
from tests.perfmodel.example_clusters import fleet_of, workload

SPOTDNN = SpotdnnLoss(c1=900, c2=-0.2, c3=2500, c4=0.2, c5=0.52, batch_range=(64, 8192))
CYNTHIA = CynthiaLoss(k0=6200, k1=0.31)
speeds = st.lists(st.tuples(st.integers(0, 10), st.floats(0.1, 1e4)), min_size=1, max_size=6)


def progress(batch: float, workers: float, coefficient: float, *, sync: bool = False) -> Progress:
    return Progress(
        weighted_batch=np.array([batch]),
        worker_count=np.array([workers]),
        coefficient=np.array([coefficient]),
        asynchronous=not sync,
    )


def updates(law: LossLaw | None, loss: float, made: Progress) -> float:
    work = workload(Strategy.ASP_PS, convergence=law)
    return float(updates_to_goal(work, Target(kind=TargetKind.LOSS, value=loss), made)[0])


def defined_coefficient(speed_of_each: list[float]) -> float:
    shares = sorted((v / sum(speed_of_each) for v in speed_of_each), reverse=True)
    return math.sqrt((shares[0] - 1) ** 2 + sum(share**2 for share in shares[1:]))


@pytest.mark.parametrize(("workers", "printed"), [(1, 0.0), (2, 0.71), (3, 0.82), (4, 0.87)])
def test_equal_workers_have_the_coefficient_of_the_papers_table(
    workers: int, printed: float
) -> None:
    found = convergence_coefficient(fleet_of(workers), fleet_of(7.0))

    assert round(float(found[0]), 2) == printed


def test_shares_of_64_and_36_percent_give_the_papers_0_51() -> None:
    found = convergence_coefficient(fleet_of(1, 1), fleet_of(0.36, 0.64))

    assert round(float(found[0]), 2) == 0.51


@given(mix=speeds)
def test_the_coefficient_by_classes_is_that_of_the_single_workers(
    mix: list[tuple[int, float]],
) -> None:
    counts = fleet_of(1 + mix[0][0], *(count for count, _ in mix[1:]))
    speed = fleet_of(*(v for _, v in mix))
    each = [
        v for count, v in zip(counts[:, 0], speed[:, 0], strict=True) for _ in range(int(count))
    ]

    defined = pytest.approx(defined_coefficient(each), abs=1e-7)

    assert convergence_coefficient(counts, speed)[0] == defined
    assert group_coefficient(counts, counts * speed)[0] == defined


@given(
    batch=st.floats(64, 8192),
    workers=st.integers(1, 64),
    coefficient=st.floats(0, 1),
    loss=st.floats(0.53, 0.6),
)
def test_after_the_updates_of_spotdnns_law_the_loss_is_the_target(
    batch: float, workers: int, coefficient: float, loss: float
) -> None:
    j = updates(SPOTDNN, loss, progress(batch, workers, coefficient))

    crowd = math.sqrt((coefficient + 0.2) * workers)
    assert j == 1.0 or (-0.2 * batch + 2500) * crowd / (j + 900) + 0.52 == pytest.approx(loss)


@pytest.mark.parametrize(("sync", "factor"), [(True, 1.0), (False, math.sqrt(9))])
def test_cynthias_asynchronous_workers_need_the_root_of_their_number_more(
    sync: bool, factor: float
) -> None:
    found = updates(CYNTHIA, 0.5, progress(256, 9, 0.9, sync=sync))

    assert found == pytest.approx(6200 / (0.5 - 0.31) * factor)


@pytest.mark.parametrize(("sync", "crowd"), [(True, 1.0), (False, 3.0**0.25)])
def test_a_fitted_power_of_workers_and_a_shift_replace_cynthias_root(
    sync: bool, crowd: float
) -> None:
    law = CynthiaLoss(k0=600, k1=0.3, k2=250, worker_exponent=0.25)

    j = updates(law, 0.5, progress(256, 3, 0.9, sync=sync))

    assert 600 / (j / crowd + 250) + 0.3 == pytest.approx(0.5)
    assert updates(law, 50.0, progress(256, 3, 0.9, sync=sync)) == 1


@pytest.mark.parametrize(("batch", "steps"), [(1, 514_000), (512, 2000), (2**30, 1000)])
def test_the_noise_scale_sets_where_larger_batches_stop_helping(batch: int, steps: float) -> None:
    law = NoiseScaleLaw(minimum_steps=1000, noise_scale_samples=513, loss=2.5)
    expected = {1: 514_000, 512: 1000 * (1 + 513 / 512), 2**30: 1000}[batch]

    found = updates(law, 2.5, progress(batch, 8, 0.0, sync=True))

    assert found == pytest.approx(expected, rel=1e-6)
    assert found == pytest.approx(steps, rel=1e-2)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (TargetKind.STEPS, 700, 700),
        (TargetKind.SAMPLES, 25_600, 100),
        (TargetKind.EPOCHS, 3, 3 * 1000 / 256),
        (TargetKind.TOKENS, 512_000, 512_000 / 128 / 256),
    ],
)
def test_fixed_work_is_divided_into_batches(
    kind: TargetKind, value: float, expected: float
) -> None:
    work = workload(Strategy.ALLREDUCE, dataset=Dataset(sample_count=1000, tokens_per_sample=128))

    found = updates_to_goal(work, Target(kind=kind, value=value), progress(256, 8, 0.0, sync=True))

    assert found[0] == pytest.approx(expected)


@pytest.mark.parametrize("loss", [0.52, 0.4])
def test_a_loss_below_the_floor_is_refused_with_the_floor(loss: float) -> None:
    with pytest.raises(UnreachableTargetError, match=r"never goes below 0\.52") as caught:
        updates(SPOTDNN, loss, progress(512, 4, 0.87))

    assert (caught.value.target_loss, caught.value.floor_loss) == (loss, 0.52)


@pytest.mark.parametrize("law", [SPOTDNN, CYNTHIA])
def test_a_loss_nearer_to_the_floor_takes_longer(law: LossLaw) -> None:
    made = progress(512, 4, 0.87)
    needed = [updates(law, loss, made) for loss in (1.5, 0.9, 0.7, 0.6, 0.53)]

    assert needed == sorted(needed)


def test_a_loss_without_a_law_or_epochs_without_a_data_set_are_missing_facts() -> None:
    with pytest.raises(MissingFactError, match=r"add workload.convergence"):
        updates(None, 0.5, progress(512, 4, 0.87))
    with pytest.raises(MissingFactError, match=r"how many samples epochs are.*workload.dataset"):
        updates_to_goal(
            workload(Strategy.ASP_PS),
            Target(kind=TargetKind.EPOCHS, value=3),
            progress(512, 4, 0.87),
        )


def test_a_noise_scale_measured_for_another_loss_is_refused() -> None:
    law = NoiseScaleLaw(minimum_steps=1000, noise_scale_samples=512, loss=2.5)

    with pytest.raises(BadInputError, match=r"measured for a loss of 2\.5, the goal is 2\.4"):
        updates(law, 2.4, progress(512, 4, 0.0))


@pytest.mark.parametrize(
    ("batch", "coefficient", "quantity"),
    [(63, 0.5, "the weighted batch"), (8193, 0.5, "the weighted batch"),
     (512, 0.96, "the convergence coefficient")],
)  # fmt: skip
def test_a_fleet_outside_the_fitted_range_is_refused_with_the_range(
    batch: float, coefficient: float, quantity: str
) -> None:
    law = SpotdnnLoss(
        c1=1, c2=-0.1, c3=2500, c4=1, c5=0, batch_range=(64, 8192), coefficient_range=(0, 0.95)
    )
    made = progress(batch, 4, coefficient)

    with pytest.raises(OutsideFittedRangeError, match=f"{quantity} would be .* was fitted for"):
        check_fitted_range(law, made)

    assert not in_fitted_range(law, made)[0]


@pytest.mark.parametrize("batch", [64, 8192])
def test_the_ends_of_the_fitted_range_belong_to_it(batch: float) -> None:
    check_fitted_range(SPOTDNN, progress(batch, 1, 0.0))

    assert in_fitted_range(SPOTDNN, progress(batch, 1, 0.0))[0]
    assert in_fitted_range(CYNTHIA, progress(1, 1, 0.0))[0]


def test_only_a_loss_makes_the_number_of_updates_uncertain() -> None:
    assert relative_sd(SPOTDNN, Target(kind=TargetKind.LOSS, value=0.6)) == 0.06
    assert relative_sd(SPOTDNN, Target(kind=TargetKind.STEPS, value=600)) == 0.0
    assert relative_sd(None, Target(kind=TargetKind.EPOCHS, value=6)) == 0.0
