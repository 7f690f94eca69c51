"""All-reduce rows measured on a known truth: what they tell is learned, the rest is kept."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from spotwright.domain.job import JobSpec
from spotwright.domain.measurement import Configuration
from spotwright.domain.workload import AllreduceTuning, ComputeProfile, Links, Strategy
from spotwright.usecases.calibrate_workloads import CalibratedModel
from tests.perfmodel.calibration.synthetic_rows import (
    configurations,
    fit,
    measure,
    on_line,
    predict,
    steps_s,
    truth,
)

TUNING = AllreduceTuning(
    head_fraction=0.4,
    overlap_power=6.0,
    gpu_spread_fraction=0.03,
    hop_loss=0.01,
    two_node_loss=0.3,
    links={
        "g4dn.12xlarge": Links(network_mbps=6_000, intra_mbps=40_000, sharing_fraction=0.08),
        "p3.8xlarge": Links(network_mbps=7_000, intra_mbps=200_000, sharing_fraction=0.03),
    },
)
T4, V100 = (
    ComputeProfile(fixed_s=0.03, per_sample_s=0.006),
    ComputeProfile(fixed_s=0.02, per_sample_s=0.002),
)
TRUTH = truth(Strategy.ALLREDUCE, compute={"T4": T4, "V100": V100}, allreduce=TUNING)
ONE_NODE = ("g4dn.12xlarge:1", "g4dn.12xlarge:2", "g4dn.12xlarge:4")
SEVERAL = ("g4dn.12xlarge:4*2", "g4dn.12xlarge:1*4", "g4dn.12xlarge:4*8")
P3 = ("p3.8xlarge:1", "p3.8xlarge:4", "p3.8xlarge:4*2", "p3.8xlarge:4*4")
UNSEEN = (
    "g4dn.12xlarge:2*4",
    "g4dn.12xlarge:4*3",
    "g4dn.12xlarge:4*12",
    "p3.8xlarge:4*3",
    "g4dn.12xlarge:4*2 + p3.8xlarge:4",
)
NOISE = 0.02
ONE_NODE_NOTE = "all rows have one node: network terms keep their catalog values"


def _rows(*fleets: str, batches: tuple[int, ...] = (8, 32, 128)) -> list[Configuration]:
    return configurations(Strategy.ALLREDUCE, *fleets, batches=batches)


@cache
def _fitted() -> CalibratedModel:
    return fit(measure(_rows(*ONE_NODE, *SEVERAL, *P3), TRUTH, noise=NOISE))


def _relative_errors(rows: list[Configuration], job: JobSpec) -> NDArray[np.float64]:
    errors: NDArray[np.float64] = np.array(steps_s(rows, job)) / np.array(steps_s(rows, TRUTH)) - 1
    return np.abs(errors)


def test_placements_and_batches_never_measured_are_predicted_within_the_noise() -> None:
    errors = _relative_errors(_rows(*UNSEEN, batches=(16, 64)), _fitted().job)

    assert errors.mean() < NOISE
    assert errors.max() < 3 * NOISE


def test_what_the_rows_show_well_is_recovered() -> None:
    workload = _fitted().job.workload
    assert workload.allreduce is not None

    assert workload.compute["T4"].per_sample_s == pytest.approx(0.006, rel=0.05)
    assert workload.compute["V100"].per_sample_s == pytest.approx(0.002, rel=0.05)
    found = workload.allreduce.links["g4dn.12xlarge"].network_mbps
    assert found == pytest.approx(6_000, rel=0.15)
    (only,) = _fitted().calibration.notes
    assert only.startswith("the rows hardly show these")
    assert "network" not in only


def test_the_report_is_honest_about_seen_and_unseen_rows() -> None:
    report = _fitted().calibration

    assert report.row_count == 30
    assert report.fit_error_fraction < NOISE
    assert report.unseen_error_fraction is not None
    assert report.fit_error_fraction < report.unseen_error_fraction < 5 * NOISE
    assert report.coverage_fraction is not None
    assert 0.7 < report.coverage_fraction <= 1
    assert report.outlier_lines == ()
    assert report.workload.interval is not None


def test_the_calibrated_interval_covers_most_fresh_runs_of_unseen_placements() -> None:
    rows = _rows(*UNSEEN, batches=(16, 64, 256))
    fresh = [m.step_s for m in measure(rows, TRUTH, noise=NOISE, seed=9)]

    intervals = [p.step_s for p in predict(rows, _fitted().job)]

    inside = [
        i.low <= step <= i.high
        for i, step in zip(intervals, fresh, strict=True)
        if step is not None
    ]
    assert np.mean(inside) > 0.8
    assert max(i.high / i.low for i in intervals) < 1.5


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = measure(_rows(*ONE_NODE, *SEVERAL), TRUTH, noise=NOISE)
    probe = _rows(*UNSEEN[:3])

    forward, backward = fit(rows), fit(rows[::-1])

    assert steps_s(probe, backward.job) == pytest.approx(steps_s(probe, forward.job), rel=2e-3)


def test_rows_of_one_node_leave_the_network_to_the_catalog_and_say_so() -> None:
    found = fit(measure(_rows(*ONE_NODE), TRUTH))

    assert ONE_NODE_NOTE in found.calibration.notes
    tuning = found.job.workload.allreduce
    assert tuning is not None
    assert tuning.links["g4dn.12xlarge"].network_mbps is None
    assert (tuning.hop_loss, tuning.two_node_loss) == (None, None)
    job, several = found.job, _rows("g4dn.12xlarge:4*2", "g4dn.12xlarge:4*8")
    ten_gbit = replace(  # one TCP flow, which is what the catalog's 50 Gbit/s come to
        job,
        workload=replace(
            job.workload,
            allreduce=replace(
                tuning,
                links={
                    "g4dn.12xlarge": replace(tuning.links["g4dn.12xlarge"], network_mbps=10_000)
                },
            ),
        ),
    )
    assert steps_s(several, job) == pytest.approx(steps_s(several, ten_gbit), rel=1e-9)


def test_rows_of_several_nodes_do_not_carry_the_note_of_one_node() -> None:
    found = fit(measure(_rows(*ONE_NODE, "g4dn.12xlarge:4*4"), TRUTH))

    assert found.calibration.notes[0] == (
        "no row has two nodes: the loss of a two-node ring keeps its usual value"
    )
    assert ONE_NODE_NOTE not in found.calibration.notes


def test_a_type_seen_on_one_node_only_keeps_its_catalog_network_beside_one_seen_on_many() -> None:
    rows = _rows(*ONE_NODE, *SEVERAL, "p4d.24xlarge:1", "p4d.24xlarge:8")
    faster = replace(TRUTH.workload, compute=dict(TRUTH.workload.compute) | {"A100": V100})

    found = fit(measure(rows, replace(TRUTH, workload=faster)))

    tuning = found.job.workload.allreduce
    assert tuning is not None
    assert tuning.links["g4dn.12xlarge"].network_mbps is not None
    assert tuning.links["p4d.24xlarge"].network_mbps is None  # 400 Gbit/s of EFA, not a TCP flow


def test_one_batch_size_is_enough_to_predict_that_batch_and_the_limit_is_said() -> None:
    rows = _rows(*ONE_NODE, *SEVERAL, batches=(32,))

    found = fit(measure(rows, TRUTH))

    assert (
        "one batch size on T4: compute is taken as proportional to the batch"
        in found.calibration.notes
    )
    assert found.job.workload.compute["T4"].fixed_s == 0
    unseen = _rows("g4dn.12xlarge:4*3", "g4dn.12xlarge:2*4", batches=(32,))
    assert _relative_errors(unseen, found.job).max() < 0.05


def test_links_that_a_base_job_knows_survive_rows_that_do_not_show_them() -> None:
    known = replace(TUNING, links={"g4dn.12xlarge": Links(network_mbps=3_210)})
    base = replace(TRUTH, workload=replace(TRUTH.workload, allreduce=known))

    found = fit(measure(_rows(*ONE_NODE), TRUTH), base)

    assert found.job.workload.allreduce is not None
    assert found.job.workload.allreduce.links["g4dn.12xlarge"].network_mbps == 3_210


@pytest.mark.parametrize("factor", [3.0, 0.3])
def test_an_outlier_is_named_by_its_line_and_hardly_moves_the_fit(factor: float) -> None:
    rows = measure(_rows(*ONE_NODE, *SEVERAL), TRUTH, noise=0.01)
    unseen = _rows("g4dn.12xlarge:4*3", batches=(16, 64))

    found = fit(on_line(rows, 7, factor=factor))

    assert found.calibration.outlier_lines == (7,)
    assert _relative_errors(unseen, found.job).max() < 0.05


EFA = truth(
    Strategy.ALLREDUCE,
    parameter_bytes=3e9,
    compute={"A100": ComputeProfile(fixed_s=0.02, per_sample_s=0.004)},
    allreduce=AllreduceTuning(),
)
EFA_FLEETS = ("p4d.24xlarge:1", "p4d.24xlarge:8", "p4d.24xlarge:8*2", "p4d.24xlarge:8*4")


def _efa_rows(*fleets: str) -> list[Configuration]:
    return configurations(Strategy.ALLREDUCE, *fleets, batches=(8, 32, 128), parameter_bytes=3e9)


def test_rows_that_agree_with_the_defaults_of_an_efa_fabric_leave_them_where_they_are() -> None:
    found = fit(measure(_efa_rows(*EFA_FLEETS), EFA)).job

    tuning = found.workload.allreduce
    assert tuning is not None
    assert tuning.hop_loss == pytest.approx(1.5e6 / 3e9, rel=0.05)
    assert tuning.two_node_loss is None  # the model takes it to be none on EFA
    assert tuning.links["p4d.24xlarge"].network_mbps == pytest.approx(0.8 * 400_000, rel=0.05)
    unseen = _efa_rows("p4d.24xlarge:8*3", "p4d.24xlarge:8*8", "p4d.24xlarge:8*16")
    assert steps_s(unseen, found) == pytest.approx(steps_s(unseen, EFA), rel=0.01)


def test_a_slower_efa_fabric_than_usual_is_learned() -> None:
    slower = replace(
        EFA.workload,
        allreduce=AllreduceTuning(
            hop_loss=0.002, links={"p4d.24xlarge": Links(network_mbps=200_000)}
        ),
    )
    real = replace(EFA, workload=slower)

    found = fit(measure(_efa_rows(*EFA_FLEETS), real)).job

    unseen = _efa_rows("p4d.24xlarge:8*3", "p4d.24xlarge:8*8")
    assert steps_s(unseen, found) == pytest.approx(steps_s(unseen, real), rel=0.05)


def test_a_sharp_maximum_and_a_soft_one_are_both_within_reach() -> None:
    for power in (1.1, 20.0):
        tuning = replace(TUNING, overlap_power=power)
        real = replace(TRUTH, workload=replace(TRUTH.workload, allreduce=tuning))

        found = fit(measure(_rows(*ONE_NODE, *SEVERAL), real))

        assert found.calibration.fit_error_fraction < 0.01
