"""Serverless rows measured on a known truth, its law computed here."""

import numpy as np
import pytest

from spotwright.domain.job import JobSpec
from spotwright.domain.measurement import Measurement
from spotwright.domain.workload import Strategy
from tests.perfmodel.calibration.synthetic_rows import configurations, fit, predict

W0, W1, S, BYTES = 0.002, 40.0, 6_000.0, 18e6


def _step_s(memory_mb: int, functions: int, batch: int) -> float:
    return batch * (W0 + W1 / memory_mb) + functions * 2 * BYTES * 8e-6 / S


def _measured(
    *clusters: tuple[int, int], batches: tuple[int, ...] = (32, 64), noise: float = 0.0
) -> list[Measurement]:
    random, rows = np.random.default_rng(3), []
    for memory, functions in clusters:
        fleet = f"lambda:{memory}*{functions}"
        for row in configurations(
            Strategy.SERVERLESS, fleet, batches=batches, parameter_bytes=BYTES
        ):
            step_s = _step_s(memory, functions, row.batch_per_gpu)
            measured = step_s * float(np.exp(random.normal(0, noise)))
            rows.append(Measurement(configuration=row, step_s=measured))
    return rows


def _predicted_s(job: JobSpec, memory: int, functions: int, batch: int) -> float:
    fleet = f"lambda:{memory}*{functions}"
    rows = configurations(Strategy.SERVERLESS, fleet, batches=(batch,), parameter_bytes=BYTES)
    return predict(rows, job)[0].step_s.mid


CLUSTERS = [(m, n) for m in (1024, 1792, 3008) for n in (1, 4, 16)]


@pytest.mark.parametrize(("noise", "close"), [(0.0, 1e-3), (0.02, 0.15)])
def test_serial_part_memory_part_and_server_are_recovered(noise: float, close: float) -> None:
    workload = fit(_measured(*CLUSTERS, noise=noise)).job.workload

    law, serving = workload.serverless, workload.parameter_serving
    assert law is not None
    assert serving is not None
    assert law.s_per_sample == pytest.approx(W0, rel=2 * close)
    assert law.mb_s_per_sample == pytest.approx(W1, rel=close)
    assert serving.bandwidth_mbps == pytest.approx(S, rel=close)


@pytest.mark.parametrize(("memory", "functions", "batch"), [(2048, 8, 48), (2560, 64, 128)])
def test_clusters_beyond_those_measured_are_predicted_by_the_same_law(
    memory: int, functions: int, batch: int
) -> None:
    job = fit(_measured(*CLUSTERS)).job

    predicted = _predicted_s(job, memory, functions, batch)

    assert predicted == pytest.approx(_step_s(memory, functions, batch), rel=1e-3)


def test_rows_that_vary_nothing_keep_the_usual_server_and_say_so() -> None:
    found = fit(_measured((1024, 4), batches=(32,)))

    told = " ".join(found.calibration.notes)
    assert "speed is proportional to memory" in told
    assert "it keeps 9600 Mbit/s" in told
    assert found.job.workload.batch is None  # the law has its own rule
    step_s = _step_s(1024, 4, 32)
    assert _predicted_s(found.job, 1024, 4, 32) == pytest.approx(step_s, rel=1e-4)
