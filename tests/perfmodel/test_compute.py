"""Small has 10 TFLOP/s and 1e6 Mbit/s; Large is twice as fast in fp32 and four times in memory."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import BadInputError, MissingFactError
from spotwright.domain.hardware import InstanceType, Precision
from spotwright.domain.workload import (
    ComputeProfile,
    FixedBatch,
    GlobalBatch,
    MemoryBatch,
    ModelSize,
    Strategy,
    Workload,
)
from spotwright.perfmodel.batch import batch_per_gpu
from spotwright.perfmodel.compute import (
    MEASURED_SD,
    PEAK_SD,
    ROOFLINE_SD,
    ComputeEstimate,
    estimate_compute,
)
from tests.perfmodel.example_clusters import gpu_facts, host, workload

LARGE = host("g.large", "Large")
PROFILE = ComputeProfile(fixed_s=0.01, per_sample_s=0.008, knee=3.0, relative_sd=0.07)


def work(
    *, flops: float | None = None, precision: Precision = Precision.FP32, **compute: Any
) -> Workload:
    sized = ModelSize(parameter_bytes=1e8, flops_per_sample=flops, precision=precision)
    return workload(Strategy.ALLREDUCE, model=sized, compute=compute, efficiency_fraction=0.5)


def estimated(trained: Workload, on: InstanceType) -> ComputeEstimate:
    return estimate_compute(trained, on, gpu_facts)


@pytest.mark.parametrize("device", ["Small", "g.small"])
def test_what_was_measured_on_the_gpu_or_the_type_is_taken_as_it_is(device: str) -> None:
    found = estimated(work(**dict[str, Any]({device: PROFILE})), host())

    assert (found.source, found.fixed_s, found.per_sample_s) == ("measured", 0.01, 0.008)
    assert (found.knee, found.device_sd, found.model_sd) == (3.0, 0.07, 0.0)


def test_the_type_measured_itself_counts_before_its_gpu() -> None:
    both: dict[str, Any] = {"Small": PROFILE, "g.small": ComputeProfile(per_sample_s=0.5)}

    found = estimated(work(**both), host())

    assert found.per_sample_s == 0.5
    assert found.device_sd == MEASURED_SD


@pytest.mark.parametrize(
    ("precision", "peak_ratio"), [(Precision.FP32, 2.0), (Precision.FP16, 8.0)]
)
def test_an_unmeasured_gpu_lies_between_its_two_roofs(
    precision: Precision, peak_ratio: float
) -> None:
    found = estimated(work(precision=precision, Small=PROFILE), LARGE)

    assert found.source == "roofline"
    assert found.per_sample_s == pytest.approx(0.008 / math.sqrt(peak_ratio * 4.0))
    assert 0.008 / max(peak_ratio, 4) < found.per_sample_s < 0.008 / min(peak_ratio, 4)
    apart = math.log(max(peak_ratio, 4) / min(peak_ratio, 4)) / 2
    assert found.model_sd == pytest.approx(math.hypot(ROOFLINE_SD, apart / 2))


def test_an_unmeasured_gpu_keeps_the_shape_of_the_measured_step() -> None:
    found = estimated(work(Small=PROFILE), LARGE)

    assert (found.fixed_s, found.knee) == (0.01, 3.0)


def test_nothing_measured_leaves_the_data_sheet() -> None:
    found = estimated(work(flops=5e9), host())

    assert found.source == "data sheet"
    assert found.per_sample_s == pytest.approx(5e9 / (0.5 * 10e12))
    assert found.model_sd == PEAK_SD > estimated(work(Small=PROFILE), LARGE).model_sd


@pytest.mark.parametrize("known", [{"flops": 5e9}, {"Small": PROFILE}])
def test_an_eighth_of_a_gpu_takes_eight_times_as_long(known: dict[str, Any]) -> None:
    trained = work(**known)
    whole, eighth = estimated(trained, host()), estimated(trained, host("g.f", gpu_count=0.125))

    assert eighth.per_sample_s == pytest.approx(8 * whole.per_sample_s)


def test_a_type_with_a_shared_gpu_that_was_measured_itself_is_not_slowed_again() -> None:
    found = estimated(work(**dict[str, Any]({"g.f": PROFILE})), host("g.f", gpu_count=0.125))

    assert found.per_sample_s == 0.008


def test_several_gpus_in_a_node_do_not_make_one_of_them_faster() -> None:
    one, four = (estimated(work(flops=5e9), host(gpu_count=n)) for n in (1.0, 4.0))

    assert one == four


@pytest.mark.parametrize(
    ("trained", "on", "message"),
    [
        (work(), host(), r"add workload.compute.Small or workload.model.flops_per_sample"),
        (work(flops=5e9), host("c.x", None), r"c.x, which has no GPU,.*add workload.compute.c.x"),
        (work(flops=5e9), host("g.s", "Secret"), r"peak rate is not published.*compute.Secret"),
        (work(Small=PROFILE), host("g.s", "Secret"), r"peak rate is not published"),
    ],
)
def test_a_missing_fact_comes_with_a_way_out(
    trained: Workload, on: InstanceType, message: str
) -> None:
    with pytest.raises(MissingFactError, match=message):
        estimated(trained, on)


@given(
    fixed=st.floats(0, 1), per_sample=st.floats(1e-6, 1), batch=st.integers(1, 4096),
    knee=st.floats(1, 50),
)  # fmt: skip
def test_a_step_lies_between_the_larger_part_and_the_sum(
    fixed: float, per_sample: float, batch: int, knee: float
) -> None:
    made = ComputeEstimate(
        fixed_s=fixed, per_sample_s=per_sample, knee=knee, source="x", device_sd=0, model_sd=0
    )
    work_s = per_sample * batch

    assert max(fixed, work_s) <= made.step_s(batch) * (1 + 1e-12)
    assert made.step_s(batch) <= (fixed + work_s) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("rule", "gpu", "batch"),
    [
        (FixedBatch(per_gpu_count=32), "Small", 32),
        (FixedBatch(per_gpu_count=32, by_device={"Small": 64}), "Small", 64),
        (FixedBatch(by_device={"Small": 64, "g.small": 16}), "Small", 16),
        (MemoryBatch(per_gib=32.0), "Small", 512),  # 2^floor(log2(512))
        (MemoryBatch(per_gib=32.0, offset=-1.0), "Small", 256),  # log2(511) < 9
        (MemoryBatch(per_gib=0.01), "Small", 1),
    ],
)
def test_the_batch_follows_its_rule(rule: FixedBatch | MemoryBatch, gpu: str, batch: int) -> None:
    assert batch_per_gpu(workload(Strategy.ASP_PS, batch=rule), host("g.small", gpu)) == batch


def test_a_device_without_a_batch_and_a_whole_batch_without_a_barrier_are_refused() -> None:
    with pytest.raises(MissingFactError, match=r"the batch on Large.*per_gpu_by_device"):
        batch_per_gpu(workload(Strategy.ASP_PS, batch=FixedBatch(by_device={"Small": 1})), LARGE)
    with pytest.raises(BadInputError, match=r"asp-ps needs a batch per GPU"):
        batch_per_gpu(workload(Strategy.ASP_PS, batch=GlobalBatch(sample_count=8)), LARGE)
