"""Every example reads, and its figures arrive in the units of the code."""

from pathlib import Path
from typing import Any

import pytest

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.adapters.jobfile.read import parse_job, read_job_file
from spotwright.domain.hardware import Precision
from spotwright.domain.job import NetworkRate, Placement, Target, TargetKind
from spotwright.domain.offer import Market
from spotwright.domain.workload import (
    ComputeProfile,
    Contention,
    CynthiaLoss,
    FixedBatch,
    GlobalBatch,
    MemoryBatch,
    NoiseScaleLaw,
    SpotdnnLoss,
    Strategy,
)
from spotwright.usecases.check_names import check_names
from tests.adapters.jobfile.example_jobs import EXAMPLES, JOB_FILES, SMALL

MB, GB = 1e6, 1e9
FIGURES: dict[str, dict[str, Any]] = {
    "resnet50.yaml": {
        "workload.strategy": Strategy.ALLREDUCE,
        "workload.model.parameter_bytes": 102 * MB,
        "workload.model.parameter_count": 25_600_000,
        "workload.model.tensor_count": 161,
        "workload.model.flops_per_sample": 24_600_000_000,
        "workload.model.precision": Precision.FP16,
        "workload.memory.activation_bytes_per_sample": 55 * MB,
        "workload.batch": FixedBatch(per_gpu_count=128),
        "workload.compute": {"T4": ComputeProfile(fixed_s=0.066, per_sample_s=0.0043)},
        "workload.parameter_serving": None,
        "workload.allreduce.compression_ratio": 1.0,
        "workload.dataset.sample_count": 1_281_167,
        "workload.input.prep_samples_per_s_per_vcpu": 180,
        "workload.input.cached_fraction": 1,
        "goal.target": Target(kind=TargetKind.EPOCHS, value=90),
        "goal.deadline_s": 57_600,
        "goal.confidence_fraction": 0.95,
        "limits.regions": {"us-east-1"},
        "limits.gpus": {"T4", "A10G", "L4", "L40S"},
        "limits.max_nodes": 32,
        "limits.max_vcpus": {("g-vt", Market.SPOT): 768, ("g-vt", Market.ON_DEMAND): 256},
        "limits.placement": Placement.ONE_ZONE,
    },
    "bert.yaml": {
        "workload.model.flops_per_sample": 1.05e12,
        "workload.model.precision": Precision.BF16,
        "workload.memory.optimizer_bytes_per_parameter": 12,
        "workload.batch": GlobalBatch(sample_count=512, max_per_gpu_count=32),
        "workload.efficiency_fraction": 0.4,
        "workload.dataset.size_bytes": 18 * GB,
        "goal.budget_usd": 400,
        "limits.max_usd_per_hour": {Market.SPOT: 80, Market.ON_DEMAND: 60},
    },
    "llama-zero3.yaml": {
        "workload.model.parameter_count": 6.74e9,
        "workload.memory.zero_stage": 3,
        "workload.spot.restart_s": 360,
        "workload.spot.checkpoint_s": 45,
        "goal.target": Target(kind=TargetKind.TOKENS, value=1e9),
        "goal.deadline_s": 86_400,
    },
    "mobilenet-serverless.yaml": {
        "workload.strategy": Strategy.SERVERLESS,
        "workload.batch": None,
        "workload.serverless.samples_per_s_per_mb": 0.03,
        "workload.serverless.storage_mbps_per_mb": 0.017824,
        "workload.serverless.storage_mbps_offset": 128.96,
        "workload.serverless.timeout_s": 900,
        "workload.parameter_serving.bandwidth_mbps": 9_600,
        "goal.deadline_s": 2_700,
    },
    "text-cnn-bsp.yaml": {
        "workload.strategy": Strategy.BSP_PS,
        "workload.parameter_serving.cpu_s_per_tensor": 0.000108,
        "workload.parameter_serving.cpu_s_per_byte": 1.26e-9,
        "workload.convergence": CynthiaLoss(k0=6200, k1=0.31),
        "goal.target": Target(kind=TargetKind.LOSS, value=0.5),
        "limits.parameter_server_types": {"c5n.2xlarge", "c5n.4xlarge"},
        "limits.placement": Placement.ONE_REGION,
    },
    "wide-resnet-asp.yaml": {
        "workload.convergence": SpotdnnLoss(
            c1=1800,
            c2=-0.3,
            c3=2500,
            c4=0.2,
            c5=0.35,
            batch_range=(64, 1024),
            coefficient_range=(0, 0.95),
        ),
        "limits.max_count_per_pool": 8,
    },
    "papers/resnet110.yaml": {
        "workload.model.parameter_bytes": 11.54 * MB,
        "workload.batch": FixedBatch(by_device={"V100": 512, "K80": 256, "T4": 512, "M60": 256}),
        "workload.compute.V100.per_sample_s": 0.42 / 512,
        "workload.parameter_serving.contention": Contention.SPOTDNN,
        "workload.parameter_serving.requested_mbps": 1_136,
        "workload.parameter_serving.contention_offset": -0.2,
        "limits.network": NetworkRate.PEAK,
        "goal.deadline_s": 2_400,
    },
    "papers/esperberto.yaml": {
        "workload.parameter_serving.requested_mbps": 4_344,
        "workload.parameter_serving.contention": Contention.QUEUEING,
        "goal.target": Target(kind=TargetKind.SAMPLES, value=3_000_000),
    },
    "papers/inception-v3.yaml": {"workload.parameter_serving.requested_mbps": 4_496},
    "papers/vgg19.yaml": {
        "workload.model.parameter_bytes": 574 * MB,
        "workload.parameter_serving.requested_mbps": 4_960,
        "workload.efficiency_fraction": 0.45,
    },
}


def _figure(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[step] if isinstance(value, dict) else getattr(value, step)
    return value


def test_every_example_has_figures_here() -> None:
    assert {str(file.relative_to(EXAMPLES)) for file in JOB_FILES} == set(FIGURES)


@pytest.mark.parametrize(
    ("file", "path", "expected"),
    [(file, path, figure) for file, figures in FIGURES.items() for path, figure in figures.items()],
)
def test_a_figure_of_an_example_arrives_in_the_unit_of_the_code(
    file: str, path: str, expected: object
) -> None:
    found = _figure(read_job_file(EXAMPLES / file).spec, path)

    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("file", JOB_FILES, ids=lambda file: file.name)
def test_every_example_names_hardware_that_the_catalog_has(file: Path) -> None:
    job = read_job_file(file).spec

    check_names(job, Catalog(load_snapshot(bundled_path(job.limits.cloud))))


@pytest.mark.parametrize("strategy", ["asp-ps", "bsp-ps", "allreduce"])
def test_only_all_reduce_is_kept_in_one_zone_unless_the_job_says_so(strategy: str) -> None:
    text = SMALL.replace("asp-ps", strategy)
    usual = Placement.ONE_ZONE if strategy == "allreduce" else Placement.ONE_REGION

    assert parse_job(text, path="j").spec.limits.placement is usual
    asked = parse_job(text + "  placement: anywhere\n", path="j")
    assert asked.spec.limits.placement is Placement.ANYWHERE


def test_words_that_yaml_takes_for_booleans_and_times_stay_words() -> None:
    text = SMALL.replace("name: small", "name: no").replace("100", "1_000")

    job = parse_job(text, path="j").spec

    assert (job.name, job.goal.target.value) == ("no", 1000)


@pytest.mark.parametrize("written", ["\ufeff" + SMALL, SMALL.replace("\n", "\r\n")])
def test_a_byte_order_mark_and_windows_lines_do_no_harm(written: str) -> None:
    assert parse_job(written, path="j").spec == parse_job(SMALL, path="j").spec


def test_a_batch_rule_by_memory_and_a_noise_scale_law_are_read() -> None:
    law = "  convergence: {law: noise-scale, minimum_steps: 2k, noise_scale: 512, loss: 2.5}\n"
    text = SMALL.replace("{per_gpu: 64}", "{by_memory: {per_gib: 32, offset: -8}}")

    work = parse_job(text.replace("goal:", law + "goal:"), path="j").spec.workload

    assert work.batch == MemoryBatch(per_gib=32, offset=-8)
    assert work.convergence == NoiseScaleLaw(minimum_steps=2000, noise_scale_samples=512, loss=2.5)
