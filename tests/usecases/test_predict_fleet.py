"""A fleet written by hand, predicted with the offers that its terms stand for."""

from dataclasses import replace

import pytest

from spotwright.domain.errors import BadInputError, FleetExpressionError
from spotwright.domain.workload import ComputeProfile, FixedBatch, Strategy
from spotwright.usecases.predict_fleet import predict_fleet
from tests.usecases.example_job import catalog, job, snapshot, workload

ALONE = replace(
    job(),
    workload=workload(
        batch=FixedBatch(per_gpu_count=32), compute={"T4": ComputeProfile(per_sample_s=0.01)}
    ),
)


def test_one_gpu_alone_takes_its_compute_time_at_the_price_of_the_cheapest_zone() -> None:
    cheapest = min(
        row.on_demand_usd_per_hour or float("inf")
        for row in snapshot().prices
        if row.instance_type == "g4dn.xlarge"
    )

    found = predict_fleet(ALONE, "g4dn.xlarge", catalog())

    assert found.iteration_s.mid == pytest.approx(32 * 0.01, rel=0.05)
    assert found.cost_usd is not None
    assert found.duration_s is not None
    assert found.cost_usd.mid == pytest.approx(found.duration_s.mid / 3600 * cheapest)


def test_a_typo_and_a_fleet_that_cannot_train_the_job_are_told_apart() -> None:
    with pytest.raises(FleetExpressionError, match=r"g4nd\.xlarge"):
        predict_fleet(ALONE, "g4nd.xlarge", catalog())
    with pytest.raises(BadInputError, match="at least one worker"):
        predict_fleet(job(Strategy.ASP_PS), "ps=m5.xlarge", catalog())
