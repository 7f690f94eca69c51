"""Bounds of interrupted runs, against the model's own expectation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.perfmodel.interruption import stopped_run_s
from spotwright.planner.interruption_bound import run_bound

RATES_PER_HOUR = st.just(0.0) | st.floats(1e-9, 1e3)
SAVE_S, RESTART_S = st.floats(1e-3, 1e5), st.floats(0, 1e5)
WORK_S = st.floats(1e-3, 1e8)


@given(RATES_PER_HOUR, SAVE_S, RESTART_S, WORK_S)
def test_no_run_is_shorter_than_its_bound(
    per_hour: float, save_s: float, restart_s: float, work_s: float
) -> None:
    run_s = stopped_run_s(work_s, per_hour, save_s=save_s, restart_s=restart_s)

    bound = run_bound(per_hour, save_s=save_s, restart_s=restart_s)

    assert bound.least_s(work_s) <= float(run_s) * (1 + 1e-9)


@given(RATES_PER_HOUR, RATES_PER_HOUR, SAVE_S, RESTART_S, WORK_S)
def test_the_bound_for_few_events_holds_for_more(
    per_hour: float, more: float, save_s: float, restart_s: float, work_s: float
) -> None:
    often = stopped_run_s(work_s, per_hour + more, save_s=save_s, restart_s=restart_s)

    bound = run_bound(per_hour, save_s=save_s, restart_s=restart_s)

    assert bound.least_s(work_s) <= float(often) * (1 + 1e-9)


def test_a_run_that_nothing_stops_takes_its_work() -> None:
    assert run_bound(0.0, save_s=60.0, restart_s=600.0).least_s(1000.0) == 1000.0


@pytest.mark.parametrize("per_hour", [0.01, 0.1, 1.0])
def test_the_bound_is_near_for_long_runs_with_short_checkpoints(per_hour: float) -> None:
    work_s = np.geomspace(1e6, 1e8, 5)
    run_s = stopped_run_s(work_s, per_hour, save_s=10.0, restart_s=120.0)

    bound = run_bound(per_hour, save_s=10.0, restart_s=120.0)

    least_s = [bound.least_s(work) for work in work_s.tolist()]
    assert least_s == pytest.approx(run_s, rel=0.01)
