"""What a job's limits allow, against a filter over every offer of the bundled catalog."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from spotwright.domain.job import Goal, JobSpec, Limits, Target, TargetKind
from spotwright.domain.offer import Market, Offer, OfferQuery, Pool
from spotwright.domain.workload import (
    FixedBatch,
    MemoryUse,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.usecases.list_offers import server_offers, worker_offers
from tests.usecases.example_job import catalog


def every_offer(allowed: Callable[[Offer], bool]) -> list[Offer]:
    return [offer for offer in catalog().offers(OfferQuery(include_retired=True)) if allowed(offer)]


def has_gpu(offer: Offer) -> bool:
    return offer.instance_type.gpu_count > 0 and not offer.instance_type.retired


def small_job(limits: Limits) -> JobSpec:
    """Return a job that fits any GPU."""
    workload = Workload(
        strategy=Strategy.ALLREDUCE,
        model=ModelSize(parameter_bytes=1e6),
        batch=FixedBatch(per_gpu_count=1),
        memory=MemoryUse(reserved_bytes=0),
    )
    goal = Goal(target=Target(kind=TargetKind.STEPS, value=1))
    return JobSpec(name="small", workload=workload, goal=goal, limits=limits)


def served_job(limits: Limits) -> JobSpec:
    """Return a job with parameter servers, of m5.xlarge unless its limits name others."""
    small = small_job(limits)
    serving = ParameterServing(default_type="m5.xlarge")
    workload = replace(small.workload, strategy=Strategy.BSP_PS, parameter_serving=serving)
    return replace(small, workload=workload)


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        ({}, has_gpu),
        ({"gpus": {"T4"}}, lambda o: has_gpu(o) and o.instance_type.gpu_name == "T4"),
        ({"regions": {"us-east-2"}}, lambda o: has_gpu(o) and o.region == "us-east-2"),
        ({"zones": {"use1-az4"}}, lambda o: has_gpu(o) and o.zone == "use1-az4"),
        ({"markets": {Market.SPOT}}, lambda o: has_gpu(o) and o.market is Market.SPOT),
        (
            {"excluded_types": {"g5.xlarge", "g6.xlarge"}},
            lambda o: has_gpu(o) and o.instance_type.name not in ("g5.xlarge", "g6.xlarge"),
        ),
        ({"instance_types": {"m5.xlarge"}}, lambda o: o.instance_type.name == "m5.xlarge"),
        ({"instance_types": {"p3.2xlarge"}}, lambda o: o.instance_type.name == "p3.2xlarge"),
    ],
)
def test_workers_are_what_the_limits_allow(
    limits: dict[str, Any], allowed: Callable[[Offer], bool]
) -> None:
    expected = every_offer(allowed)

    found = worker_offers(
        small_job(Limits(**{k: frozenset(v) for k, v in limits.items()})), catalog()
    )

    assert list(found) == expected != []


def test_a_price_ceiling_drops_the_dearer_pools_of_that_type_only() -> None:
    def affordable(offer: Offer) -> bool:
        return offer.instance_type.name != "g4dn.xlarge" or offer.price_usd_per_hour <= 0.2

    limits = Limits(max_price_by_type_usd_per_hour={"g4dn.xlarge": 0.2})

    found = worker_offers(small_job(limits), catalog())

    assert list(found) == every_offer(lambda offer: has_gpu(offer) and affordable(offer))
    assert len(found) < len(worker_offers(small_job(Limits()), catalog()))


def test_gpus_that_cannot_hold_the_workload_are_not_offered() -> None:
    small = small_job(Limits(gpus=frozenset({"L4"})))
    large = replace(
        small, workload=replace(small.workload, memory=MemoryUse(reserved_bytes=20 * 2**30))
    )

    held = {offer.instance_type.name for offer in worker_offers(small, catalog())}
    left = {offer.instance_type.name for offer in worker_offers(large, catalog())}

    assert "g6f.large" in held - left  # an eighth of an L4 has 2.8 GiB
    assert "g6.xlarge" in left


def test_parameter_servers_are_the_default_type_on_demand() -> None:
    found = server_offers(served_job(Limits()), catalog())

    assert list(found) == every_offer(
        lambda o: o.instance_type.name == "m5.xlarge" and o.market is Market.ON_DEMAND
    )


def test_parameter_servers_may_be_of_named_types_and_spot_when_the_job_says_so() -> None:
    names = frozenset({"c5n.2xlarge", "c5n.4xlarge"})
    limits = Limits(parameter_server_types=names, spot_parameter_servers=True)

    found = server_offers(served_job(limits), catalog())

    assert list(found) == every_offer(lambda o: o.instance_type.name in names)
    assert {offer.market for offer in found} == set(Market)


def test_a_job_without_parameter_servers_is_offered_none() -> None:
    assert server_offers(small_job(Limits()), catalog()) == []


NOON, LATER = (datetime(2026, 11, 16, hour, tzinfo=UTC) for hour in (12, 13))
G5, SERVER, BANNED = map(
    Pool.parse,
    ("g5.xlarge@use1-az4/spot", "m5.xlarge@use1-az4/on-demand", "g4dn.xlarge@use1-az1/on-demand"),
)


@pytest.mark.parametrize(
    ("now", "left_out"),
    [
        (None, {G5, SERVER, BANNED}),
        (datetime(2026, 11, 16, 11, 59, tzinfo=UTC), {G5, SERVER, BANNED}),
        (NOON, {SERVER, BANNED}),
        (LATER, {BANNED}),
    ],
)
def test_excluded_pools_are_left_out_and_those_that_cool_down_only_until_then(
    now: datetime | None, left_out: set[Pool]
) -> None:
    free = served_job(Limits())
    job = replace(free, limits=Limits(excluded_pools={G5: NOON, SERVER: LATER, BANNED: None}))

    for offers in (worker_offers, server_offers):
        expected = [o for o in offers(free, catalog()) if o.pool not in left_out]
        assert list(offers(job, catalog(), now=now)) == expected


def test_the_pools_excluded_above_are_on_offer_otherwise() -> None:
    free = served_job(Limits())

    found = [*worker_offers(free, catalog()), *server_offers(free, catalog())]

    assert {G5, SERVER, BANNED} <= {offer.pool for offer in found}
