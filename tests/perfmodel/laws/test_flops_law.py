"""The published steps are of CM-DARE's models on a K80, batch 128, one worker and one server."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import CannotFitError
from spotwright.perfmodel.laws.flops_law import ModelFacts, fit_flops_law

PUBLISHED = [  # FLOPs per image, tensors, parameters, seconds per step
    (630989589, 50, 693818, 0.105817),
    (860117021, 62, 1063226, 0.131684),
    (1087710757, 74, 1211194, 0.15495),
    (2915531621, 170, 3391034, 0.348307),
    (3943594121, 224, 4610362, 0.447493),
    (4970946221, 278, 5718842, 0.56119),
    (3273945570, 264, 3703818, 0.474647),
    (663908170, 210, 737418, 0.232077),
    (5768251646, 216, 6568282, 0.608734),
    (22864820174, 216, 26204362, 1.405921),
    (2587431950, 216, 2926986, 0.39154),
]


def facts(flops: float, tensors: float, parameters: float) -> ModelFacts:
    server_s = 0.108e-3 * tensors + 1.26e-9 * 4 * parameters
    return ModelFacts(flops_per_sample=flops, batch=128, tensor_count=tensors, known_s=server_s)


POINTS = [(facts(g, n, p), s) for g, n, p, s in PUBLISHED]


def test_published_models_left_out_are_predicted_within_5_percent() -> None:
    errors = []
    for i, (model, step_s) in enumerate(POINTS):
        law = fit_flops_law(POINTS[:i] + POINTS[i + 1 :])
        errors.append(abs(law.step_s(model) / step_s - 1))

    assert sum(errors) / len(errors) == pytest.approx(0.0456, abs=5e-4)
    assert fit_flops_law(POINTS).relative_sd == pytest.approx(0.05, abs=0.01)


@given(per_tensor=st.floats(1e-4, 1e-2), per_flop=st.floats(1e-14, 1e-12))
def test_a_form_that_made_the_rows_predicts_them_exactly(
    per_tensor: float, per_flop: float
) -> None:
    def step(model: ModelFacts) -> float:
        work = per_tensor * model.tensor_count + per_flop * model.batch * model.flops_per_sample
        return model.known_s + work

    law = fit_flops_law([(model, step(model)) for model, _ in POINTS])
    new = facts(9e9, 150, 8e6)

    assert law.forms_s(new)[:2] == pytest.approx((step(new), step(new)), rel=1e-4)


def test_one_model_makes_worker_time_proportional_to_flops_and_says_so() -> None:
    model, step_s = POINTS[0]
    law = fit_flops_law(POINTS[:1])
    twice = replace(model, flops_per_sample=2 * model.flops_per_sample)

    assert law.step_s(model) == pytest.approx(step_s)
    assert law.step_s(twice) == pytest.approx(2 * step_s - model.known_s)
    assert law.relative_sd == pytest.approx(0.55)
    assert law.basis == "one model: worker time proportional to FLOPs"


@pytest.mark.parametrize(("count", "forms"), [(2, 3), (3, 4), (4, 4)])
def test_few_models_bear_few_forms(count: int, forms: int) -> None:
    law = fit_flops_law(POINTS[:count])

    assert len(law.coefficients) == forms
    assert law.basis == f"{count} models: mean of {forms} forms"
    assert count == 4 or law.relative_sd >= 0.14


def test_one_model_at_several_batches_is_one_model() -> None:
    points = [(replace(POINTS[0][0], batch=b), 0.1 * b / 128) for b in (64, 128, 256)]

    assert fit_flops_law(points).model_count == 1


def test_without_a_server_the_step_of_one_model_grows_with_its_batch() -> None:
    model, step_s = POINTS[0]
    alone = replace(model, known_s=0.0)

    law = fit_flops_law([(alone, step_s)])

    assert law.step_s(replace(alone, batch=256)) == pytest.approx(2 * step_s)


def test_order_and_units_do_not_matter() -> None:
    law = fit_flops_law(POINTS)
    giga = [(replace(m, flops_per_sample=m.flops_per_sample / 1e9), s) for m, s in POINTS]
    new = facts(9e9, 150, 8e6)

    assert fit_flops_law(POINTS[::-1]) == law
    assert fit_flops_law(giga).step_s(replace(new, flops_per_sample=9.0)) == pytest.approx(
        law.step_s(new)
    )


def test_a_step_shorter_than_the_servers_time_is_refused() -> None:
    with pytest.raises(CannotFitError, match="less than the") as error:
        fit_flops_law([(POINTS[0][0], 0.001)])

    assert "or 0 where none took part" in error.value.way_out


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_figures_are_named(bad: float) -> None:
    with pytest.raises(CannotFitError, match="step_s is"):
        fit_flops_law([(POINTS[0][0], bad)])
    with pytest.raises(CannotFitError, match="flops_per_sample is"):
        fit_flops_law([(replace(POINTS[0][0], flops_per_sample=bad), 1.0)])


def test_no_points_are_refused() -> None:
    with pytest.raises(CannotFitError, match="no rows"):
        fit_flops_law([])
