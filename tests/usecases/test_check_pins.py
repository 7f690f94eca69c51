"""Pins against limits that only a catalog can tell: regions and GPUs."""

from typing import Any

import pytest

from spotwright.domain.errors import PinnedPoolError
from spotwright.domain.job import Placement
from spotwright.domain.offer import Pool
from spotwright.usecases.check_pins import check_pins
from tests.usecases.example_job import catalog, job

VIRGINIA = Pool.parse("g5.xlarge@use1-az4/spot")
OHIO = Pool.parse("g4dn.xlarge@use2-az1/spot")
SERVER = Pool.parse("m5.xlarge@use1-az4/on-demand")


@pytest.mark.parametrize(
    ("pools", "limits"),
    [
        ([], {"regions": {"us-east-1"}, "gpus": {"T4"}}),
        ([VIRGINIA], {}),
        ([VIRGINIA], {"regions": {"us-east-1", "us-east-2"}, "gpus": {"A10G"}}),
        ([VIRGINIA, SERVER], {}),
        ([VIRGINIA, OHIO], {"placement": Placement.ANYWHERE}),
    ],
)
def test_pins_that_the_job_may_rent_pass(pools: list[Pool], limits: dict[str, Any]) -> None:
    check_pins(job(min_count_by_pool=dict.fromkeys(pools, 1), **limits), catalog())


@pytest.mark.parametrize(
    ("pools", "limits", "told"),
    [
        ([VIRGINIA], {"regions": {"us-east-2"}}, "us-east-1 is not in limits.regions"),
        ([VIRGINIA], {"gpus": {"T4", "L4"}}, "A10G is not in limits.gpus"),
        ([SERVER], {"gpus": {"T4"}}, "a type without GPUs is not in limits.gpus"),
        ([OHIO, VIRGINIA], {}, "pins in us-east-1, us-east-2 need another limits.placement than"),
    ],
)
def test_a_pin_in_a_region_or_with_a_gpu_that_the_limits_forbid_is_an_error(
    pools: list[Pool], limits: dict[str, Any], told: str
) -> None:
    with pytest.raises(PinnedPoolError, match=told) as caught:
        check_pins(job(min_count_by_pool=dict.fromkeys(pools, 1), **limits), catalog())

    assert caught.value.pool == str(pools[-1])
