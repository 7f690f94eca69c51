"""Each parser on a recorded reply."""

import json
from typing import Any

import pytest

from spotwright.adapters.aws.instance_types import read_instance_types
from spotwright.adapters.aws.network import bandwidth_mbps
from spotwright.adapters.aws.on_demand_prices import read_price_list
from spotwright.adapters.aws.quotas import read_quotas
from spotwright.adapters.aws.region_prices import zone_prices
from spotwright.adapters.aws.spot_prices import read_spot_prices
from spotwright.adapters.aws.zones import Zones, read_zones
from spotwright.domain.catalog import QuotaKey, ZonePrice
from spotwright.domain.offer import Market
from tests.adapters.aws.last_snapshot import LAST
from tests.fakes.recorded_aws import reply

ZONES = Zones({"us-east-1a": "use1-az6", "us-east-1b": "use1-az1"})


def infos() -> list[Any]:
    return list(reply("describe_instance_types")["InstanceTypes"])


def test_zone_names_become_zone_ids_and_local_zones_are_reported() -> None:
    zones = read_zones(reply("describe_availability_zones")["AvailabilityZones"])

    assert zones.id_by_name == ZONES.id_by_name
    assert len(zones.notes) == 1
    assert "use1-atl2-az1" in zones.notes[0]


def test_a_known_type_takes_what_aws_tells_and_keeps_what_it_cannot() -> None:
    found = read_instance_types(infos(), last=LAST).types["p4d.24xlarge"]

    assert (found.vcpu_count, found.memory_gib) == (96, 1152)
    assert (found.gpu_name, found.gpu_count, found.gpu_memory_gib) == ("A100", 8, 40)
    assert (found.network_baseline_mbps, found.network_card_count) == (400_000, 4)
    assert (found.efa_interface_count, found.quota_class) == (4, "p")
    assert (found.local_disk_gb, found.disk_mbps) == (8000, 19_000)
    assert (found.pcie_mbps, found.nvlink_mbps) == (126_000, 2_400_000)


def test_baseline_and_burst_of_the_network_are_kept_apart() -> None:
    found = read_instance_types(infos(), last=LAST).types["g5.xlarge"]

    assert (found.network_baseline_mbps, found.network_peak_mbps) == (2_500, 10_000)
    assert found.efa_interface_count == 0


@pytest.mark.parametrize(
    ("stated", "gbps_of_cards", "expected"),
    [
        ("400 Gigabit", [400.0] * 4, (400_000, 400_000)),  # g6e.48xlarge: the cards share it
        ("3200 Gigabit", [200.0] * 8, (3_200_000, 3_200_000)),  # p6-b200: Ethernet is half of it
        ("4x 100 Gigabit", [100.0] * 4, (400_000, 400_000)),
        ("Up to 12.5 Gigabit", [1.25], (1_250, 1_250)),
        ("High", [], (None, None)),
    ],
)
def test_the_bandwidth_of_the_whole_instance_counts(
    stated: str, gbps_of_cards: list[float], expected: tuple[float | None, float | None]
) -> None:
    cards: list[Any] = [
        {"BaselineBandwidthInGbps": gbps, "PeakBandwidthInGbps": gbps} for gbps in gbps_of_cards
    ]

    assert bandwidth_mbps({"NetworkPerformance": stated, "NetworkCards": cards}) == expected


def test_network_figures_aws_leaves_out_stay_as_they_were() -> None:
    known = infos()
    del known[0]["NetworkInfo"]["NetworkCards"][0]["BaselineBandwidthInGbps"]

    found = read_instance_types(known, last=LAST).types["g5.xlarge"]

    assert found.network_baseline_mbps == LAST.instance_types["g5.xlarge"].network_baseline_mbps


def test_a_part_of_a_gpu_is_counted_as_a_fraction() -> None:
    found = read_instance_types(infos(), last=LAST).types["g6f.large"]

    assert (found.gpu_name, found.gpu_count) == ("L4", 0.125)
    assert found.gpu_memory_gib == pytest.approx(2.79, abs=0.01)


def test_gpu_variants_of_one_aws_name_are_told_apart_by_memory() -> None:
    found = read_instance_types(infos(), last=LAST).types

    assert found["p4d.24xlarge"].gpu_name == "A100"
    assert found["p4de.24xlarge"].gpu_name == "A100-80GB"


def test_a_gpu_with_another_name_at_aws_is_recognised_by_a_known_type() -> None:
    new = [info | {"InstanceType": "g7e.9xlarge"} for info in infos() if "g7e" in str(info)]

    found = read_instance_types([*infos(), *new], last=LAST)

    assert found.types["g7e.9xlarge"].gpu_name == "RTX PRO 6000 Server"
    assert any(note.startswith("new type g7e.9xlarge") for note in found.notes)


def test_a_type_with_a_gpu_the_catalog_lacks_is_left_out_and_reported() -> None:
    found = read_instance_types(infos(), last=LAST)

    assert "dl1.24xlarge" not in found.types
    assert "left out dl1.24xlarge: the catalog has no GPU 'Gaudi HL-205'" in found.notes


def test_types_without_gpu_are_read_only_if_the_catalog_knows_them() -> None:
    found = read_instance_types(infos(), last=LAST).types

    assert found["m5.xlarge"].memory_gib == 16
    assert "m5.large" not in found


def test_the_newest_spot_price_of_a_pool_counts() -> None:
    found = read_spot_prices(reply("describe_spot_price_history")["SpotPriceHistory"], ZONES)

    assert found.usd_per_hour["g5.xlarge", "use1-az6"] == 0.4099
    assert len(found.usd_per_hour) == 5
    assert found.notes == (
        "left out spot prices in us-east-1-bos-1a: no such zone in this account",
    )


@pytest.mark.parametrize("text", ["0.0000", "-1", "nan", "inf", "free"])
def test_a_spot_price_that_is_not_positive_and_finite_is_refused(text: str) -> None:
    history = reply("describe_spot_price_history")["SpotPriceHistory"]
    history[0]["SpotPrice"] = text

    with pytest.raises(ValueError, match=r"price|convert"):
        read_spot_prices(history[:1], ZONES)


def test_the_price_list_gives_on_demand_prices_not_reserved_or_zero_ones() -> None:
    prices = read_price_list(reply("get_products")["PriceList"])

    assert prices["g5.xlarge"] == 1.006
    assert prices["p4d.24xlarge"] == 21.957642
    assert min(prices.values()) > 0.05


def test_an_entry_without_on_demand_terms_has_no_price() -> None:
    entry = json.loads(reply("get_products")["PriceList"][0])
    del entry["terms"]["OnDemand"]

    assert read_price_list([json.dumps(entry)]) == {}


def test_quotas_are_read_by_code_and_missing_ones_reported() -> None:
    listed = reply("list_service_quotas")["Quotas"]

    found = read_quotas(listed, region="us-east-1", classes={"g-vt", "p", "p5"})

    assert found.vcpu_counts == {
        QuotaKey("us-east-1", "g-vt", Market.ON_DEMAND): 64,
        QuotaKey("us-east-1", "g-vt", Market.SPOT): 128,
        QuotaKey("us-east-1", "p", Market.ON_DEMAND): 0,
        QuotaKey("us-east-1", "p5", Market.ON_DEMAND): 0,
    }
    assert [("L-7212CCBC" in n, "L-C4BD4855" in n) for n in found.notes] == [
        (True, False),
        (False, True),
    ]


def test_the_on_demand_price_holds_in_every_zone_that_offers_the_type() -> None:
    prices = zone_prices(
        "us-east-1",
        offered={("g5.xlarge", "use1-az1"), ("g5.xlarge", "use1-az6"), ("p5.48xlarge", "use1-az6")},
        on_demand={"g5.xlarge": 1.006},
        spot={("g5.xlarge", "use1-az6"): 0.41, ("g5.xlarge", "use1-az2"): 0.39},
    )

    assert prices == (
        ZonePrice("g5.xlarge", "us-east-1", "use1-az1", 1.006, None),
        ZonePrice("g5.xlarge", "us-east-1", "use1-az2", None, 0.39),
        ZonePrice("g5.xlarge", "us-east-1", "use1-az6", 1.006, 0.41),
    )
