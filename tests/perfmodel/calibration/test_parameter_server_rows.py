"""Parameter-server rows measured on a known truth."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spotwright.domain.measurement import Configuration, Measurement
from spotwright.domain.workload import (
    ComputeProfile,
    GlobalBatch,
    ParameterServing,
    Strategy,
)
from tests.perfmodel.calibration.synthetic_rows import (
    configurations,
    fit,
    measure,
    predict,
    steps_s,
    truth,
)
from tests.usecases.example_job import catalog

USUAL = ParameterServing()
COMPUTE = {"T4": ComputeProfile(per_sample_s=0.004), "V100": ComputeProfile(per_sample_s=0.0015)}
SIZES = (1, 2, 4, 8, 12)


def _asp(*fleets: str, **cells: Any) -> list[Configuration]:
    return configurations(Strategy.ASP_PS, *fleets, **cells)


def _measured(row: Configuration, step_s: float) -> Measurement:
    return Measurement(configuration=row, step_s=step_s)


@pytest.mark.parametrize(
    ("fleet", "step_s"),
    [("g4dn.xlarge", 0.61), ("p3.2xlarge", 0.93), ("g5.xlarge", 5.0), ("p4d.24xlarge", 1.4)],
)
def test_one_worker_is_predicted_exactly_as_it_was_measured(fleet: str, step_s: float) -> None:
    (row,) = _asp(fleet)

    found = fit([_measured(row, step_s)])

    assert steps_s([row], found.job) == pytest.approx([step_s], rel=1e-4)


def test_more_workers_than_measured_obey_physics() -> None:
    (one,) = _asp("g4dn.xlarge")
    job = fit([_measured(one, 0.6)]).job
    rows = _asp(*(f"g4dn.xlarge*{n}" for n in (1, 2, 4, 8, 16, 32)))

    steps = steps_s(rows, job)
    speeds = [p.cluster_steps_per_s for p in predict(rows, job)]

    cpu_s = 160 * USUAL.cpu_s_per_tensor + 1e8 * USUAL.cpu_s_per_byte  # m5.xlarge has 4 vCPUs
    link_s = 1e8 * 8e-6 / (catalog().instance_type("m5.xlarge").network_peak_mbps or 0)
    assert np.diff(steps).min() > -1e-9  # others only slow a worker down
    assert steps[0] == pytest.approx(0.6, rel=1e-4)
    assert np.diff(speeds).min() > -1e-9  # a further worker does not slow the cluster down
    for n, speed in zip((1, 2, 4, 8, 16, 32), speeds, strict=True):
        assert speed <= n / 0.6 * 1.0001
        assert speed <= 1 / max(cpu_s, link_s) * 1.0001
    assert speeds[-1] == pytest.approx(1 / max(cpu_s, link_s), rel=0.01)  # saturated


def test_rows_of_few_workers_keep_the_server_as_it_is_known_and_say_so() -> None:
    found = fit([_measured(row, 0.6) for row in _asp("g4dn.xlarge", "g4dn.xlarge*2")])

    assert found.job.workload.parameter_serving == USUAL
    assert found.calibration.notes[1:3] == (
        "no row has more than two workers: the servers' CPU constants keep their values",
        "all rows have one server: the largest shard keeps its usual share",
    )


@pytest.mark.parametrize("scale", [1.5, 0.7])
def test_the_cost_of_the_servers_cpu_is_learned_from_several_workers(scale: float) -> None:
    serving = replace(
        USUAL,
        cpu_s_per_tensor=scale * USUAL.cpu_s_per_tensor,
        cpu_s_per_byte=scale * USUAL.cpu_s_per_byte,
    )
    real = truth(Strategy.ASP_PS, compute=COMPUTE, parameter_serving=serving)
    rows = _asp(*(f"{name}*{n}" for name in ("g4dn.xlarge", "p3.2xlarge") for n in SIZES))

    found = fit(measure(rows, real, noise=0.01)).job

    learned = found.workload.parameter_serving
    assert learned is not None
    assert learned.cpu_s_per_tensor / USUAL.cpu_s_per_tensor == pytest.approx(scale, rel=0.04)
    assert learned.cpu_s_per_byte / USUAL.cpu_s_per_byte == pytest.approx(scale, rel=0.04)
    unseen = _asp("g4dn.xlarge*6", "p3.2xlarge*3", "g4dn.xlarge*3 + p3.2xlarge*3")
    assert steps_s(unseen, found) == pytest.approx(steps_s(unseen, real), rel=0.03)


@pytest.mark.parametrize("shard", [0.55, 0.9])
def test_the_largest_shard_is_learned_from_rows_with_two_servers(shard: float) -> None:
    serving = replace(USUAL, largest_shard_fraction=shard)
    real = truth(Strategy.ASP_PS, compute=COMPUTE, parameter_serving=serving)
    one = _asp(*(f"g4dn.xlarge*{n}" for n in SIZES), ps_count=1)
    two = _asp(*(f"g4dn.xlarge*{n}" for n in (4, 8, 12, 16)), ps_count=2)

    found = fit(measure([*one, *two], real)).job.workload.parameter_serving

    assert found is not None
    assert found.largest_shard_fraction == pytest.approx(shard, rel=0.05)


@pytest.mark.parametrize("overlap", [0.1, 0.6])
def test_the_overlap_of_synchronous_servers_is_learned(overlap: float) -> None:
    serving = replace(USUAL, overlap_fraction=overlap)
    real = truth(Strategy.BSP_PS, compute=COMPUTE, parameter_serving=serving)
    fleets = [f"g4dn.xlarge*{n}" for n in SIZES]
    rows = configurations(Strategy.BSP_PS, *fleets, batches=(16, 64, 128))

    found = fit(measure(rows, real)).job

    assert found.workload.parameter_serving is not None
    assert found.workload.parameter_serving.overlap_fraction == pytest.approx(overlap, abs=0.06)
    unseen = configurations(Strategy.BSP_PS, "g4dn.xlarge*3", "g4dn.xlarge*10", batches=(32,))
    assert steps_s(unseen, found) == pytest.approx(steps_s(unseen, real), rel=0.03)


def test_the_speed_of_the_whole_cluster_says_the_same_as_the_step_of_equal_workers() -> None:
    (row,) = _asp("g4dn.xlarge*3")

    by_step = fit([Measurement(configuration=row, step_s=0.6)])
    by_speed = fit([Measurement(configuration=row, cluster_steps_per_s=5.0)])

    assert by_speed.job == by_step.job


def test_a_base_job_with_a_global_batch_does_not_hide_the_batch_of_each_row() -> None:
    real = truth(Strategy.BSP_PS, compute=COMPUTE, parameter_serving=USUAL)
    base = replace(real, workload=replace(real.workload, batch=GlobalBatch(sample_count=4096)))
    rows = configurations(Strategy.BSP_PS, *(f"g4dn.xlarge*{n}" for n in SIZES), batches=(16, 128))

    found = fit(measure(rows, real), base)

    assert found.calibration.fit_error_fraction < 0.01
    assert found.job.workload.batch == GlobalBatch(sample_count=4096)


def test_an_older_figure_of_an_instance_type_gives_way_to_what_was_measured_on_it() -> None:
    old = {"g4dn.xlarge": ComputeProfile(per_sample_s=1.0)}
    base = truth(Strategy.ASP_PS, compute=old, parameter_serving=USUAL)
    (row,) = _asp("g4dn.xlarge")

    found = fit([_measured(row, 0.61)], base)

    assert steps_s([row], found.job) == pytest.approx([0.61], rel=1e-4)
