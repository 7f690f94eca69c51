"""Oracle: a model of 7 billion bf16 parameters on 64 GPUs, added up by hand."""

import pytest

from spotwright.domain.errors import MemoryDoesNotFitError
from spotwright.domain.hardware import Precision
from spotwright.domain.workload import MemoryUse, ModelSize, Strategy, Workload
from spotwright.perfmodel.memory import check_memory, gpu_memory_gib
from tests.perfmodel.example_clusters import host, workload

GIB = 2**30


def seven_billion(stage: int = 0, strategy: Strategy = Strategy.ALLREDUCE) -> Workload:
    return workload(
        strategy,
        model=ModelSize(parameter_bytes=14e9, parameter_count=7e9, precision=Precision.BF16),
        memory=MemoryUse(
            optimizer_bytes_per_parameter=12,
            activation_bytes_per_sample=3e9,
            reserved_bytes=1e9,
            zero_stage=stage,
        ),
    )


@pytest.mark.parametrize(
    ("stage", "model_gb"),
    [
        (0, 14 + 14 + 84),
        (1, 14 + 14 + 84 / 64),
        (2, 14 + 14 / 64 + 84 / 64),
        (3, 14 / 64 + 14 / 64 + 84 / 64),
    ],
)
def test_each_zero_stage_spreads_one_more_part_over_the_gpus(stage: int, model_gb: float) -> None:
    found = gpu_memory_gib(seven_billion(stage), batch_per_gpu=2, gpu_count=64)

    assert found == pytest.approx((model_gb + 2 * 3 + 1) * 1e9 / GIB)


def test_one_gpu_has_nobody_to_spread_over() -> None:
    needs = [
        gpu_memory_gib(seven_billion(stage), batch_per_gpu=2, gpu_count=1) for stage in range(4)
    ]

    assert needs == [needs[0]] * 4


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
def test_with_parameter_servers_the_optimiser_lives_on_the_server(strategy: Strategy) -> None:
    found = gpu_memory_gib(seven_billion(0, strategy), batch_per_gpu=2, gpu_count=8)

    assert found == pytest.approx((14 + 14 + 6 + 1) * 1e9 / GIB)


@pytest.mark.parametrize(("precision", "per_parameter"), [("fp32", 4 + 4 + 8), ("fp16", 2 + 2 + 8)])
def test_without_a_count_the_parameters_follow_from_the_bytes(
    precision: str, per_parameter: int
) -> None:
    sized = workload(
        Strategy.ALLREDUCE,
        model=ModelSize(parameter_bytes=8e9, precision=Precision(precision)),
        memory=MemoryUse(reserved_bytes=0.0),
    )
    count = 8e9 / {"fp32": 4, "fp16": 2}[precision]

    found = gpu_memory_gib(sized, batch_per_gpu=32, gpu_count=1)

    assert found == pytest.approx(count * per_parameter / GIB)


def test_a_model_that_does_not_fit_is_refused_with_both_figures() -> None:
    with pytest.raises(MemoryDoesNotFitError) as caught:
        check_memory(seven_billion(2), host("g.large", "Large"), batch_per_gpu=26, gpu_count=64)

    assert "a batch of 26 needs 88.0 GiB on Large (g.large), which has 80.0 GiB" in str(
        caught.value
    )
    assert caught.value.needed_gib == pytest.approx(88.03, abs=0.01)
    assert caught.value.available_gib == 80


def test_a_model_that_fits_says_how_much_it_takes() -> None:
    found = check_memory(seven_billion(3), host("g.large", "Large"), batch_per_gpu=2, gpu_count=64)

    assert found == pytest.approx((112 / 64 + 7) * 1e9 / GIB)


def test_a_shared_gpu_has_the_memory_that_the_instance_shows() -> None:
    eighth = host("g.f", gpu_count=0.125, gpu_memory_gib=2.794)
    small = workload(
        Strategy.ALLREDUCE,
        model=ModelSize(parameter_bytes=4e6),
        memory=MemoryUse(reserved_bytes=2.7 * GIB),
    )

    found = check_memory(small, eighth, batch_per_gpu=1, gpu_count=1)

    assert found == pytest.approx(2.7, abs=0.02)


def test_a_host_without_a_gpu_has_nothing_to_fill() -> None:
    bare = host("c.large", None)

    assert check_memory(seven_billion(), bare, batch_per_gpu=1, gpu_count=1) is None
