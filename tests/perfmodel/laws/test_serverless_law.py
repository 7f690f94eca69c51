import math
from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import CannotFitError
from spotwright.domain.workload import ServerlessLaw
from spotwright.perfmodel.laws.serverless_law import (
    Identified,
    ServerlessFit,
    ServerlessRow,
    fit_serverless_law,
)
from spotwright.perfmodel.serverless import seconds_per_sample

MODEL_BYTES, GIVEN_MBPS = 18e6, 9_600.0
GRID = [(m, n, b) for m, n, b in product((1728, 2368, 3008), (4, 8, 16), (64, 128))]


def rows_of(
    settings: Iterable[tuple[float, float, float]], *, w0: float, w1: float, mbps: float
) -> list[ServerlessRow]:
    return [
        ServerlessRow(
            memory_mb=m,
            function_count=n,
            local_batch=b,
            step_s=b * (w0 + w1 / m) + n * 2 * MODEL_BYTES * 8e-6 / mbps,
        )
        for m, n, b in settings
    ]


def fit(rows: list[ServerlessRow], mbps: float = GIVEN_MBPS) -> ServerlessFit:
    return fit_serverless_law(rows, parameter_bytes=MODEL_BYTES, bandwidth_mbps=mbps)


@given(w0=st.floats(0, 0.02), w1=st.floats(1, 100), mbps=st.floats(500, 20_000))
def test_exact_rows_give_the_law_back(w0: float, w1: float, mbps: float) -> None:
    found = fit(rows_of(GRID, w0=w0, w1=w1, mbps=mbps))

    assert found.s_per_sample == pytest.approx(w0, rel=1e-4, abs=1e-6)
    assert found.mb_s_per_sample == pytest.approx(w1, rel=1e-4, abs=1e-3)
    assert found.bandwidth_mbps == pytest.approx(mbps, rel=1e-3)
    assert found.identified == Identified(serial=True, server=True)
    assert found.notes == ()


def test_a_few_wild_rows_do_not_move_the_law() -> None:
    rows = rows_of(GRID, w0=0.004, w1=30, mbps=6_000)
    wild = [ServerlessRow(memory_mb=1728, function_count=4, local_batch=64, step_s=50.0)]

    assert fit(rows + wild).mb_s_per_sample == pytest.approx(30, rel=1e-6)


def test_one_memory_size_makes_speed_proportional_to_memory_and_says_so() -> None:
    rows = rows_of([(3008, n, 64) for n in (4, 8, 16)], w0=0.004, w1=30, mbps=6_000)

    found = fit(rows)

    assert found.identified == Identified(serial=False, server=True)
    assert found.s_per_sample == 0
    assert found.mb_s_per_sample == pytest.approx(0.004 * 3008 + 30)
    assert "proportional to memory" in found.notes[0]


def test_one_number_of_functions_keeps_the_given_bandwidth_and_says_so() -> None:
    rows = rows_of([(m, 8, 64) for m in (960, 1984, 3008)], w0=0.004, w1=30, mbps=GIVEN_MBPS)

    found = fit(rows)

    assert found.identified == Identified(serial=True, server=False)
    assert found.bandwidth_mbps == pytest.approx(GIVEN_MBPS)
    assert found.mb_s_per_sample == pytest.approx(30)
    assert found.notes == ("the rows do not show the server: it keeps 9600 Mbit/s",)


def test_batch_in_step_with_functions_does_not_show_the_server() -> None:
    rows = rows_of([(3008, 4, 32), (3008, 8, 64)], w0=0, w1=30, mbps=GIVEN_MBPS)

    assert fit(rows).identified == Identified(serial=False, server=False)


def test_one_row_is_predicted_as_it_was() -> None:
    row = rows_of([(2560, 8, 128)], w0=0.01, w1=20, mbps=GIVEN_MBPS)[0]

    found = fit([row])

    assert found.identified == Identified(serial=False, server=False)
    assert found.step_s(memory_mb=2560, function_count=8, local_batch=128) == pytest.approx(
        row.step_s
    )


def test_rows_that_show_no_time_at_the_server_keep_the_given_bandwidth() -> None:
    rows = rows_of(GRID, w0=0.004, w1=30, mbps=1e15)

    assert fit(rows, mbps=1e9).bandwidth_mbps == pytest.approx(1e9)


def test_order_of_rows_does_not_matter() -> None:
    rows = rows_of(GRID, w0=0.004, w1=30, mbps=6_000)
    rows[3] = ServerlessRow(memory_mb=1728, function_count=8, local_batch=128, step_s=9.0)

    assert fit(rows[::-1]) == fit(rows)


def test_published_1dcnn_runs_predict_the_papers_reference_run() -> None:
    """lambdaDNN, 1DCNN of 2 MB on 15,000 samples: fig. 8a, 3 epochs, gives 10 x 1088 MB: 86.2 s."""
    runs = [(960, 71.6), (1472, 49.0), (1984, 38.6), (2496, 33.1), (3008, 29.7)]
    rows = [_step(memory, functions=8, epochs=3, run_s=run_s) for memory, run_s in runs]
    rows.append(_step(3008, functions=10, epochs=5, run_s=53.6))
    found = fit_serverless_law(rows, parameter_bytes=2e6, bandwidth_mbps=GIVEN_MBPS)

    step_s = found.step_s(memory_mb=1088, function_count=10, local_batch=32)
    run_s = 15_000 * 5 / 320 * step_s + _load_s(1088, 10)

    assert run_s == pytest.approx(86.2, rel=0.02)


def test_a_fit_becomes_a_law_without_a_limit_per_function() -> None:
    found = fit(rows_of(GRID, w0=0.004, w1=30, mbps=6_000))
    published = ServerlessLaw(
        samples_per_s_per_mb=0.03,
        samples_per_s_offset=5.6,
        batch_per_function_count=64,
        max_global_batch_count=512,
    )

    law = found.applied_to(published)

    assert seconds_per_sample(law, 2000) == pytest.approx(0.004 + 30 / 2000)
    assert law.function_max_mbps is None
    assert law.max_global_batch_count == 512


def test_a_bandwidth_that_leaves_no_time_to_compute_is_refused() -> None:
    rows = rows_of([(3008, 8, 64)], w0=0, w1=30, mbps=GIVEN_MBPS)

    with pytest.raises(CannotFitError, match="longer than the steps"):
        fit(rows, mbps=10.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_figures_are_named(bad: float) -> None:
    row = ServerlessRow(memory_mb=bad, function_count=4, local_batch=64, step_s=1.0)

    with pytest.raises(CannotFitError, match="memory_mb is"):
        fit([row])
    with pytest.raises(CannotFitError, match="bandwidth_mbps is"):
        fit(rows_of(GRID, w0=0, w1=30, mbps=6_000), mbps=bad)


def test_no_rows_are_refused() -> None:
    with pytest.raises(CannotFitError, match="no rows"):
        fit([])


def _load_s(memory_mb: float, functions: int) -> float:
    return 41.1 / (functions * (0.002228 * min(memory_mb, 1792.0) + 16.12))


def _step(memory_mb: float, *, functions: int, epochs: int, run_s: float) -> ServerlessRow:
    steps = 15_000 * epochs / (functions * 32)
    return ServerlessRow(
        memory_mb=memory_mb,
        function_count=functions,
        local_batch=32,
        step_s=(run_s - _load_s(memory_mb, functions)) / steps,
    )
