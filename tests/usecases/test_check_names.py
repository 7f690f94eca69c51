from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from spotwright.domain.errors import UnknownNameError
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Pool
from spotwright.domain.workload import (
    ComputeProfile,
    FixedBatch,
    ParameterServing,
    Strategy,
)
from spotwright.usecases.check_names import check_names
from tests.usecases.example_job import catalog, job, workload

SPEED = ComputeProfile(per_sample_s=0.001)


NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def pool(text: str) -> Pool:
    return Pool.parse(text)


def with_work(**changes: Any) -> JobSpec:
    return replace(job(), workload=workload(**changes))


def with_server(name: str) -> JobSpec:
    work = replace(workload(Strategy.ASP_PS), parameter_serving=ParameterServing(default_type=name))
    return replace(job(), workload=work)


GOOD = [
    job(),
    job(gpus={"T4", "P100"}, instance_types={"g5.xlarge"}, zones={"use1-az4"}),
    job(max_vcpus={("g-vt", Market.SPOT): 64}, max_count_by_type={"p3.2xlarge": 1}),
    job(excluded_pools={pool("g5.xlarge@use1-az4/spot"): None},
        min_count_by_pool={pool("p3.2xlarge@use2-az1/on-demand"): 1}),
    with_work(compute={"T4": SPEED, "g5.xlarge": SPEED}),
    with_work(batch=FixedBatch(by_device={"V100": 64})),
    with_server("c5n.4xlarge"),
]  # fmt: skip
BAD = [
    (job(gpus={"T44"}), "GPU", "T44", "T4"),
    (job(gpus={"t4"}), "GPU", "t4", "T4"),
    (job(instance_types={"g5.xlrge"}), "instance type", "g5.xlrge", "g5.xlarge"),
    (job(excluded_types={"G5.XLARGE"}), "instance type", "G5.XLARGE", "g5.xlarge"),
    (job(parameter_server_types={"m5.xlrge"}), "instance type", "m5.xlrge", "m5.xlarge"),
    (job(max_count_by_type={"g5.xlrge": 1}), "instance type", "g5.xlrge", "g5.xlarge"),
    (job(max_price_by_type_usd_per_hour={"G5.xlarge": 1}),
     "instance type", "G5.xlarge", "g5.xlarge"),
    (job(regions={"us-esat-1"}), "region", "us-esat-1", "us-east-1"),
    (job(zones={"use1-az44"}), "zone", "use1-az44", "use1-az4"),
    (job(excluded_pools={pool("g5.xlrge@use1-az4/spot"): None}),
     "instance type", "g5.xlrge", "g5.xlarge"),
    (job(excluded_pools={pool("g5.xlarge@use1-az44/spot"): NOON}),
     "zone", "use1-az44", "use1-az4"),
    (job(min_count_by_pool={pool("G5.xlarge@use1-az4/spot"): 1}),
     "instance type", "G5.xlarge", "g5.xlarge"),
    (job(min_count_by_pool={pool("g5.xlarge@USE1-AZ4/spot"): 1}), "zone", "USE1-AZ4", "use1-az4"),
    (job(max_vcpus={("g-vtt", Market.SPOT): 64}), "quota class", "g-vtt", "g-vt"),
    (with_work(compute={"V1000": SPEED}), "GPU", "V1000", "V100"),
    (with_work(compute={"v100": SPEED}), "GPU", "v100", "V100"),
    (with_work(batch=FixedBatch(by_device={"V1000": 64})), "GPU", "V1000", "V100"),
    (with_work(compute={"g5.12xlrge": SPEED}), "instance type", "g5.12xlrge", "g5.12xlarge"),
    (with_server("m5.xlrge"), "instance type", "m5.xlrge", "m5.xlarge"),
]  # fmt: skip


@pytest.mark.parametrize("asked", GOOD)
def test_a_job_that_speaks_of_hardware_that_exists_passes(asked: JobSpec) -> None:
    check_names(asked, catalog())


@pytest.mark.parametrize(("asked", "kind", "name", "nearest"), BAD)
def test_a_name_the_catalog_does_not_spell_like_that_is_an_error_with_the_nearest(
    asked: JobSpec, kind: str, name: str, nearest: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        check_names(asked, catalog())

    assert (caught.value.kind, caught.value.name, caught.value.nearest) == (kind, name, nearest)
