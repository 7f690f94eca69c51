"""Hardware facts of instance types, as EC2 describes them.

What EC2 does not tell (PCIe and NVLink bandwidth) is carried over from the last snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spotwright.adapters.aws.gpu_names import Device, GpuNames, device
from spotwright.adapters.aws.network import bandwidth_mbps, efa_interface_count
from spotwright.adapters.aws.refusals import asking
from spotwright.domain.catalog import Snapshot
from spotwright.domain.hardware import Cloud, InstanceType
from spotwright.domain.quota import quota_class

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeInfoTypeDef, NetworkInfoTypeDef

    from spotwright.adapters.aws.connection import RegionClients

_MIB_PER_GIB = 1024
_GPU_FAMILIES = ("g*", "p*")  # every AWS family with GPUs for training has one of these letters


@dataclass(frozen=True, slots=True)
class Described:
    """The types of one region that the catalog can use, and what had to be left out."""

    types: Mapping[str, InstanceType]
    notes: tuple[str, ...]


def fetch_instance_types(clients: RegionClients, *, last: Snapshot) -> Described:
    """Return the region's GPU types and the other types that the last snapshot knows."""
    with asking("ec2:DescribeInstanceTypes", region=clients.region):
        pages = clients.ec2.get_paginator("describe_instance_types").paginate(
            Filters=[{"Name": "instance-type", "Values": _patterns(last)}]
        )
        return read_instance_types([info for p in pages for info in p["InstanceTypes"]], last=last)


def _patterns(last: Snapshot) -> list[str]:
    """Return name patterns by family: AWS takes at most 200 filter values."""
    families = {name.partition(".")[0] for name in last.instance_types}
    others = {f"{family}.*" for family in families if family[0] not in "gp"}
    return [*_GPU_FAMILIES, *sorted(others)]


def read_instance_types(infos: Sequence[InstanceTypeInfoTypeDef], *, last: Snapshot) -> Described:
    """Read the wanted types of a DescribeInstanceTypes reply."""
    names = GpuNames.learn(infos, last=last)
    types: dict[str, InstanceType] = {}
    notes = []
    for info in _wanted(infos, last):
        name, gpu = info["InstanceType"], device(info)
        known = last.instance_types.get(name)
        gpu_name = names.canonical(gpu) if gpu else None
        if gpu and gpu_name is None:
            notes.append(f"left out {name}: the catalog has no GPU {gpu.aws_name!r}")
            continue
        types[name] = _instance_type(info, known=known, gpu=gpu, gpu_name=gpu_name)
        if known is None:
            notes.append(f"new type {name}: its PCIe and NVLink bandwidths are not known")
    return Described(types, tuple(notes))


def _wanted(
    infos: Iterable[InstanceTypeInfoTypeDef], last: Snapshot
) -> Iterable[InstanceTypeInfoTypeDef]:
    return (i for i in infos if "GpuInfo" in i or i["InstanceType"] in last.instance_types)


def _instance_type(
    info: InstanceTypeInfoTypeDef,
    *,
    known: InstanceType | None,
    gpu: Device | None,
    gpu_name: str | None,
) -> InstanceType:
    name = info["InstanceType"]
    vcpu_count = float(info["VCpuInfo"]["DefaultVCpus"])
    memory_gib = info["MemoryInfo"]["SizeInMiB"] / _MIB_PER_GIB
    base = known or InstanceType(
        name=name, cloud=Cloud.AWS, vcpu_count=vcpu_count, memory_gib=memory_gib
    )
    disk = info.get("EbsInfo", {}).get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps")
    described = replace(
        base,
        vcpu_count=vcpu_count,
        memory_gib=memory_gib,
        local_disk_gb=float(info.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)),
        disk_mbps=base.disk_mbps if disk is None else float(disk),
        quota_class=quota_class(name),
        retired=False,
    )
    return _with_network(_with_gpu(described, gpu, gpu_name), info.get("NetworkInfo", {}))


def _with_gpu(base: InstanceType, gpu: Device | None, gpu_name: str | None) -> InstanceType:
    if gpu is None:
        return base
    return replace(base, gpu_name=gpu_name, gpu_count=gpu.count, gpu_memory_gib=gpu.memory_gib)


def _with_network(base: InstanceType, network: NetworkInfoTypeDef) -> InstanceType:
    baseline, peak = bandwidth_mbps(network)
    return replace(
        base,
        network_baseline_mbps=baseline or base.network_baseline_mbps,
        network_peak_mbps=peak or base.network_peak_mbps,
        network_card_count=network.get("MaximumNetworkCards", base.network_card_count),
        efa_interface_count=efa_interface_count(network),
    )
