"""The AWS snapshot: current offers, retired types at their last known prices, interruptions."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from aws_history import read_retired_prices
from collected_tables import (
    MBPS_PER_GBPS,
    MBPS_PER_GBYTE_PER_S,
    GpuTable,
    OfferRow,
    figure,
    one_direction_mbps,
    read_gpus,
    read_offers,
    read_table,
    scaled,
)

from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud, InstanceType
from spotwright.domain.quota import quota_class

REGIONS = frozenset({"us-east-1", "us-east-2", "us-west-2", "eu-west-1", "ap-northeast-1"})
FILLED_IN_FOR_EVERY_ZONE = "p4de.24xlarge"
# Midpoints of the advisor's buckets; the last has no upper end and counts as 30 %.
FRACTION_BY_BUCKET = {"0": 0.025, "1": 0.075, "2": 0.125, "3": 0.175, "4": 0.30}
OBSERVED = datetime(2026, 8, 22, 14, 28, tzinfo=UTC)
SOURCES = {
    "gpus": "published data sheets, entered by hand; peaks, not achieved rates",
    "instance_types": (
        "aws/karpenter-provider-aws 1d92708 (Apache-2.0), vantage-sh/ec2instances.info 4ef36cd"
        " (MIT); PCIe generation and NVLink by published platform specification. g6f and gr6f:"
        " PCIe width as measured on g6, the same card. Left empty where unpublished: network"
        " baseline of p2 and g3s, PCIe of p5, p5e and p6-b300"
    ),
    "left_out": (
        "Inferentia, Trainium, FPGA and other accelerators; g2, whose hardware has no source;"
        " regions other than us-east-1, us-east-2, us-west-2, eu-west-1, ap-northeast-1"
    ),
    "prices": (
        "skypilot-org/skypilot-catalog v7 aws, commit 4d20ee1, 2026-08-22T14:28Z. Rows without a"
        " spot price are dropped in Local Zones and for p4de.24xlarge, where the source fills in"
        " every zone. No on-demand price in Local Zones: the source repeats the region's, which"
        " is too low (spot prices there exceed it)"
    ),
    "retired_prices": (
        "git history of skypilot-org/skypilot-catalog v5 to v7: the last price listed per zone and"
        " market. They are of different days; retired_price_times has the oldest of each type, and"
        " a refresh leaves them as they are. us-east-2 is not in that history"
    ),
}


def build(data: Path) -> Snapshot:
    """Join the AWS tables into one snapshot."""
    gpus = read_gpus(data / "gpu_specs.csv")
    hardware = {row["instance_type"]: row for row in read_table(data / "aws_instance_hardware.csv")}
    rows = [row for row in read_offers(data / "aws_gpu_offers.csv.gz") if _is_wanted(row)]
    retired = read_retired_prices(data / "aws_gpu_spot_prices.parquet")
    types = _current_types(rows, hardware, gpus)
    types |= _retired_types({price.instance_type for price in retired.prices}, hardware, gpus)
    advisor = read_table(data / "aws_spot_advisor.csv")
    return Snapshot(
        cloud=Cloud.AWS,
        price_times=dict.fromkeys(REGIONS, OBSERVED),
        retired_price_times=retired.oldest_time,
        sources=SOURCES | _dated_sources(advisor),
        gpus=gpus.gpus,
        instance_types=types,
        prices=tuple(chain((_price(row) for row in rows), retired.prices)),
        interruption_fraction=_fractions(advisor, types),
    )


def _is_wanted(row: OfferRow) -> bool:
    if row.region not in REGIONS or row.kind == "other_accelerator":
        return False
    may_be_filler = _is_local(row.zone) or row.instance_type == FILLED_IN_FOR_EVERY_ZONE
    return row.spot is not None or not may_be_filler


def _is_local(zone: str) -> bool:
    """Tell `use1-atl2-az1`, which has a city code, from `use1-az1`."""
    return zone.count("-") > 1


def _price(row: OfferRow) -> ZonePrice:
    on_demand = None if _is_local(row.zone) else row.on_demand
    return ZonePrice(row.instance_type, row.region, row.zone, on_demand, row.spot)


def _current_types(
    rows: Iterable[OfferRow], hardware: Mapping[str, Mapping[str, str]], gpus: GpuTable
) -> dict[str, InstanceType]:
    pcie_gbs = _measured_pcie(hardware.values())
    types = {}
    for row in {row.instance_type: row for row in rows}.values():
        types[row.instance_type] = _instance_type(
            hardware[row.instance_type],
            gpu_name=gpus.name(row.gpu_name) if row.gpu_name else None,
            gpu_memory_gib=row.gpu_memory_gib,
            pcie_gbs_by_gpu=pcie_gbs,
        )
    return types


def _retired_types(
    names: Iterable[str], hardware: Mapping[str, Mapping[str, str]], gpus: GpuTable
) -> dict[str, InstanceType]:
    types = {}
    for name in names:
        gpu = gpus.gpus[hardware[name]["gpu_name"].upper()]
        types[name] = _instance_type(
            hardware[name], gpu_name=gpu.name, gpu_memory_gib=gpu.memory_gib, retired=True
        )
    return types


def _instance_type(
    row: Mapping[str, str],
    *,
    gpu_name: str | None,
    gpu_memory_gib: float,
    pcie_gbs_by_gpu: Mapping[str, str] | None = None,
    retired: bool = False,
) -> InstanceType:
    pcie_gbs = row["pcie_gbs_per_gpu"]
    if pcie_gbs and row["pcie_lanes_basis"] != "measured":
        pcie_gbs = (pcie_gbs_by_gpu or {}).get(row["gpu_name"], pcie_gbs)
    return InstanceType(
        name=row["instance_type"],
        cloud=Cloud.AWS,
        vcpu_count=float(row["vcpus"]),
        memory_gib=float(row["memory_gib"]),
        gpu_name=gpu_name,
        gpu_count=figure(row["gpu_count"]) or 0.0,
        gpu_memory_gib=gpu_memory_gib,
        network_baseline_mbps=scaled(row["net_baseline_gbps"], MBPS_PER_GBPS),
        network_peak_mbps=scaled(row["net_peak_gbps"], MBPS_PER_GBPS),
        network_card_count=int(row["network_cards"] or 1),
        efa_interface_count=int(row["efa_interfaces"] or 0),
        pcie_mbps=scaled(pcie_gbs, MBPS_PER_GBYTE_PER_S),
        nvlink_mbps=one_direction_mbps(row["nvlink_gbs_per_gpu"]) or 0.0,
        local_disk_gb=figure(row["local_nvme_gb"]) or 0.0,
        disk_mbps=figure(row["ebs_max_mbps"]),
        quota_class=quota_class(row["instance_type"]),
        retired=retired,
    )


def _measured_pcie(hardware: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the PCIe rate of each GPU that was measured, for types where x16 was only assumed."""
    return {
        row["gpu_name"]: row["pcie_gbs_per_gpu"]
        for row in hardware
        if row["pcie_lanes_basis"] == "measured" and row["pcie_gbs_per_gpu"]
    }


def _fractions(
    advisor: Iterable[Mapping[str, str]], types: Mapping[str, InstanceType]
) -> dict[tuple[str, str], float]:
    """Take each (region, type) from the newest advisor snapshot that lists it."""
    return {
        (row["region"], row["instance_type"]): FRACTION_BY_BUCKET[row["bucket"]]
        for row in sorted(advisor, key=lambda row: row["snapshot_date"])
        if row["region"] in REGIONS and row["instance_type"] in types
    }


def _dated_sources(advisor: Iterable[Mapping[str, str]]) -> dict[str, str]:
    snapshots = ", ".join(sorted({row["snapshot_date"] for row in advisor}))
    return {
        "interruption": (
            f"AWS Spot Instance Advisor as committed on {snapshots}; the newest that lists the"
            " region and type. Bucket midpoints 0.025, 0.075, 0.125, 0.175; above 20 % counts as"
            " 0.30"
        ),
    }
