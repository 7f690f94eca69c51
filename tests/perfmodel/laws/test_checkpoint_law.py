"""The facts below are means of five saves each, published with CM-DARE (ICDCS 2020)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import CannotFitError
from spotwright.domain.workload import ModelSize, Strategy, Workload
from spotwright.perfmodel.interruption import checkpoint_s
from spotwright.perfmodel.laws.checkpoint_law import (
    DEFAULT_CHECKPOINT_LAW,
    INDEX_KB_PER_TENSOR,
    CheckpointLaw,
    CheckpointRow,
    fit_checkpoint_law,
)

PUBLISHED = [  # weight file in MiB, index file in kB, mean seconds
    (5.3, 5.42, 3.79),
    (8.12, 6.71, 3.542),
    (9.25, 7.9, 3.478),
    (25.9, 17.94, 4.444),
    (35.22, 23.61, 4.648),
    (43.68, 29.26, 5.002),
    (5.64, 21.03, 4.276),
    (22.36, 22.07, 4.402),
    (50.16, 22.13, 5.124),
    (89.03, 22.39, 5.874),
    (200.01, 22.44, 7.67),
    (112.71, 27.29, 5.666),
]
SAVES = [
    CheckpointRow(checkpoint_bytes=mib * 2**20, tensor_count=kb / INDEX_KB_PER_TENSOR, seconds=s)
    for mib, kb, s in PUBLISHED
]
SIZES = [(1e7, 40), (9e7, 700), (4e8, 60), (2e9, 300)]


def seconds(law: CheckpointLaw, save: CheckpointRow) -> float:
    return law.seconds(checkpoint_bytes=save.checkpoint_bytes, tensor_count=save.tensor_count)


def rows_of(law: CheckpointLaw, sizes: list[tuple[float, float]]) -> list[CheckpointRow]:
    return [
        CheckpointRow(
            checkpoint_bytes=size,
            tensor_count=tensors,
            seconds=law.seconds(checkpoint_bytes=size, tensor_count=tensors),
        )
        for size, tensors in sizes
    ]


@given(fixed=st.floats(0.1, 10), per_byte=st.floats(1e-10, 1e-7), per_tensor=st.floats(0, 0.05))
def test_exact_rows_give_the_law_back(fixed: float, per_byte: float, per_tensor: float) -> None:
    law = CheckpointLaw(fixed_s=fixed, s_per_byte=per_byte, s_per_tensor=per_tensor)

    found = fit_checkpoint_law(rows_of(law, SIZES))

    assert found.fixed_s == pytest.approx(fixed, rel=1e-5, abs=1e-6)
    assert found.s_per_byte == pytest.approx(per_byte, rel=1e-5)
    assert found.s_per_tensor == pytest.approx(per_tensor, rel=1e-5, abs=1e-7)


def test_a_refit_of_the_published_means_is_the_default_law() -> None:
    found = fit_checkpoint_law(SAVES)

    assert found.fixed_s == pytest.approx(DEFAULT_CHECKPOINT_LAW.fixed_s, rel=0.01)
    assert found.s_per_byte == pytest.approx(DEFAULT_CHECKPOINT_LAW.s_per_byte, rel=0.02)
    assert found.s_per_tensor == pytest.approx(DEFAULT_CHECKPOINT_LAW.s_per_tensor, rel=0.02)


def test_models_left_out_are_predicted_better_than_the_target_of_8_percent() -> None:
    errors = []
    for i, save in enumerate(SAVES):
        law = fit_checkpoint_law(SAVES[:i] + SAVES[i + 1 :])
        errors.append(abs(seconds(law, save) / save.seconds - 1))

    assert sum(errors) / len(errors) < 0.06


def test_order_and_units_do_not_matter() -> None:
    in_ms = [
        CheckpointRow(
            checkpoint_bytes=row.checkpoint_bytes / 1e6,
            tensor_count=row.tensor_count,
            seconds=row.seconds * 1e3,
        )
        for row in SAVES
    ]
    law = fit_checkpoint_law(SAVES)

    assert fit_checkpoint_law(SAVES[::-1]) == law
    assert fit_checkpoint_law(in_ms).s_per_byte == pytest.approx(law.s_per_byte * 1e9)


def test_one_save_is_predicted_as_it_was() -> None:
    law = fit_checkpoint_law(SAVES[:1])

    assert seconds(law, SAVES[0]) == pytest.approx(3.79)
    assert law.s_per_byte == law.s_per_tensor == 0


def test_tensors_in_step_with_bytes_leave_their_cost_to_the_bytes() -> None:
    rows = rows_of(DEFAULT_CHECKPOINT_LAW, [(1e8, 10), (2e8, 20), (4e8, 40)])

    law = fit_checkpoint_law(rows)

    assert law.s_per_tensor == 0
    assert [seconds(law, row) for row in rows] == pytest.approx([row.seconds for row in rows])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_seconds_are_named(bad: float) -> None:
    with pytest.raises(CannotFitError, match="seconds is"):
        fit_checkpoint_law([CheckpointRow(checkpoint_bytes=1e6, tensor_count=5, seconds=bad)])


def test_no_rows_are_refused() -> None:
    with pytest.raises(CannotFitError, match="no rows"):
        fit_checkpoint_law([])


def test_a_job_without_a_stated_checkpoint_uses_the_default_law() -> None:
    model = ModelSize(parameter_bytes=1e9, tensor_count=100)

    found = checkpoint_s(Workload(strategy=Strategy.ALLREDUCE, model=model))

    assert found == pytest.approx(3.24 + 3 * 1e9 * 1.59e-8 + 100 * 3.86e-3)
