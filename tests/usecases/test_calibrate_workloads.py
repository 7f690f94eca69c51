"""A file of rows becomes jobs: models and strategies apart, lines named, base jobs respected."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.errors import MeasurementsError
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import (
    Goal,
    JobSpec,
    Limits,
    NetworkRate,
    Placement,
    Target,
    TargetKind,
)
from spotwright.domain.measurement import Configuration, Measurement
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    Dataset,
    ParameterServing,
    StepInterval,
    Strategy,
)
from spotwright.usecases.calibrate_workloads import CalibratedModel, calibrate_workloads
from tests.perfmodel.calibration.synthetic_rows import (
    configurations,
    measure,
    predict,
    steps_s,
    truth,
)
from tests.usecases.example_job import catalog


def _row(line: int = 2, step_s: float = 0.5, **cells: Any) -> Measurement:
    usual: dict[str, Any] = {
        "strategy": Strategy.ASP_PS,
        "fleet": "g4dn.xlarge",
        "batch_per_gpu": 32,
        "parameter_bytes": 1e8,
    }
    return Measurement(configuration=Configuration(line=line, **(usual | cells)), step_s=step_s)


def _calibrate(*rows: Measurement, base: JobSpec | None = None) -> dict[str, CalibratedModel]:
    found = calibrate_workloads(rows, catalog(), path="m.csv", base=base)
    return {model.name: model for model in found}


def test_models_of_one_file_are_fitted_apart() -> None:
    small = truth(Strategy.ALLREDUCE, compute={"T4": ComputeProfile(per_sample_s=0.002)})
    large = truth(Strategy.ALLREDUCE, compute={"T4": ComputeProfile(per_sample_s=0.02)})
    fleets = ("g4dn.12xlarge:1", "g4dn.12xlarge:4")
    rows = [
        *measure(configurations(Strategy.ALLREDUCE, *fleets, model="small"), _with_tuning(small)),
        *measure(configurations(Strategy.ALLREDUCE, *fleets, model="large"), _with_tuning(large)),
    ]

    mixed = _calibrate(*rows[::2], *rows[1::2])

    assert list(mixed) == ["small", "large"]
    for name, alone in (("small", rows[:2]), ("large", rows[2:])):
        (expected,) = _calibrate(*alone).values()
        assert mixed[name].calibration.row_count == 2
        for device, profile in expected.job.workload.compute.items():
            found = mixed[name].job.workload.compute[device]
            assert found.per_sample_s == pytest.approx(profile.per_sample_s, rel=1e-3)


def _with_tuning(job: JobSpec) -> JobSpec:
    return replace(job, workload=replace(job.workload, allreduce=AllreduceTuning()))


def test_one_model_under_two_strategies_is_two_workloads_and_rows_find_their_own() -> None:
    ring = _row(2, 0.3, model="vgg", strategy=Strategy.ALLREDUCE)
    servers = _row(3, 0.9, model="vgg")

    jobs = {name: m.job for name, m in _calibrate(ring, servers).items()}

    assert list(jobs) == ["vgg/allreduce", "vgg/asp-ps"]
    predicted = predict([ring.configuration, servers.configuration], jobs)
    assert [p.step_s.mid for p in predicted] == pytest.approx([0.3, 0.9], rel=1e-3)


def test_rows_without_a_model_beside_named_ones_find_their_workload_again() -> None:
    unnamed, named = _row(2, 0.7), _row(3, 0.9, model="vgg")

    jobs = {name: m.job for name, m in _calibrate(unnamed, named).items()}

    predicted = predict([unnamed.configuration, named.configuration], jobs)
    assert [p.step_s.mid for p in predicted] == pytest.approx([0.7, 0.9], rel=1e-3)


def test_several_types_and_gpus_in_one_file_are_told_apart() -> None:
    rows = [
        _row(2, 0.6),
        _row(3, 0.9, fleet="g4dn.2xlarge", batch_per_gpu=64),
        _row(4, 0.4, fleet="g5.xlarge"),
        _row(5, 0.45, fleet="p3.2xlarge"),
    ]

    (model,) = _calibrate(*rows).values()

    assert set(model.job.workload.compute) == {"T4", "A10G", "V100"}
    found = steps_s([row.configuration for row in rows[2:]], model.job)
    assert found == pytest.approx([0.4, 0.45], rel=1e-3)


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        (
            {"fleet": "g4dn.xlage"},
            "unknown instance type 'g4dn.xlage'; did you mean 'g4dn.xlarge'?",
        ),
        ({"fleet": "T5"}, "unknown"),
        ({"fleet": "g4dn.xlarge:2"}, "g4dn.xlarge has 1 GPUs, not 2"),
        ({"fleet": "g4dn.xlarge**2"}, "column"),
        ({"fleet": "g4dn.xlarge@use1-az44"}, "use1-az44"),
        ({"fleet": "lambda:1024*2"}, "lambda functions need strategy serverless"),
        ({"fleet": "ps=m5.xlarge"}, "a fleet needs at least one worker"),
        ({"strategy": Strategy.SERVERLESS}, "a serverless fleet is written as lambda:MB*COUNT"),
        (
            {"strategy": Strategy.ALLREDUCE, "fleet": "g4dn.xlarge + ps=m5.xlarge"},
            "strategy allreduce has no parameter servers",
        ),
    ],
)
def test_a_fleet_that_cannot_be_is_named_by_its_line(cells: dict[str, Any], complaint: str) -> None:
    with pytest.raises(MeasurementsError) as caught:
        _calibrate(_row(7, **cells))

    assert caught.value.line == 7
    assert str(caught.value).startswith("m.csv:7: ")
    assert complaint in str(caught.value)


def test_servers_need_the_size_of_the_model_and_all_reduce_does_not() -> None:
    with pytest.raises(MeasurementsError, match=r"m\.csv:5: strategy asp-ps needs parameter_bytes"):
        _calibrate(_row(5, parameter_bytes=None))

    (ring,) = _calibrate(_row(parameter_bytes=None, strategy=Strategy.ALLREDUCE)).values()
    assert ring.job.workload.model.parameter_bytes == 100e6


def test_a_server_that_the_catalog_lacks_is_replaced_and_the_report_says_so() -> None:
    (model,) = _calibrate(_row(ps_type="n1-standard-4")).values()

    assert any(
        "'n1-standard-4'" in note and "a server like m5.xlarge is assumed" in note
        for note in model.calibration.notes
    )


def _base(strategy: Strategy, **parts: Any) -> JobSpec:
    goal = Goal(target=Target(kind=TargetKind.EPOCHS, value=3), deadline_s=3600, budget_usd=7)
    limits = Limits(regions=frozenset({"us-west-2"}), max_nodes=5, placement=Placement.ANYWHERE)
    job = truth(strategy, dataset=Dataset(sample_count=1000, size_bytes=1e6), **parts)
    return replace(job, goal=goal, limits=limits)


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE])
def test_a_base_job_keeps_its_goal_limits_and_what_the_rows_leave_out(strategy: Strategy) -> None:
    base = _base(Strategy.ASP_PS, parameter_serving=ParameterServing(default_type="c5n.4xlarge"))

    (model,) = _calibrate(_row(strategy=strategy, parameter_bytes=None), base=base).values()

    assert (model.job.goal, model.job.limits) == (base.goal, base.limits)
    workload = model.job.workload
    assert workload.strategy is strategy
    assert workload.dataset == base.workload.dataset  # else its epochs could not be counted
    assert workload.model == base.workload.model
    kept = workload.parameter_serving == base.workload.parameter_serving
    assert kept == (strategy is Strategy.ASP_PS)


def test_an_interval_of_an_older_calibration_is_not_passed_off_as_of_these_rows() -> None:
    old = StepInterval(low_quantile=-9, high_quantile=9, base_scale=1.0)
    base = _base(Strategy.ASP_PS, parameter_serving=ParameterServing(), interval=old)

    (model,) = _calibrate(_row(), base=base).values()

    assert model.job.workload.interval is None
    assert model.calibration.notes[-1].endswith("a usual one is given")


@pytest.mark.parametrize(
    ("strategy", "placement"),
    [(Strategy.ALLREDUCE, Placement.ONE_ZONE), (Strategy.ASP_PS, Placement.ONE_REGION)],
)
def test_without_a_base_nodes_stay_as_close_as_the_strategy_wants(
    strategy: Strategy, placement: Placement
) -> None:
    (model,) = _calibrate(_row(strategy=strategy)).values()

    assert model.job.limits.placement is placement


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("ResNet 50 (v2)", "resnet-50--v2"),
        ("модель", "model"),
        ("x" * 80, "x" * 63),
        (None, "model"),
    ],
)
def test_the_job_is_named_after_its_model_in_letters_a_job_file_takes(
    model: str | None, name: str
) -> None:
    (found,) = _calibrate(_row(model=model)).values()

    assert found.job.name == name


@cache
def _gcp() -> Catalog:
    return Catalog(load_snapshot(bundled_path(Cloud.GCP)))


def test_rows_on_another_cloud_are_looked_up_there() -> None:
    types = [t for t in _gcp().instance_types() if t.gpu_count == 1]
    base = replace(
        _base(Strategy.ALLREDUCE), limits=Limits(cloud=Cloud.GCP, placement=Placement.ANYWHERE)
    )
    row = _row(fleet=types[0].name, strategy=Strategy.ALLREDUCE)

    (model,) = calibrate_workloads([row], _gcp(), path="m.csv", base=base)

    assert types[0].gpu_name in model.job.workload.compute


@pytest.mark.parametrize("fleet", ["g4dn.xlarge + g4dn.2xlarge", "g4dn.xlarge*2 + p3.2xlarge"])
def test_unequal_asynchronous_workers_have_no_common_step(fleet: str) -> None:
    with pytest.raises(MeasurementsError, match="give cluster_steps_per_s instead") as caught:
        _calibrate(_row(2), _row(3, fleet=fleet))

    assert caught.value.line == 3


@pytest.mark.parametrize("strategy", [Strategy.BSP_PS, Strategy.ALLREDUCE])
def test_synchronous_workers_have_one_step_however_they_differ(strategy: Strategy) -> None:
    (found,) = _calibrate(_row(fleet="g4dn.xlarge + p3.2xlarge", strategy=strategy)).values()

    assert found.calibration.row_count == 1


def test_equal_asynchronous_workers_in_two_terms_have_one_step() -> None:
    (found,) = _calibrate(_row(fleet="g4dn.xlarge*2 + g4dn.xlarge")).values()

    assert found.calibration.row_count == 1


@pytest.mark.parametrize("based", [False, True])
def test_a_job_fitted_to_short_runs_is_planned_at_sustained_rates(based: bool) -> None:
    """An m5.xlarge has 10 Gbit/s for a short run and 1.25 for a long one."""
    base = _base(Strategy.ASP_PS, parameter_serving=ParameterServing()) if based else None
    row = _row(2, 5.0, parameter_bytes=1e9)  # 13 s of it would be transfers in a long run

    (model,) = _calibrate(row, base=base).values()

    assert model.job.limits.network is NetworkRate.BASELINE
    assert steps_s([row.configuration], model.job) == pytest.approx([5.0], rel=1e-3)
