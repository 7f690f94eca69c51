"""What a job's limits allow, against a filter over every offer of the bundled catalog."""

from collections.abc import Callable
from typing import Any

import pytest

from spotwright.domain.job import Limits
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.usecases.list_offers import server_offers, worker_offers
from tests.usecases.example_job import catalog


def every_offer(allowed: Callable[[Offer], bool]) -> list[Offer]:
    return [offer for offer in catalog().offers(OfferQuery(include_retired=True)) if allowed(offer)]


def has_gpu(offer: Offer) -> bool:
    return offer.instance_type.gpu_count > 0 and not offer.instance_type.retired


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

    found = worker_offers(Limits(**{k: frozenset(v) for k, v in limits.items()}), catalog())

    assert list(found) == expected != []


def test_a_price_ceiling_drops_the_dearer_pools_of_that_type_only() -> None:
    def affordable(offer: Offer) -> bool:
        return offer.instance_type.name != "g4dn.xlarge" or offer.price_usd_per_hour <= 0.2

    limits = Limits(max_price_by_type_usd_per_hour={"g4dn.xlarge": 0.2})

    found = worker_offers(limits, catalog())

    assert list(found) == every_offer(lambda offer: has_gpu(offer) and affordable(offer))
    assert len(found) < len(worker_offers(Limits(), catalog()))


def test_parameter_servers_are_the_default_type_on_demand() -> None:
    found = server_offers(Limits(), catalog(), default_type="m5.xlarge")

    assert list(found) == every_offer(
        lambda o: o.instance_type.name == "m5.xlarge" and o.market is Market.ON_DEMAND
    )


def test_parameter_servers_may_be_of_named_types_and_spot_when_the_job_says_so() -> None:
    names = frozenset({"c5n.2xlarge", "c5n.4xlarge"})
    limits = Limits(parameter_server_types=names, spot_parameter_servers=True)

    found = server_offers(limits, catalog(), default_type="m5.xlarge")

    assert list(found) == every_offer(lambda o: o.instance_type.name in names)
    assert {offer.market for offer in found} == set(Market)
