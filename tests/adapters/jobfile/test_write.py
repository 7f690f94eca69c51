"""What is written reads back as the same job, to six significant digits."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from spotwright.adapters.jobfile.read import parse_job, read_job_file
from spotwright.adapters.jobfile.schema import JobFile
from spotwright.adapters.jobfile.write import job_text
from spotwright.domain import workload as work
from spotwright.domain.hardware import Precision
from spotwright.domain.job import (
    Goal,
    JobSpec,
    Limits,
    NetworkRate,
    Placement,
    Target,
    TargetKind,
)
from spotwright.domain.offer import Market, Pool
from spotwright.domain.workload import Strategy
from tests.adapters.jobfile.example_jobs import EXAMPLES, JOB_FILES
from tests.perfmodel.calibration.synthetic_rows import configurations, fit, measure, truth


def _differences(a: Any, b: Any, where: str = "job") -> list[str]:
    """Return the places where two values differ by more than the sixth digit."""
    if is_dataclass(a) and type(a) is type(b):
        names = [field.name for field in fields(a)]
        pairs = [(getattr(a, n), getattr(b, n), f"{where}.{n}") for n in names]
    elif isinstance(a, Mapping) and isinstance(b, Mapping) and set(a) == set(b):
        pairs = [(a[key], b[key], f"{where}.{key}") for key in a]
    elif isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        pairs = [(x, y, f"{where}.{i}") for i, (x, y) in enumerate(zip(a, b, strict=True))]
    elif isinstance(a, float) and isinstance(b, int | float):
        return [] if math.isclose(a, b, rel_tol=6e-6) else [f"{where}: {a!r} is not {b!r}"]
    else:
        return [] if a == b else [f"{where}: {a!r} is not {b!r}"]
    return [difference for x, y, place in pairs for difference in _differences(x, y, place)]


def _read_back(jobs: Mapping[str, JobSpec]) -> Mapping[str, JobSpec]:
    return parse_job(job_text(jobs), path="written.yaml").specs


def _assert_same(job: JobSpec) -> None:
    (found,) = _read_back({"any": job}).values()
    assert _differences(job, found) == []


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(JobFile.model_json_schema())


def _complaints(text: str) -> list[str]:
    return [error.message for error in _validator().iter_errors(yaml.safe_load(text))]


def test_the_comparison_itself_finds_a_seventh_digit_equal_and_a_fifth_different() -> None:
    assert _differences(Target(kind=TargetKind.STEPS, value=1.0), _target(1.000001)) == []
    assert _differences(Target(kind=TargetKind.STEPS, value=1.0), _target(1.00001)) != []


def _target(value: float) -> Target:
    return Target(kind=TargetKind.STEPS, value=value)


@pytest.mark.parametrize("file", JOB_FILES, ids=lambda file: file.name)
def test_every_example_reads_back_as_it_was(file: Path) -> None:
    job = read_job_file(file).spec

    _assert_same(job)
    assert _complaints(job_text({"any": job})) == []


PROFILES = {
    "T4": work.ComputeProfile(fixed_s=0.0123456789, per_sample_s=1.23456789e-5, knee=1.76543219),
    "g5.xlarge": work.ComputeProfile(per_sample_s=2.5, relative_sd=0.07),
}
ALLREDUCE = work.AllreduceTuning(
    head_fraction=0.123456789,
    buckets=(
        work.GradientBucket(ready_fraction=0.41, bytes_fraction=0.123456789),
        work.GradientBucket(ready_fraction=1.0, bytes_fraction=0.876543211),
    ),
    overlap_power=3.3,
    gpu_spread_fraction=0.01,
    link_spread_fraction=0.02,
    two_node_loss=0.3,
    hop_loss=0.0,
    compression_ratio=2.0,
    links={
        "g4dn.12xlarge": work.Links(network_mbps=9876.54321, intra_mbps=5e4, sharing_fraction=0.1),
        "g5.xlarge": work.Links(),
    },
)
SERVING = work.ParameterServing(
    default_type="c5n.4xlarge",
    default_count=3,
    contention=work.Contention.SPOTDNN,
    cpu_s_per_tensor=1e-5,
    cpu_s_per_byte=3.3e-10,
    overlap_fraction=0.25,
    bandwidth_mbps=9600.0,
    requested_mbps=1136.0,
    contention_slope=0.2,
    contention_offset=-0.2,
    largest_shard_fraction=0.62,
)
CURVE = work.ServerlessLaw(
    s_per_sample=0.0021,
    mb_s_per_sample=44.5,
    function_max_mbps=None,
    batch_per_function_count=64,
    max_global_batch_count=512,
)
LINE = work.ServerlessLaw(
    samples_per_s_per_mb=0.03,
    samples_per_s_offset=-5.6,
    storage_mbps_per_mb=0.0178,
    storage_mbps_offset=129.0,
    storage_max_mbps=900.0,
    function_max_mbps=500.0,
    batch_per_function_count=16,
    max_global_batch_count=128,
    timeout_s=600.0,
    checkpoint_margin_s=12.0,
    resume_s=3.5,
    usd_per_gib_s=1e-5,
)
FULL_MODEL = work.ModelSize(
    parameter_bytes=123_456_789.0,
    tensor_count=1_234_567,
    flops_per_sample=2.46e10,
    precision=Precision.BF16,
    parameter_count=25.6e6,
)
PARTS: list[dict[str, Any]] = [
    {"batch": work.FixedBatch(by_device={"T4": 64, "p3.2xlarge": 128})},
    {"batch": work.MemoryBatch(per_gib=32.0, offset=-8.5)},
    {"batch": work.GlobalBatch(sample_count=4096, max_per_gpu_count=32)},
    {"batch": work.GlobalBatch(sample_count=4096)},
    {"model": FULL_MODEL, "efficiency_fraction": 0.5},
    {
        "memory": work.MemoryUse(
            optimizer_bytes_per_parameter=0.0,
            activation_bytes_per_sample=5.5e7,
            reserved_bytes=2e9,
            zero_stage=3,
        )
    },
    {"allreduce": ALLREDUCE},
    {
        "convergence": work.SpotdnnLoss(
            c1=900.0,
            c2=-0.2,
            c3=2500.0,
            c4=0.2,
            c5=0.5,
            batch_range=(64.0, 8192.0),
            coefficient_range=(0.1, 0.95),
            relative_sd=0.1,
        )
    },
    {"convergence": work.CynthiaLoss(k0=6200.0, k1=0.31)},
    {"convergence": work.CynthiaLoss(k0=620.0, k1=0.31, k2=250.0, worker_exponent=0.1)},
    {"convergence": work.NoiseScaleLaw(minimum_steps=2e3, noise_scale_samples=512.0, loss=2.5)},
    {"dataset": work.Dataset(sample_count=1_281_167.0, size_bytes=1.48e11, tokens_per_sample=7.0)},
    {
        "input": work.InputPipeline(
            prep_samples_per_s_per_vcpu=180.0, cached_fraction=0.5, disk_mbps=4e3, memory_mbps=7e4
        )
    },
    {"spot": work.SpotBehaviour(checkpoint_s=4.5, restart_s=360.0, common_shock_fraction=0.25)},
    {"spot": work.SpotBehaviour(restart_s=0.0)},
    {"pcie_mbps": 63_040.0},
    {
        "interval": work.StepInterval(
            low_quantile=-1.23456789, high_quantile=2.5, base_scale=3.3e-5, network_scale=0.1
        )
    },
]


def _job(strategy: Strategy = Strategy.ALLREDUCE, **parts: Any) -> JobSpec:
    placement = Placement.ONE_ZONE if strategy is Strategy.ALLREDUCE else Placement.ONE_REGION
    usual: dict[str, Any] = {
        "model": work.ModelSize(parameter_bytes=1e8),
        "compute": PROFILES,
        "batch": None if strategy is Strategy.SERVERLESS else work.FixedBatch(per_gpu_count=64),
        "allreduce": work.AllreduceTuning() if strategy is Strategy.ALLREDUCE else None,
        "parameter_serving": SERVING if strategy.uses_parameter_servers else None,
    }
    return JobSpec(
        name="written",
        workload=work.Workload(strategy=strategy, **(usual | parts)),
        goal=Goal(target=Target(kind=TargetKind.STEPS, value=100.0)),
        limits=Limits(placement=placement),
    )


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: next(iter(parts)))
def test_every_part_of_a_workload_reads_back(parts: dict[str, Any]) -> None:
    _assert_same(_job(**parts))


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
def test_parameter_servers_read_back(strategy: Strategy) -> None:
    _assert_same(_job(strategy))
    free = work.ParameterServing(cpu_s_per_tensor=0.0, cpu_s_per_byte=0.0)
    _assert_same(_job(strategy, parameter_serving=free))


@pytest.mark.parametrize("law", [CURVE, LINE], ids=["curve", "line"])
def test_a_serverless_law_reads_back(law: work.ServerlessLaw) -> None:
    _assert_same(_job(Strategy.SERVERLESS, serverless=law, compute={}))


CET = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    "limits",
    [
        Limits(
            regions=frozenset({"us-east-1", "no"}),
            zones=frozenset({"use1-az4"}),
            instance_types=frozenset({"g5.xlarge"}),
            gpus=frozenset({"T4"}),
            markets=frozenset({Market.SPOT}),
            excluded_types=frozenset({"p2.xlarge"}),
            excluded_pools={
                Pool("g5.xlarge", "use1-az4", Market.SPOT): datetime(2026, 11, 16, 12, tzinfo=UTC),
                Pool("g5.xlarge", "use1-az5", Market.SPOT): datetime(2026, 11, 16, 12, tzinfo=CET),
                Pool("g5.xlarge", "use1-az4", Market.ON_DEMAND): None,
            },
            min_count_by_pool={Pool("g5.xlarge", "use1-az4", Market.SPOT): 2},
            parameter_server_types=frozenset({"m5.xlarge"}),
            spot_parameter_servers=True,
            max_parameter_servers=9,
            max_count_by_type={"g5.xlarge": 3, "p3.2xlarge": 0},
            max_count_per_pool=4,
            max_vcpus={("g-vt", Market.SPOT): 768, ("p", Market.ON_DEMAND): 0},
            max_nodes=12,
            max_pools=2,
            min_on_demand_fraction=0.25,
            max_price_by_type_usd_per_hour={"g5.xlarge": 0.52},
            max_usd_per_hour={Market.SPOT: 80.0},
            placement=Placement.ANYWHERE,
            network=NetworkRate.PEAK,
        ),
        Limits(placement=Placement.ONE_REGION),
        Limits(placement=Placement.ONE_ZONE),
    ],
    ids=["all", "one-region", "one-zone"],
)
def test_limits_and_goals_read_back(limits: Limits) -> None:
    goal = Goal(
        target=Target(kind=TargetKind.SAMPLES, value=4e6),
        deadline_s=5400.0,
        budget_usd=12.34,
        confidence_fraction=0.9,
    )
    job = replace(_job(), limits=limits, goal=goal)

    _assert_same(job)
    assert _complaints(job_text({"any": job})) == []


def test_several_workloads_read_back_each_under_its_model_and_in_order() -> None:
    jobs = {"b/asp-ps": _job(Strategy.ASP_PS), "null": _job(), "1e3": _job(Strategy.BSP_PS)}

    found = _read_back(jobs)

    assert list(found) == list(jobs)
    assert [_differences(jobs[name], found[name]) for name in jobs] == [[], [], []]
    assert _complaints(job_text(jobs)) == []


def test_a_placement_that_is_usual_for_the_first_workload_only_is_kept_for_the_others() -> None:
    near = replace(_job(), limits=Limits(placement=Placement.ONE_REGION))
    jobs = {"a": _job(Strategy.ASP_PS), "b": near}

    assert _differences(near, _read_back(jobs)["b"]) == []


def test_a_comment_stands_above_the_job_line_by_line() -> None:
    text = job_text({"any": _job()}, comment="first\nsecond: {")

    assert text.startswith("# first\n# second: {\nname: written\n")
    assert parse_job(text, path="w").spec.name == "written"


def test_only_what_is_not_usual_is_written() -> None:
    usual = _job(Strategy.ASP_PS, compute={"T4": work.ComputeProfile(per_sample_s=0.5)})
    written = yaml.safe_load(job_text({"any": usual}))

    assert set(written) == {"name", "workload", "goal"}
    assert set(written["workload"]) == {"strategy", "model", "batch", "compute", "parameter_server"}
    assert written["workload"]["compute"] == {"T4": {"per_sample": "0.5 s"}}


@pytest.mark.parametrize("strategy", [Strategy.ALLREDUCE, Strategy.ASP_PS, Strategy.BSP_PS])
def test_a_calibrated_job_reads_back_with_all_it_learned(strategy: Strategy) -> None:
    compute = {"T4": work.ComputeProfile(fixed_s=0.03, per_sample_s=0.004, knee=1.4)}
    real = truth(
        strategy,
        compute=compute,
        allreduce=work.AllreduceTuning(),
        parameter_serving=work.ParameterServing() if strategy.uses_parameter_servers else None,
    )
    fleets = [f"g4dn.12xlarge:4*{n}" for n in (1, 2, 4, 8)]
    rows = configurations(strategy, *fleets, batches=(8, 32, 64, 128))

    job = fit(measure(rows, real, noise=0.02)).job

    assert job.workload.interval is not None
    _assert_same(job)
    assert _complaints(job_text({"any": job})) == []


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=9)
POSITIVE = st.floats(1e-9, 1e9)
FRACTION = st.floats(0.0, 1.0).map(lambda x: float(f"{x:.6g}"))
PROFILE = st.builds(
    work.ComputeProfile,
    fixed_s=st.just(0.0) | POSITIVE,
    per_sample_s=POSITIVE,
    knee=st.floats(1.0, 50.0),
    relative_sd=st.none() | FRACTION,
)
LINKS = st.builds(
    work.Links,
    network_mbps=st.none() | POSITIVE,
    intra_mbps=st.none() | POSITIVE,
    sharing_fraction=st.none() | st.floats(0, 9),
)
TUNING = st.builds(
    work.AllreduceTuning,
    head_fraction=FRACTION,
    overlap_power=st.floats(1.0, 99.0),
    gpu_spread_fraction=st.floats(0.0, 9.0),
    hop_loss=st.none() | st.floats(0.0, 9.0),
    links=st.dictionaries(NAMES, LINKS, max_size=2),
)


@settings(max_examples=60)
@given(st.dictionaries(NAMES, PROFILE, min_size=1, max_size=2), TUNING, POSITIVE)
def test_any_figures_read_back(
    compute: dict[str, work.ComputeProfile], tuning: work.AllreduceTuning, size: float
) -> None:
    job = _job(compute=compute, allreduce=tuning, model=work.ModelSize(parameter_bytes=1 + size))

    _assert_same(job)
    json.dumps(yaml.safe_load(job_text({"any": job})), allow_nan=False)


def test_figures_that_people_gave_keep_all_their_digits() -> None:
    spec = read_job_file(EXAMPLES / "resnet50.yaml").spec
    target = Target(kind=TargetKind.SAMPLES, value=115_305_031)
    exact = replace(spec, goal=replace(spec.goal, target=target))

    again = parse_job(job_text({"resnet50": exact}), path="again").spec

    assert again.goal.target.value == 115_305_031
    assert again.workload.dataset == spec.workload.dataset
