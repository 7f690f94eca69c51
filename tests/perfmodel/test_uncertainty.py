import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.workload import ComputeProfile, StepInterval, Strategy, Workload
from spotwright.perfmodel.order_statistics import expected_maximum, smooth_maximum
from spotwright.perfmodel.uncertainty import LogBounds, step_bounds
from tests.perfmodel.example_clusters import classes, fleet_of, host, model, nodes, workload

sds = st.floats(0, 2)


def bounds(work: Workload, count: int = 4, **hardware: Any) -> LogBounds:
    groups = [nodes(host(**hardware), count)]
    speed = model(work, groups).speed(fleet_of(count))
    return step_bounds(work, classes(work, groups), np.array([float(count)]), speed)


@given(sds_added=st.lists(sds, min_size=1, max_size=5))
def test_independent_uncertainties_add_in_squares(sds_added: list[float]) -> None:
    widened = LogBounds(0.0, 0.0)
    for sd in sds_added:
        widened = widened.widened(sd)

    total = 1.6449 * math.sqrt(sum(sd**2 for sd in sds_added))

    assert (widened.low, widened.high) == pytest.approx((-total, total))


def test_a_figure_is_within_the_ends_of_its_interval_as_often_as_they_say() -> None:
    bounds, values = LogBounds(-0.2, 0.5), np.array([10.0])
    interval = bounds.around(10.0)

    for limit, chance in [(interval.low, 0.05), (interval.mid, 0.5), (interval.high, 0.95)]:
        assert bounds.probability_within(limit, values) == pytest.approx(chance, abs=1e-4)


def test_without_an_error_a_figure_is_within_a_limit_or_not() -> None:
    values = np.array([1.0, 2.0, 3.0, np.inf])

    assert LogBounds(0.0, 0.0).probability_within(2.0, values) == 0.5
    assert LogBounds(-0.1, 0.1).probability_within(2.0, values) == pytest.approx(1.5 / 4)


@given(low=sds, high=sds, extra=sds, value=st.floats(1e-6, 1e9))
def test_every_interval_holds_its_middle(
    low: float, high: float, extra: float, value: float
) -> None:
    interval = LogBounds(-low, high).widened(extra).around(value)

    assert interval.low <= interval.mid == value <= interval.high


def test_a_calibrated_workload_uses_its_own_quantiles() -> None:
    plain = workload(Strategy.ALLREDUCE)
    speed = model(plain, [nodes(host(), 4)]).speed(fleet_of(4))
    share = float(speed.communication_fraction[0])
    measured = StepInterval(
        low_quantile=-1.2, high_quantile=2.5, base_scale=0.03, network_scale=0.2
    )

    found = bounds(replace(plain, interval=measured))

    scale = math.hypot(0.03, 0.2 * share)
    assert 0 < share < 1
    assert (found.low, found.high) == pytest.approx((-1.2 * scale, 2.5 * scale))


def test_quantiles_on_one_side_only_still_hold_the_middle() -> None:
    biased = StepInterval(low_quantile=0.5, high_quantile=2.0, base_scale=0.1)

    found = bounds(workload(Strategy.ALLREDUCE, interval=biased))

    assert (found.low, found.high) == pytest.approx((0.0, 0.2))


def test_asynchronous_workers_average_their_spread_out_and_synchronous_ones_do_not() -> None:
    uneven = {"Small": ComputeProfile(per_sample_s=1.0, relative_sd=0.3)}
    for strategy, narrower in ((Strategy.ASP_PS, True), (Strategy.ALLREDUCE, False)):
        work = workload(strategy, compute=uneven)  # 32 s of compute dwarf the exchange
        one, many = bounds(work, 1).high, bounds(work, 16).high
        assert (many < 0.5 * one) == narrower


def test_a_gpu_that_was_never_measured_has_a_wider_interval() -> None:
    work = workload(Strategy.ALLREDUCE)

    assert bounds(work, name="g.large", gpu="Large").high > 1.5 * bounds(work).high


def test_a_calibration_does_not_make_a_gpu_it_never_saw_any_surer() -> None:
    narrow = StepInterval(low_quantile=-1.6, high_quantile=1.6, base_scale=0.03)
    work = replace(workload(Strategy.ALLREDUCE), interval=narrow)

    measured, guessed = bounds(work, 1), bounds(work, 1, gpu="Large")

    assert measured.high == pytest.approx(0.048)
    assert guessed.high > 0.35 * 1.6449


def test_a_ring_larger_than_any_that_was_measured_is_less_sure() -> None:
    work = workload(Strategy.ALLREDUCE)

    assert bounds(work, 256).high > bounds(work, 64).high


@pytest.mark.parametrize("count", [1, 2, 8, 64, 512])
def test_the_expected_maximum_is_that_of_drawn_normals(count: int) -> None:
    draws = np.random.default_rng(4).standard_normal((4000, count)).max(axis=1)

    assert expected_maximum(np.array([float(count)]))[0] == pytest.approx(draws.mean(), abs=0.04)


@given(a=st.floats(1e-3, 1e3), b=st.floats(1e-3, 1e3), power=st.floats(1, 100))
def test_the_smooth_maximum_lies_between_maximum_and_sum(a: float, b: float, power: float) -> None:
    found = float(smooth_maximum(np.array([a]), np.array([b]), power)[0])

    assert max(a, b) * (1 - 1e-12) <= found <= (a + b) * (1 + 1e-12)
    assert found == pytest.approx((a**power + b**power) ** (1 / power))
