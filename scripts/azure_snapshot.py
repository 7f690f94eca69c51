"""The Azure snapshot: one price per region, since the source knows no zones."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from collected_tables import GpuTable, OfferRow, read_gpus, read_offers

from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud, InstanceType

# The source calls these by the name of the SXM board.
PCIE_BOARD_BY_PREFIX_AND_NAME = {
    ("Standard_NC", "A100-80GB"): "A100-80GB-PCIe",
    ("Standard_NC", "H100"): "H100-NVL",
}
# The source lists one whole GPU for each size of NVv4.
MI25_SHARE_BY_TYPE = {
    "Standard_NV4as_v4": 0.125,
    "Standard_NV8as_v4": 0.25,
    "Standard_NV16as_v4": 0.5,
    "Standard_NV32as_v4": 1.0,
}
NVLINK_PREFIX = "Standard_ND"
OBSERVED = datetime(2024, 8, 19, tzinfo=UTC)
SOURCES = {
    "gpus": "published data sheets, entered by hand; peaks, not achieved rates",
    "instance_types": (
        "skypilot-org/skypilot-catalog v8 azure; NVv4 as shares of a MI25; NC A100 v4 and NC"
        " H100 v5 with PCIe boards; NVLink by GPU data sheet for ND types. Network, PCIe and disk"
        " rates are not in that source and left empty"
    ),
    "left_out": "westcentralus, which has no GPU types; rows without any price",
    "prices": (
        "skypilot-org/skypilot-catalog v8 azure, commit 0082b04, content unchanged since"
        " 2024-08-19; no zones, so each region stands as its only zone. Spot prices of H100 types"
        " are left out: the source repeats the on-demand price"
    ),
}


def build(data: Path) -> Snapshot:
    """Turn the Azure offers into one snapshot."""
    gpus = read_gpus(data / "gpu_specs.csv")
    rows = [_corrected(row) for row in _wanted(read_offers(data / "azure_gpu_offers.csv.gz"))]
    return Snapshot(
        cloud=Cloud.AZURE,
        price_times={row.region: OBSERVED for row in rows},
        retired_price_times={},
        sources=SOURCES,
        gpus=gpus.gpus,
        instance_types={row.instance_type: _instance_type(row, gpus) for row in rows},
        prices=tuple(_price(row) for row in rows),
        interruption_fraction={},
    )


def _wanted(rows: list[OfferRow]) -> Iterable[OfferRow]:
    regions = {row.region for row in rows if row.kind == "gpu"}
    has_price = (row for row in rows if row.on_demand is not None or row.spot is not None)
    return (row for row in has_price if row.region in regions)


def _corrected(row: OfferRow) -> OfferRow:
    share = MI25_SHARE_BY_TYPE.get(row.instance_type)
    if share is not None:
        return replace(row, gpu_count=share, gpu_memory_gib=row.gpu_memory_gib * share)
    board = PCIE_BOARD_BY_PREFIX_AND_NAME.get((row.instance_type[:11], row.gpu_name))
    return replace(row, gpu_name=board) if board else row


def _price(row: OfferRow) -> ZonePrice:
    no_discount = "H100" in row.gpu_name and row.spot == row.on_demand
    return replace(row, spot=None).price() if no_discount else row.price()


def _instance_type(row: OfferRow, gpus: GpuTable) -> InstanceType:
    if row.vcpu_count is None or row.memory_gib is None:
        raise ValueError(f"{row.instance_type} has no size")
    gpu_name = gpus.name_by_alias.get(row.gpu_name, row.gpu_name) or None
    has_nvlink = gpu_name is not None and row.instance_type.startswith(NVLINK_PREFIX)
    return InstanceType(
        name=row.instance_type,
        cloud=Cloud.AZURE,
        vcpu_count=row.vcpu_count,
        memory_gib=row.memory_gib,
        gpu_name=gpu_name,
        gpu_count=row.gpu_count,
        gpu_memory_gib=row.gpu_memory_gib,
        nvlink_mbps=gpus.nvlink_mbps[gpu_name] if gpu_name and has_nvlink else 0.0,
    )
