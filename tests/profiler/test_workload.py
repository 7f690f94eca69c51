"""From figures to the workload of a job file, and back through its reader."""

from dataclasses import replace

import numpy as np
import pytest

from spotwright.adapters.jobfile.read import parse_job
from spotwright.adapters.jobfile.write import job_text
from spotwright.cli.sources import open_catalog
from spotwright.domain.hardware import Cloud, Gpu, Precision
from spotwright.domain.job import TargetKind
from spotwright.domain.prediction import Interval
from spotwright.domain.workload import FixedBatch, GlobalBatch, Strategy
from spotwright.perfmodel.laws.affine_law import fit_affine
from spotwright.profiler.copies import CopyRates
from spotwright.profiler.loading import InputStalls
from spotwright.profiler.memory import MemoryFigures
from spotwright.profiler.profile import Profile, ProfileOptions, usual_batches
from spotwright.profiler.sizes import Sizes
from spotwright.profiler.step_times import StepTimes
from spotwright.profiler.workload import catalog_gpu, job_name, profiled_job, profiled_workload

CATALOG = open_catalog(Cloud.AWS)
NAMES = {kind.gpu_name for kind in CATALOG.instance_types() if kind.gpu_name}
GPUS: list[Gpu] = [CATALOG.gpu(name) for name in sorted(NAMES)]
LAW = fit_affine([(b, 0.02 + 0.004 * b) for _ in range(4) for b in (8, 16, 32)])
FED = InputStalls(
    synthetic_samples_per_s=100.0,
    prepared_samples_per_s=1234.567,
    fetched_samples_per_s=None,
    prep_stall_s=Interval(0.0, 0.0, 0.0),
    fetch_stall_s=None,
    loader_processes=0,
    sample_count=5000,
    dataset_bytes=15e6,
    left_cached_fraction=None,
)
ON_CPU = Profile(
    options=ProfileOptions(target="models/Small_CNN.py", batch=32, batches=(8, 16, 32)),
    device_name="CPU",
    is_gpu=False,
    device_memory_gib=None,
    thread_count=2,
    sizes=Sizes(
        parameter_bytes=400,
        parameter_count=100,
        gradient_bytes=360,
        tensor_count=7,
        buffer_bytes=0,
        optimizer_bytes=400,
        flops_per_sample=6e9,
        input_bytes_per_sample=3072.0,
        precision=Precision.FP32,
    ),
    memory=MemoryFigures(
        fixed_bytes=0.0, bytes_per_sample=5e6, source="saved tensors", points=((8, 4e7),)
    ),
    steps=StepTimes(
        rows=((8, 0.052),), medians_s={8: 0.052}, law=LAW, round_count=4, step_count=12
    ),
    copies=CopyRates(host_memory_mbps=8e4, to_device_mbps=None, copied_bytes=64_000_000),
    input=FED,
    exchange=None,
    notes=(),
    duration_s=60.0,
)
ON_T4 = replace(ON_CPU, device_name="Tesla T4", is_gpu=True, device_memory_gib=14.6)


@pytest.mark.parametrize("strategy", [Strategy.ALLREDUCE, Strategy.ASP_PS, Strategy.BSP_PS])
@pytest.mark.parametrize("profile", [ON_CPU, ON_T4, replace(ON_CPU, input=None)])
def test_a_profiled_job_reads_back_as_it_was(strategy: Strategy, profile: Profile) -> None:
    job = profiled_job(profile, strategy=strategy, gpus=GPUS)

    read = parse_job(job_text({job.name: job}), path="job.yaml").spec

    assert read.workload.model == job.workload.model
    assert read.workload.memory == job.workload.memory
    assert read.workload.batch == FixedBatch(per_gpu_count=32)
    assert read.workload.dataset == job.workload.dataset
    assert read.workload.input == job.workload.input
    assert (read.name, read.goal, read.limits) == ("small-cnn", job.goal, job.limits)
    assert read.workload.strategy is strategy


def test_a_cpu_writes_no_measured_speed() -> None:
    workload = profiled_job(ON_CPU, strategy=Strategy.ALLREDUCE, gpus=GPUS).workload

    assert workload.compute == {}
    assert workload.model.flops_per_sample == 6e9
    assert workload.model.parameter_bytes == 360
    assert workload.memory.optimizer_bytes_per_parameter == 4.0
    assert workload.memory.activation_bytes_per_sample == 5e6
    assert workload.input
    assert workload.input.prep_samples_per_s_per_vcpu == 1235.0


def test_a_gpu_writes_the_line_under_the_name_of_the_catalog() -> None:
    workload = profiled_job(ON_T4, strategy=Strategy.ALLREDUCE, gpus=GPUS).workload

    assert list(workload.compute) == ["T4"]
    assert workload.compute["T4"].fixed_s == pytest.approx(0.02, rel=1e-3)
    assert workload.compute["T4"].per_sample_s == pytest.approx(0.004, rel=1e-3)


def test_the_goal_of_a_job_of_its_own_is_what_can_be_counted() -> None:
    with_data = profiled_job(ON_CPU, strategy=Strategy.ALLREDUCE, gpus=GPUS)
    without = profiled_job(replace(ON_CPU, input=None), strategy=Strategy.ALLREDUCE, gpus=GPUS)

    assert with_data.goal.target.kind is TargetKind.EPOCHS
    assert without.goal.target.kind is TargetKind.SAMPLES


def test_what_a_profile_cannot_tell_is_kept() -> None:
    text = (
        "name: kept\nworkload: {strategy: bsp-ps, model: {parameter_size: 1 GB}, "
        "batch: {whole: 512}, compute: {V100: {per_sample: 1 ms}}, parameter_server: {count: 3}, "
        "convergence: {law: cynthia, k0: 3, k1: 0.1}}\ngoal: {loss: 0.5}\n"
    )
    base = parse_job(text, path="job.yaml").spec.workload

    found = profiled_workload(ON_T4, base, gpus=GPUS, keep_batch=True)

    assert found.batch == GlobalBatch(sample_count=512)
    assert set(found.compute) == {"V100", "T4"}
    assert (found.parameter_serving, found.convergence) == (
        base.parameter_serving, base.convergence
    )  # fmt: skip
    assert found.model.parameter_bytes == 360


@pytest.mark.parametrize(
    ("told", "memory_gib", "name"),
    [("Tesla T4", 14.6, "T4"), ("NVIDIA A10G", 22.1, "A10G"), ("NVIDIA L4", 22.0, "L4"),
     ("NVIDIA A100-SXM4-40GB", 39.4, "A100"), ("NVIDIA A100-SXM4-80GB", 79.2, "A100-80GB"),
     ("Tesla V100-SXM2-16GB", 15.8, "V100"), ("Tesla V100-SXM2-32GB", 31.7, "V100-32GB"),
     ("NVIDIA H100 80GB HBM3", 79.1, "H100"), ("NVIDIA L40S", 44.4, "L40S"),
     ("GeForce RTX 4090", 24.0, None), ("Tesla T4", 40.0, None)],
)  # fmt: skip
def test_the_catalog_knows_gpus_by_other_names(
    told: str, memory_gib: float, name: str | None
) -> None:
    assert catalog_gpu(told, memory_gib, GPUS) == name


@pytest.mark.parametrize(
    ("target", "name"),
    [("a/Small_CNN.py", "small-cnn"), ("pkg.nets.big:build", "big"), ("___.py", "profiled"),
     ("x" * 99 + ".py", "x" * 63)],
)  # fmt: skip
def test_a_job_is_named_after_its_script(target: str, name: str) -> None:
    assert job_name(target) == name


@pytest.mark.parametrize(
    ("batch", "measured"),
    [(32, (8, 16, 24, 32)), (1, (1, 2)), (2, (1, 2)), (3, (2, 3)), (4, (2, 3, 4))],
)
def test_batches_are_quarters_of_the_jobs(batch: int, measured: tuple[int, ...]) -> None:
    assert usual_batches(batch) == measured
    assert np.all(np.diff(measured) > 0)
