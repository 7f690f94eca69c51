"""What every OfferSource must do: the catalog itself, and clients that reach one over a wire.

A source under test serves `small_market()`:

    class TestMySource(OfferSourceContract):
        @pytest.fixture
        def source(self) -> OfferSource: ...
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.errors import UnknownNameError
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.usecases.ports import OfferSource

SPOT = frozenset({Market.SPOT})
ON_DEMAND = frozenset({Market.ON_DEMAND})
EAST_TIME = datetime(2026, 8, 22, 14, 28, tzinfo=UTC)
WEST_TIME = datetime(2026, 7, 1, 9, 0, tzinfo=UTC)
P2_TIME = datetime(2025, 3, 27, tzinfo=UTC)


def small_market() -> Snapshot:
    """Return five types in three zones of two regions, with every oddity a query can meet."""
    types = [
        _type("g5.xlarge", gpu="A10G", memory_gib=16.0),
        _type("g5.12xlarge", gpu="A10G", gpu_count=4.0, memory_gib=192.0, efa=1),
        _type("g4dn.xlarge", gpu="T4", memory_gib=16.0),
        _type("p2.xlarge", gpu="K80", memory_gib=61.0, retired=True),
        _type("m5.xlarge", memory_gib=16.0),
    ]
    gpus = [_gpu("A10G", 24.0), _gpu("T4", 16.0), _gpu("K80", 12.0), _gpu("P100", 16.0)]
    return Snapshot(
        cloud=Cloud.AWS,
        price_times={"us-east-1": EAST_TIME, "us-west-2": WEST_TIME},
        retired_price_times={"p2.xlarge": P2_TIME},
        sources={"prices": "made up"},
        gpus={gpu.name: gpu for gpu in gpus},
        instance_types={kind.name: kind for kind in types},
        prices=(
            ZonePrice("g4dn.xlarge", "us-east-1", "use1-az1", 0.526, 0.2),
            ZonePrice("g4dn.xlarge", "us-east-1", "use1-az2", 0.526, None),
            ZonePrice("g5.12xlarge", "us-east-1", "use1-az1", 5.672, 2.2),
            ZonePrice("g5.xlarge", "us-east-1", "use1-az1", 1.006, 0.42),
            ZonePrice("g5.xlarge", "us-east-1", "use1-az2", 1.006, 0.2),
            ZonePrice("g5.xlarge", "us-west-2", "usw2-az1", None, 0.2),
            ZonePrice("m5.xlarge", "us-east-1", "use1-az1", 0.192, 0.08),
            ZonePrice("p2.xlarge", "us-east-1", "use1-az1", 0.9, 0.27),
        ),
        interruption_fraction={("us-east-1", "g5.xlarge"): 0.175},
    )


def _gpu(name: str, memory_gib: float) -> Gpu:
    return Gpu(
        name=name,
        architecture="any",
        memory_gib=memory_gib,
        memory_mbps=None,
        fp32_flops=8.1e12,
        fp16_flops=None,
        bf16_flops=None,
    )


def _type(
    name: str,
    *,
    memory_gib: float,
    gpu: str | None = None,
    gpu_count: float = 1.0,
    efa: int = 0,
    retired: bool = False,
) -> InstanceType:
    gpu_memory_gib = {"A10G": 22.352, "T4": 16.0, "K80": 12.0, None: 0.0}[gpu]
    return InstanceType(
        name=name,
        cloud=Cloud.AWS,
        vcpu_count=4.0,
        memory_gib=memory_gib,
        gpu_name=gpu,
        gpu_count=gpu_count if gpu else 0.0,
        gpu_memory_gib=gpu_memory_gib,
        network_baseline_mbps=2500.0,
        efa_interface_count=efa,
        retired=retired,
    )


def pools(offers: Iterable[Offer]) -> list[str]:
    return [str(offer.pool) for offer in offers]


class OfferSourceContract:
    """Tests that a subclass inherits, given a `source` fixture over `small_market()`."""

    def test_offers_come_cheapest_first_with_ties_by_type_zone_and_market(
        self, source: OfferSource
    ) -> None:
        found = source.offers(OfferQuery(gpus=frozenset({"A10G", "T4"}), markets=SPOT))

        assert pools(found) == [
            "g4dn.xlarge@use1-az1/spot",
            "g5.xlarge@use1-az2/spot",
            "g5.xlarge@usw2-az1/spot",
            "g5.xlarge@use1-az1/spot",
            "g5.12xlarge@use1-az1/spot",
        ]

    def test_an_offer_carries_its_type_place_price_and_interruptions(
        self, source: OfferSource
    ) -> None:
        query = OfferQuery(instance_types=frozenset({"g5.xlarge"}), zones=frozenset({"use1-az1"}))

        spot, on_demand = source.offers(query)

        assert on_demand == Offer(
            instance_type=small_market().instance_types["g5.xlarge"],
            region="us-east-1",
            zone="use1-az1",
            market=Market.ON_DEMAND,
            price_usd_per_hour=1.006,
        )
        assert spot == replace(
            on_demand, market=Market.SPOT, price_usd_per_hour=0.42, interruption_fraction=0.175
        )

    def test_interruptions_nobody_published_are_unknown_not_zero(self, source: OfferSource) -> None:
        (offer,) = source.offers(OfferQuery(regions=frozenset({"us-west-2"})))

        assert offer.interruption_fraction is None

    def test_a_market_without_a_price_has_no_offer(self, source: OfferSource) -> None:
        g4dn = OfferQuery(gpus=frozenset({"T4"}), zones=frozenset({"use1-az2"}))
        west = OfferQuery(regions=frozenset({"us-west-2"}), markets=ON_DEMAND)

        assert pools(source.offers(g4dn)) == ["g4dn.xlarge@use1-az2/on-demand"]
        assert pools(source.offers(west)) == []

    def test_retired_types_show_only_when_named_or_asked_for(self, source: OfferSource) -> None:
        named = OfferQuery(instance_types=frozenset({"p2.xlarge"}))
        by_gpu = OfferQuery(gpus=frozenset({"K80"}))
        by_gpu_with_retired = OfferQuery(gpus=frozenset({"K80"}), include_retired=True)
        both = ["p2.xlarge@use1-az1/spot", "p2.xlarge@use1-az1/on-demand"]

        assert pools(source.offers(named)) == both
        assert pools(source.offers(by_gpu)) == []
        assert pools(source.offers(by_gpu_with_retired)) == both
        assert not any(offer.instance_type.retired for offer in source.offers(OfferQuery()))

    @pytest.mark.parametrize(
        ("query", "types"),
        [
            (OfferQuery(with_gpu=False), {"m5.xlarge"}),
            (OfferQuery(with_gpu=True), {"g4dn.xlarge", "g5.xlarge", "g5.12xlarge"}),
            (OfferQuery(efa_only=True), {"g5.12xlarge"}),
            (OfferQuery(min_memory_gib=192.0), {"g5.12xlarge"}),
            (OfferQuery(min_gpu_memory_gib=22.0), {"g5.xlarge", "g5.12xlarge"}),
            (OfferQuery(min_gpu_count=2.0), {"g5.12xlarge"}),
            (OfferQuery(max_price_usd_per_hour=0.192), {"m5.xlarge"}),
            (OfferQuery(min_memory_gib=1e6), set()),
        ],
    )
    def test_each_restriction_keeps_exactly_the_types_that_meet_it(
        self, source: OfferSource, query: OfferQuery, types: set[str]
    ) -> None:
        assert {offer.instance_type.name for offer in source.offers(query)} == types

    def test_names_are_found_in_any_case(self, source: OfferSource) -> None:
        lower = OfferQuery(gpus=frozenset({"a10g"}), instance_types=frozenset({"G5.XLARGE"}))
        exact = OfferQuery(gpus=frozenset({"A10G"}), instance_types=frozenset({"g5.xlarge"}))

        assert source.offers(lower) == source.offers(exact)
        assert source.gpu("a10g").name == "A10G"
        assert source.instance_type("G5.Xlarge").name == "g5.xlarge"

    @pytest.mark.parametrize(
        ("query", "nearest"),
        [
            (OfferQuery(gpus=frozenset({"A10"})), "A10G"),
            (OfferQuery(instance_types=frozenset({"g5.xlarg"})), "g5.xlarge"),
            (OfferQuery(regions=frozenset({"us-east-7"})), "us-east-1"),
            (OfferQuery(zones=frozenset({"use1-az9"})), "use1-az"),
        ],
    )
    def test_an_unknown_name_is_an_error_that_says_the_nearest(
        self, source: OfferSource, query: OfferQuery, nearest: str
    ) -> None:
        with pytest.raises(UnknownNameError, match=f"did you mean '{nearest}"):
            source.offers(query)

    def test_unknown_facts_are_errors_that_say_the_nearest(self, source: OfferSource) -> None:
        with pytest.raises(UnknownNameError, match=r"did you mean 'g4dn\.xlarge'"):
            source.instance_type("g4nd.xlarge")
        with pytest.raises(UnknownNameError, match="did you mean 'K80'"):
            source.gpu("K8O")

    def test_a_gpu_this_cloud_has_not_is_known_but_cannot_be_rented(
        self, source: OfferSource
    ) -> None:
        assert source.gpu("P100").memory_gib == 16.0
        with pytest.raises(UnknownNameError):
            source.offers(OfferQuery(gpus=frozenset({"P100"})))

    def test_another_cloud_is_an_error_not_an_empty_answer(self, source: OfferSource) -> None:
        with pytest.raises(UnknownNameError, match="gcp"):
            source.offers(OfferQuery(cloud=Cloud.GCP))

    def test_types_are_listed_by_name_and_with_their_facts(self, source: OfferSource) -> None:
        by_name = sorted(small_market().instance_types.values(), key=lambda kind: kind.name)

        assert list(source.instance_types()) == by_name
        assert source.instance_type("g5.12xlarge") in by_name

    def test_the_catalog_is_as_old_as_its_oldest_region_on_sale(self, source: OfferSource) -> None:
        assert source.catalog_time == WEST_TIME

    @pytest.mark.parametrize(
        ("query", "oldest"),
        [
            (OfferQuery(), WEST_TIME),
            (OfferQuery(regions=frozenset({"us-east-1"})), EAST_TIME),
            (OfferQuery(regions=frozenset({"us-west-2"})), WEST_TIME),
            (OfferQuery(instance_types=frozenset({"p2.xlarge"})), P2_TIME),
            (OfferQuery(include_retired=True), P2_TIME),
            (OfferQuery(min_memory_gib=1e6), WEST_TIME),  # none: as old as the catalog
        ],
    )
    def test_offers_are_as_old_as_the_oldest_price_among_them(
        self, source: OfferSource, query: OfferQuery, oldest: datetime
    ) -> None:
        assert source.oldest_price_time(source.offers(query)) == oldest
