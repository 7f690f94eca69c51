"""The GCP snapshot: machine types with bundled GPUs, and n1 hosts with attached ones."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from collected_tables import GpuTable, OfferRow, read_gpus, read_offers

from spotwright.domain.catalog import Snapshot
from spotwright.domain.hardware import Cloud, InstanceType

# Eight vCPUs per GPU lies within what GCP allows for every GPU that can be attached.
HOST_BY_GPU_COUNT = {
    1: "n1-standard-8",
    2: "n1-standard-16",
    4: "n1-standard-32",
    8: "n1-standard-64",
}
PARAMETER_SERVERS = frozenset(
    {f"{family}-standard-{n}" for family in ("n1", "n2") for n in (4, 8, 16, 32)}
    | {"c3-standard-4", "c3-standard-8"}
)
# Families whose GPUs are joined by NVLink; L4, T4, P4, P100 and RTX PRO 6000 are not.
NVLINK_PREFIXES = ("a2-", "a3-", "a4-")
NVLINK_ATTACHED_GPUS = frozenset({"V100"})
OBSERVED = datetime(2026, 8, 21, 22, 0, tzinfo=UTC)
SOURCES = {
    "gpus": "published data sheets, entered by hand; peaks, not achieved rates",
    "instance_types": (
        "skypilot-org/skypilot-catalog v8 gcp; NVLink by GPU data sheet for a2, a3, a4 and n1 with"
        " several V100. Network, PCIe and disk rates are not in that source and left empty"
    ),
    "left_out": "CPU types other than some n1, n2 and c3 standard ones, as parameter servers",
    "prices": (
        "skypilot-org/skypilot-catalog v8 gcp, commit ed9b4fb, 2026-08-21T22:00Z. GPUs attached"
        " to n1: the price of the GPUs plus that of the host in the same zone, n1-standard-8, 16,"
        " 32 or 64 for 1, 2, 4 or 8 GPUs, named HOST-GPU-COUNT as in n1-standard-8-p100-1"
    ),
}


def build(data: Path) -> Snapshot:
    """Turn the GCP offers into one snapshot."""
    gpus = read_gpus(data / "gpu_specs.csv")
    rows = list(_complete(read_offers(data / "gcp_gpu_offers.csv.gz")))
    return Snapshot(
        cloud=Cloud.GCP,
        price_times={row.region: OBSERVED for row in rows},
        retired_price_times={},
        sources=SOURCES,
        gpus=gpus.gpus,
        instance_types={row.instance_type: _instance_type(row, gpus) for row in rows},
        prices=tuple(row.price() for row in rows),
        interruption_fraction={},
    )


def _complete(rows: Iterable[OfferRow]) -> Iterator[OfferRow]:
    rows = list(rows)
    hosts = {(row.instance_type, row.zone): row for row in rows if row.kind == "cpu"}
    for row in rows:
        if row.price_scope == "gpu_only":
            yield _with_host(row, hosts)
        elif row.kind == "gpu" or row.instance_type in PARAMETER_SERVERS:
            yield row


def _with_host(row: OfferRow, hosts: Mapping[tuple[str, str], OfferRow]) -> OfferRow:
    host = hosts[HOST_BY_GPU_COUNT[int(row.gpu_count)], row.zone]
    return replace(
        row,
        instance_type=f"{host.instance_type}-{row.gpu_name.lower()}-{row.gpu_count:g}",
        vcpu_count=host.vcpu_count,
        memory_gib=host.memory_gib,
        on_demand=_sum(row.on_demand, host.on_demand),
        spot=_sum(row.spot, host.spot),
    )


def _sum(gpu: float | None, host: float | None) -> float | None:
    return None if gpu is None or host is None else round(gpu + host, 5)


def _instance_type(row: OfferRow, gpus: GpuTable) -> InstanceType:
    if row.vcpu_count is None or row.memory_gib is None:
        raise ValueError(f"{row.instance_type} has no size")
    gpu_name = gpus.name(row.gpu_name) if row.gpu_name else None
    return InstanceType(
        name=row.instance_type,
        cloud=Cloud.GCP,
        vcpu_count=row.vcpu_count,
        memory_gib=row.memory_gib,
        gpu_name=gpu_name,
        gpu_count=row.gpu_count,
        gpu_memory_gib=row.gpu_memory_gib,
        nvlink_mbps=gpus.nvlink_mbps[gpu_name] if gpu_name and _has_nvlink(row) else 0.0,
    )


def _has_nvlink(row: OfferRow) -> bool:
    joined = row.instance_type.startswith(NVLINK_PREFIXES) or row.gpu_name in NVLINK_ATTACHED_GPUS
    return joined and row.gpu_count > 1
