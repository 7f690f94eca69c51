"""The bundled catalogs against figures published by the clouds, and against their own sources."""

import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market, OfferQuery
from tests.outside_tools import require

REPOSITORY = Path(__file__).parents[3]
COLLECTED = REPOSITORY.parent / "shared" / "data"


@cache
def snapshot(cloud: Cloud) -> Snapshot:
    return load_snapshot(bundled_path(cloud))


def aws_price(name: str, zone: str) -> ZonePrice:
    prices = {(p.instance_type, p.zone): p for p in snapshot(Cloud.AWS).prices}
    return prices[name, zone]


def test_g4dn_12xlarge_is_as_aws_describes_it() -> None:
    found = snapshot(Cloud.AWS).instance_types["g4dn.12xlarge"]

    assert (found.gpu_name, found.gpu_count, found.gpu_memory_gib) == ("T4", 4, 16)
    assert (found.vcpu_count, found.memory_gib, found.local_disk_gb) == (48, 192, 900)
    assert found.network_baseline_mbps == 50_000
    assert found.pcie_mbps == pytest.approx(7.88 * 8000)  # eight lanes of PCIe 3.0
    assert (found.nvlink_mbps, found.quota_class, found.retired) == (0, "g-vt", False)


def test_p4d_has_four_efa_cards_and_nvlink_counted_one_way() -> None:
    found = snapshot(Cloud.AWS).instance_types["p4d.24xlarge"]

    assert (found.efa_interface_count, found.network_card_count) == (4, 4)
    assert found.network_baseline_mbps == 400_000
    assert found.nvlink_mbps == 300 * 8000  # 600 GB/s is the sum of both directions


def test_g5_xlarge_sustains_a_quarter_of_its_burst() -> None:
    found = snapshot(Cloud.AWS).instance_types["g5.xlarge"]

    assert (found.network_baseline_mbps, found.network_peak_mbps) == (2500, 10_000)


def test_shares_of_an_l4_have_their_share_and_the_link_of_the_card() -> None:
    types = snapshot(Cloud.AWS).instance_types

    assert types["g6f.large"].gpu_count == 0.125
    assert types["g6f.large"].gpu_memory_gib == pytest.approx(22.352 / 8)
    assert types["g6f.large"].pcie_mbps == types["g6.xlarge"].pcie_mbps


def test_gpu_peaks_are_those_of_the_data_sheets() -> None:
    gpus = snapshot(Cloud.AWS).gpus

    assert (gpus["T4"].fp32_flops, gpus["T4"].memory_mbps) == (8.1e12, 320 * 8000)
    assert (gpus["V100"].fp16_flops, gpus["V100"].bf16_flops) == (125e12, None)
    assert gpus["H100"].bf16_flops == 989e12


def test_unpublished_figures_are_unknown() -> None:
    types = snapshot(Cloud.AWS).instance_types

    assert types["p2.xlarge"].network_baseline_mbps is None
    assert types["p5.48xlarge"].pcie_mbps is None


def test_p3_is_retired_at_its_last_known_price() -> None:
    assert snapshot(Cloud.AWS).instance_types["p3.2xlarge"].retired
    found = aws_price("p3.2xlarge", "use1-az2")

    assert (found.on_demand_usd_per_hour, found.spot_usd_per_hour) == (3.06, 0.4254)


def test_the_papers_k80_is_there_for_those_who_ask_for_retired_types() -> None:
    catalog = Catalog(snapshot(Cloud.AWS))
    k80 = frozenset({"K80"})

    assert catalog.offers(OfferQuery(gpus=k80)) == []
    assert {
        offer.instance_type.name
        for offer in catalog.offers(OfferQuery(gpus=k80, include_retired=True))
    } == {"p2.xlarge", "p2.8xlarge", "p2.16xlarge"}


def test_exactly_the_families_aws_stopped_selling_are_retired() -> None:
    retired = {
        t.name.split(".")[0] for t in snapshot(Cloud.AWS).instance_types.values() if t.retired
    }

    assert retired == {"g3", "g3s", "p2", "p3"}


@pytest.mark.parametrize(
    ("region", "prefix", "numbers"),
    [
        ("us-east-1", "use1", "123456"),
        ("us-east-2", "use2", "123"),
        ("us-west-2", "usw2", "1234"),
        ("eu-west-1", "euw1", "123"),
        ("ap-northeast-1", "apne1", "124"),
    ],
)
def test_each_region_has_all_its_zones(region: str, prefix: str, numbers: str) -> None:
    zones = {p.zone for p in snapshot(Cloud.AWS).prices if p.region == region}

    assert {f"{prefix}-az{number}" for number in numbers} <= zones


def test_local_zones_have_spot_prices_only() -> None:
    local = [p for p in snapshot(Cloud.AWS).prices if p.zone.count("-") > 1]

    assert {p.zone for p in local} == {"use1-atl2-az1", "usw2-lax1-az1", "usw2-lax1-az2"}
    assert all(p.spot_usd_per_hour and p.on_demand_usd_per_hour is None for p in local)


def test_spot_is_never_dearer_than_on_demand() -> None:
    for cloud in Cloud:
        for price in snapshot(cloud).prices:
            if price.on_demand_usd_per_hour and price.spot_usd_per_hour:
                assert price.spot_usd_per_hour <= price.on_demand_usd_per_hour * 1.001


def test_p4de_is_offered_only_where_it_has_a_spot_price() -> None:
    zones = {p.zone for p in snapshot(Cloud.AWS).prices if p.instance_type == "p4de.24xlarge"}

    assert "use1-atl2-az1" not in zones
    assert all(aws_price("p4de.24xlarge", zone).spot_usd_per_hour for zone in zones)


def test_parameter_servers_of_the_papers_can_be_rented() -> None:
    servers = Catalog(snapshot(Cloud.AWS)).offers(
        OfferQuery(with_gpu=False, instance_types=frozenset({"m5.xlarge", "r5.xlarge"}))
    )

    assert {(offer.instance_type.name, offer.market) for offer in servers} == {
        (name, market) for name in ("m5.xlarge", "r5.xlarge") for market in Market
    }


def test_interruption_fractions_are_the_midpoints_of_the_advisors_buckets() -> None:
    fractions = snapshot(Cloud.AWS).interruption_fraction

    assert set(fractions.values()) == {0.025, 0.075, 0.125, 0.175, 0.30}
    assert ("us-east-1", "p3.2xlarge") in fractions


def test_attached_gpus_cost_host_and_gpu_together() -> None:
    prices = {(p.instance_type, p.zone): p for p in snapshot(Cloud.GCP).prices}
    host = prices["n1-standard-8", "us-central1-c"]
    whole = prices["n1-standard-8-p100-1", "us-central1-c"]

    assert host.on_demand_usd_per_hour is not None
    assert whole.on_demand_usd_per_hour is not None
    # GCP's list price of one P100 in us-central1 is 1.46 USD per hour.
    assert whole.on_demand_usd_per_hour - host.on_demand_usd_per_hour == pytest.approx(1.46)


def test_azure_boards_and_shares_are_told_apart() -> None:
    types = snapshot(Cloud.AZURE).instance_types

    assert types["Standard_NC24ads_A100_v4"].gpu_name == "A100-80GB-PCIe"
    assert types["Standard_ND96amsr_A100_v4"].gpu_name == "A100-80GB"
    assert types["Standard_NC40ads_H100_v5"].gpu_name == "H100-NVL"
    assert types["Standard_NV8as_v4"].gpu_count == 0.25


@pytest.mark.parametrize(
    ("cloud", "time"),
    [
        (Cloud.AWS, datetime(2026, 8, 22, 14, 28, tzinfo=UTC)),
        (Cloud.GCP, datetime(2026, 8, 21, 22, 0, tzinfo=UTC)),
        (Cloud.AZURE, datetime(2024, 8, 19, tzinfo=UTC)),
    ],
)
def test_every_cloud_answers_the_same_questions(cloud: Cloud, time: datetime) -> None:
    catalog = Catalog(snapshot(cloud))

    found = catalog.offers(OfferQuery(cloud=cloud, gpus=frozenset({"T4"})))

    assert catalog.catalog_time == time
    assert {offer.market for offer in found} == set(Market)
    assert {offer.instance_type.cloud for offer in found} == {cloud}


def test_prices_of_retired_types_carry_their_own_age() -> None:
    catalog = Catalog(snapshot(Cloud.AWS))
    p2 = catalog.offers(OfferQuery(instance_types=frozenset({"p2.xlarge"})))

    assert catalog.oldest_price_time(p2).date().isoformat() == "2025-03-27"


@pytest.mark.parametrize("cloud", list(Cloud))
def test_names_can_be_written_in_fleet_expressions(cloud: Cloud) -> None:
    zones = {price.zone for price in snapshot(cloud).prices}

    assert not [
        name for name in {*snapshot(cloud).instance_types, *zones} if set(name) & set("+*:@/= ")
    ]


def test_bundled_files_stay_small() -> None:
    sizes = [bundled_path(cloud).stat().st_size for cloud in Cloud]

    assert max(sizes) < 600_000
    assert sum(sizes) < 900_000


def test_bundled_files_are_what_the_script_writes_from_the_tables(tmp_path: Path) -> None:
    require(COLLECTED.is_dir(), f"no collected tables in {COLLECTED}")
    script = REPOSITORY / "scripts" / "build_catalog.py"
    command: list[str | Path] = [sys.executable, script, "--data", COLLECTED, "--out", tmp_path]
    subprocess.run(command, check=True, env={"PYTHONPATH": str(REPOSITORY / "daemon")})

    for cloud in Cloud:
        assert (tmp_path / f"{cloud}.json").read_bytes() == bundled_path(cloud).read_bytes()
