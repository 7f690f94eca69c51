"""The collected tables, read into typed rows. An empty field is None, never zero."""

import csv
import gzip
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spotwright.domain.catalog import ZonePrice
from spotwright.domain.hardware import Gpu

MBPS_PER_GBPS = 1000.0
MBPS_PER_GBYTE_PER_S = 8000.0
_TERA = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    """One line of an offers table."""

    instance_type: str
    region: str
    zone: str
    kind: str
    price_scope: str
    vcpu_count: float | None
    memory_gib: float | None
    gpu_name: str  # as the source spells it; empty without GPU
    gpu_count: float
    gpu_memory_gib: float
    on_demand: float | None
    spot: float | None

    def price(self) -> ZonePrice:
        """Return what this row says of the market."""
        return ZonePrice(self.instance_type, self.region, self.zone, self.on_demand, self.spot)


def read_offers(path: Path) -> list[OfferRow]:
    """Read an offers table; a cloud without zones gets its regions as zones."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [_offer(row) for row in csv.DictReader(file)]


def _offer(row: Mapping[str, str]) -> OfferRow:
    return OfferRow(
        instance_type=row["instance_type"],
        region=row["region"],
        zone=row["zone"] or row["region"],
        kind=row["kind"],
        price_scope=row["price_scope"],
        vcpu_count=figure(row["vcpus"]),
        memory_gib=figure(row["memory_gib"]),
        gpu_name=row["gpu_name"],
        gpu_count=figure(row["gpu_count"]) or 0.0,
        gpu_memory_gib=figure(row["gpu_mem_gib"]) or 0.0,
        on_demand=figure(row["ondemand_price"]),
        spot=figure(row["spot_price"]),
    )


def read_table(path: Path) -> list[dict[str, str]]:
    """Read a plain CSV table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True, slots=True)
class GpuTable:
    """GPU facts, and the name each source uses for them."""

    gpus: Mapping[str, Gpu]
    name_by_alias: Mapping[str, str]
    nvlink_mbps: Mapping[str, float]  # one direction, where the board has it

    def name(self, alias: str) -> str:
        """Return the one name of a GPU that a source calls `alias`."""
        return self.name_by_alias[alias]


def read_gpus(path: Path) -> GpuTable:
    """Read the GPU data sheets."""
    rows = read_table(path)
    return GpuTable(
        gpus={row["gpu_name"]: _gpu(row) for row in rows},
        name_by_alias=dict(_aliases(rows)),
        nvlink_mbps={
            row["gpu_name"]: one_direction_mbps(row["nvlink_gbs_total"]) or 0.0 for row in rows
        },
    )


def _aliases(rows: Iterable[Mapping[str, str]]) -> Iterable[tuple[str, str]]:
    for row in rows:
        for alias in row["catalog_names"].split(";"):
            yield alias, row["gpu_name"]


def _gpu(row: Mapping[str, str]) -> Gpu:
    return Gpu(
        name=row["gpu_name"],
        architecture=row["architecture"],
        memory_gib=float(row["mem_gb"]),
        memory_mbps=scaled(row["mem_bw_gbs"], MBPS_PER_GBYTE_PER_S),
        fp32_flops=scaled(row["fp32_tflops"], _TERA),
        fp16_flops=scaled(row["fp16_tensor_tflops"], _TERA),
        bf16_flops=scaled(row["bf16_tensor_tflops"], _TERA),
    )


def figure(text: str) -> float | None:
    """Read a number, or None from an empty field."""
    return float(text) if text else None


def scaled(text: str, factor: float) -> float | None:
    """Read a number into another unit, rounded past the noise of the multiplication."""
    return round(float(text) * factor, 3) if text else None


def one_direction_mbps(total_gbytes_per_s: str) -> float | None:
    """Halve a figure that counts both directions."""
    return scaled(total_gbytes_per_s, MBPS_PER_GBYTE_PER_S / 2)
