"""Each row of a table is predicted with the workload of its model, or its line is named."""

from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.errors import MeasurementsError
from spotwright.domain.job import JobSpec, NetworkRate
from spotwright.domain.measurement import Configuration, Measurement
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    Contention,
    MemoryUse,
    ParameterServing,
    ServerlessLaw,
    Strategy,
)
from spotwright.perfmodel.laws.flops_law import ModelFacts, fit_flops_law
from spotwright.usecases.calibrate_workloads import calibrate_workloads
from spotwright.usecases.predict_configurations import predict_configurations
from tests.perfmodel.calibration.synthetic_rows import predict, truth
from tests.usecases.example_job import catalog


def _job(strategy: Strategy = Strategy.ALLREDUCE, *, per_sample_s: float = 0.01) -> JobSpec:
    return truth(
        strategy,
        compute={"T4": ComputeProfile(per_sample_s=per_sample_s)},
        allreduce=AllreduceTuning() if strategy is Strategy.ALLREDUCE else None,
        parameter_serving=ParameterServing() if strategy.uses_parameter_servers else None,
    )


def _row(line: int = 2, **cells: Any) -> Configuration:
    usual: dict[str, Any] = {
        "strategy": Strategy.ALLREDUCE,
        "fleet": "g4dn.xlarge",
        "batch_per_gpu": 20,
    }
    return Configuration(line=line, **(usual | cells))


def _mid(rows: list[Configuration], jobs: JobSpec | dict[str, JobSpec]) -> list[float]:
    return [p.step_s.mid for p in predict(rows, jobs)]


def _complaint(row: Configuration, jobs: dict[str, JobSpec]) -> MeasurementsError:
    with pytest.raises(MeasurementsError) as caught:
        predict([row], jobs)
    return caught.value


def test_one_gpu_takes_its_batch_times_the_seconds_of_a_sample() -> None:
    (found,) = predict([_row()], _job())

    assert found.step_s.mid == pytest.approx(20 * 0.01)
    assert found.step_s.low < 0.2 < found.step_s.high
    assert found.cluster_steps_per_s == pytest.approx(1 / 0.2)


def test_the_cluster_steps_of_synchronous_nodes_count_each_node() -> None:
    (found,) = predict([_row(fleet="g4dn.12xlarge:4*3")], _job())

    assert found.cluster_steps_per_s == pytest.approx(3 / found.step_s.mid)


def test_asynchronous_workers_of_two_speeds_have_the_mean_step_of_all() -> None:
    job = _job(Strategy.ASP_PS)
    free = replace(ParameterServing(), contention=Contention.NONE)
    fast = {"T4": ComputeProfile(per_sample_s=0.01), "V100": ComputeProfile(per_sample_s=0.002)}
    job = replace(job, workload=replace(job.workload, compute=fast, parameter_serving=free))
    t4, v100, both = (
        _row(strategy=Strategy.ASP_PS, fleet=fleet)
        for fleet in ("g4dn.xlarge", "p3.2xlarge", "g4dn.xlarge + p3.2xlarge*2")
    )

    one, other, mixed = predict([t4, v100, both], job)

    speed = 1 / one.step_s.mid + 2 / other.step_s.mid
    assert mixed.cluster_steps_per_s == pytest.approx(speed)
    assert mixed.step_s.mid == pytest.approx(3 / speed)


def test_rows_come_back_in_their_order_each_with_the_workload_of_its_model() -> None:
    jobs = {"slow": _job(per_sample_s=0.1), "fast": _job(per_sample_s=0.01)}
    rows = [_row(2, model="fast"), _row(3, model="slow"), _row(4, model="fast", batch_per_gpu=40)]

    assert _mid(rows, jobs) == pytest.approx([0.2, 2.0, 0.4])


def test_a_job_of_one_workload_goes_for_any_model() -> None:
    assert _mid([_row(model="whatever")], {"truth": _job()}) == pytest.approx([0.2])


def test_a_model_is_not_predicted_with_another_one_that_happens_to_share_its_strategy() -> None:
    jobs = {"resnet": _job(per_sample_s=0.1), "vgg": _job(Strategy.ASP_PS, per_sample_s=0.01)}
    servers: dict[str, Any] = {"strategy": Strategy.ASP_PS, "fleet": "g4dn.xlarge"}

    resnet, vgg = _mid([_row(model="resnet", **servers), _row(model="vgg", **servers)], jobs)

    assert resnet - vgg == pytest.approx(20 * (0.1 - 0.01), rel=1e-6)
    error = _complaint(_row(9, model="resnett", **servers), jobs)
    assert error.line == 9
    assert "the model 'resnett' is not in the job" in str(error)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("resnt", "the model 'resnt' is not in the job"),
        ("resnt", "did you mean 'resnet'?"),
        ("zzz", "known: resnet, vgg"),
        (None, "the row names no model and the job has several; known: resnet, vgg"),
    ],
)
def test_a_model_that_the_job_lacks_is_an_error_with_its_line(
    model: str | None, complaint: str
) -> None:
    error = _complaint(_row(5, model=model), {"resnet": _job(), "vgg": _job()})

    assert str(error).startswith("rows.csv:5: ")
    assert complaint in str(error)


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ({"fleet": "g4dn.xlage"}, "did you mean 'g4dn.xlarge'?"),
        ({"fleet": "B301"}, "'B301'"),
        ({"fleet": "g5g.xlarge"}, "the speed of T4g"),
        ({"fleet": "m5.xlarge"}, "which has no GPU, is not known"),
        ({"fleet": "P100*2"}, "the network rate of P100 is not known"),
        ({"strategy": Strategy.SERVERLESS, "fleet": "lambda:1024*2"}, "no serverless section"),
        ({"parameter_bytes": 1e12}, "on T4 (g4dn.xlarge), which has"),
    ],
)
def test_a_row_that_cannot_be_predicted_is_named_by_its_line(
    cells: dict[str, Any], complaint: str
) -> None:
    error = _complaint(_row(6, **cells), {"model": _job()})

    assert error.line == 6
    assert complaint in str(error)


def test_a_batch_too_large_for_the_gpu_is_refused_with_the_figure() -> None:
    hungry = MemoryUse(activation_bytes_per_sample=2**30, reserved_bytes=2**30)
    job = replace(_job(), workload=replace(_job().workload, memory=hungry))

    error = _complaint(_row(batch_per_gpu=20), {"model": job})

    # 20 GiB of activations, 1 reserved, 1e8 bytes of parameters four times
    assert "a batch of 20 needs 21.4 GiB on T4 (g4dn.xlarge)" in str(error)


def test_the_batch_of_a_function_is_the_one_of_the_row_whatever_the_job_allows() -> None:
    law = ServerlessLaw(mb_s_per_sample=10.0, batch_per_function_count=4, max_global_batch_count=8)
    job = truth(Strategy.SERVERLESS, serverless=law, parameter_serving=ParameterServing())
    row = _row(strategy=Strategy.SERVERLESS, fleet="lambda:1000*16", batch_per_gpu=50)

    exchange_s = 16 * 2 * 1e8 * 8e-6 / 10_000  # of an m5.xlarge at its peak
    assert _mid([row], job) == pytest.approx([50 * 10 / 1000 + exchange_s])


def test_a_run_is_not_placed_far_from_its_server_for_a_lower_price() -> None:
    """The cheapest p4d.24xlarge is in another region than the cheapest m5.xlarge: 70 ms away."""
    compute = {"A100": ComputeProfile(per_sample_s=0.01)}
    job = _job(Strategy.ASP_PS)
    job = replace(job, workload=replace(job.workload, compute=compute))
    near = "p4d.24xlarge@use1-az6 + ps=m5.xlarge@use1-az6"
    far = "p4d.24xlarge@use2-az1 + ps=m5.xlarge@use1-az6"
    rows = [_row(strategy=Strategy.ASP_PS, fleet=f) for f in ("p4d.24xlarge", near, far)]

    unplaced, beside, apart = _mid(rows, job)

    assert unplaced == pytest.approx(beside)
    assert apart > beside + 0.1


def test_a_server_that_the_catalog_lacks_is_warned_of_once() -> None:
    rows = [_row(n, strategy=Strategy.ASP_PS, ps_type="n1-standard-4") for n in (2, 3)]

    predictions, warnings = predict_configurations(
        rows, {"model": _job(Strategy.ASP_PS)}, catalog(), path="rows.csv"
    )

    assert len(predictions) == 2
    assert len(warnings) == 1
    assert "unknown instance type 'n1-standard-4'" in warnings[0]


def test_more_servers_named_in_the_row_or_in_the_fleet_are_the_same() -> None:
    servers: dict[str, Any] = {"strategy": Strategy.ASP_PS, "parameter_bytes": 5e8}
    rows = [
        _row(fleet="g4dn.xlarge*8", ps_count=4, ps_type="c5n.4xlarge", **servers),
        _row(fleet="g4dn.xlarge*8 + ps=c5n.4xlarge*4", **servers),
        _row(fleet="g4dn.xlarge*8", **servers),
    ]

    in_columns, in_fleet, usual = _mid(rows, _job(Strategy.ASP_PS))

    assert in_columns == in_fleet
    assert in_columns < usual


def test_the_size_in_a_row_stands_before_that_of_the_job() -> None:
    rows = [_row(fleet="g4dn.12xlarge:4*4", parameter_bytes=size) for size in (1e8, None, 1e9)]

    given, left_out, larger = _mid(rows, _job())

    assert given == left_out
    assert larger > given


RESNET_LIKE = [  # CM-DARE on one K80: FLOPs per image, tensors, parameters, seconds per step
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


def _published(strategy: Strategy = Strategy.ASP_PS) -> list[Measurement]:
    return [
        Measurement(
            configuration=_row(
                line,
                strategy=strategy,
                fleet="K80",
                batch_per_gpu=128,
                model=f"m{line}",
                parameter_bytes=4 * parameters,
                tensor_count=tensors,
                flops_per_sample=flops,
            ),
            step_s=step_s,
        )
        for line, (flops, tensors, parameters, step_s) in enumerate(RESNET_LIKE, start=2)
    ]


def _jobs(rows: list[Measurement]) -> dict[str, JobSpec]:
    return {m.name: m.job for m in calibrate_workloads(rows, catalog(), path="rows.csv")}


def test_published_models_left_out_are_predicted_from_their_flops_within_5_percent() -> None:
    rows = _published()
    jobs = _jobs(rows)

    errors = []
    for row in rows:
        others = {n: job for n, job in jobs.items() if n != row.configuration.model}
        (found,) = predict([row.configuration], others)
        errors.append(abs(found.step_s.mid / (row.step_s or 0) - 1))
        assert found.step_s.low < found.step_s.mid < found.step_s.high

    assert sum(errors) / len(errors) == pytest.approx(0.0456, abs=2e-3)


def test_an_unmeasured_model_is_not_modelled_on_one_of_another_strategy() -> None:
    ring = _published(Strategy.ALLREDUCE)
    other = _published()[-1].configuration

    error = _complaint(replace(other, model="new", fleet="K80*2"), _jobs(ring[:4]))

    assert "the model 'new' is not in the job" in str(error)


def test_without_servers_an_unmeasured_step_is_all_compute() -> None:
    rows = _published(Strategy.ALLREDUCE)

    (alone,) = predict([replace(rows[3].configuration, model="new")], _jobs(rows[:3]))

    law = fit_flops_law(
        [
            (
                ModelFacts(flops_per_sample=flops, batch=128, tensor_count=tensors),
                step_s,
            )
            for flops, tensors, _, step_s in RESNET_LIKE[:3]
        ]
    )
    flops, tensors, _, _ = RESNET_LIKE[3]
    expected = law.step_s(ModelFacts(flops_per_sample=flops, batch=128, tensor_count=tensors))
    assert alone.step_s.mid == pytest.approx(expected, rel=1e-3)


def test_rows_are_short_runs_whatever_rate_the_job_is_planned_with() -> None:
    job = _job(Strategy.ASP_PS)
    sustained = replace(job, limits=replace(job.limits, network=NetworkRate.BASELINE))
    row = _row(strategy=Strategy.ASP_PS, fleet="g4dn.xlarge*8", parameter_bytes=1e9)

    assert _mid([row], sustained) == _mid([row], job)
