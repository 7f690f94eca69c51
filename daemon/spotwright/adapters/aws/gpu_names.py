"""AWS's GPU names in the catalog's words.

AWS calls the 40 GB and the 80 GB A100 by one name, and some boards by another name than their data
sheet does. So a GPU is recognised by its AWS name and memory together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spotwright.domain.catalog import Snapshot

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import GpuDeviceInfoTypeDef, InstanceTypeInfoTypeDef

_MIB_PER_GIB = 1024
# AWS says 22.4 GiB of an A10G that its data sheet sells as 24 GB; variants differ by a factor of 2.
_MEMORY_TOLERANCE = 0.2


@dataclass(frozen=True, slots=True)
class Device:
    """One kind of GPU of an instance type, as AWS describes it."""

    aws_name: str
    count: float
    partition: float  # of a whole GPU; below 1 for g6f and gr6f
    memory_gib: float  # per GPU, as exposed

    @property
    def kind(self) -> tuple[str, float]:
        """AWS's name and the memory of the whole GPU, which together tell variants apart."""
        return self.aws_name, round(self.memory_gib / self.partition, 1)


def device(info: InstanceTypeInfoTypeDef) -> Device | None:
    """Return the GPU of one described type; None for types without."""
    gpus = info.get("GpuInfo", {}).get("Gpus", [])
    return _device(gpus[0]) if gpus else None


def _device(gpu: GpuDeviceInfoTypeDef) -> Device:
    partition = gpu.get("GpuPartitionSize", 1.0)
    whole_or_parts = gpu.get("LogicalGpuCount", gpu["Count"])  # Count is 0 for a part of a GPU
    return Device(
        aws_name=gpu["Name"],
        count=whole_or_parts * partition,
        partition=partition,
        memory_gib=round(gpu["MemoryInfo"]["SizeInMiB"] / _MIB_PER_GIB, 3),
    )


@dataclass(frozen=True, slots=True)
class GpuNames:
    """What the catalog calls each GPU that AWS names."""

    last: Snapshot
    learned: Mapping[tuple[str, float], str]  # from types that both AWS and the catalog know

    @classmethod
    def learn(cls, infos: Iterable[InstanceTypeInfoTypeDef], *, last: Snapshot) -> GpuNames:
        """Learn AWS's names from the types that the catalog already knows."""
        learned: dict[tuple[str, float], str] = {}
        for info in infos:
            known, gpu = last.instance_types.get(info["InstanceType"]), device(info)
            if gpu and known and known.gpu_name in last.gpus:
                learned[gpu.kind] = str(known.gpu_name)
        return cls(last, learned)

    def canonical(self, gpu: Device) -> str | None:
        """Return the catalog's name of a GPU, or None when the catalog has no such GPU."""
        return self.learned.get(gpu.kind) or self._like_named(gpu)

    def _like_named(self, gpu: Device) -> str | None:
        name, memory_gib = gpu.kind
        misfit = {
            known.name: abs(known.memory_gib / memory_gib - 1)
            for known in self.last.gpus.values()
            if known.name == name or known.name.startswith(f"{name}-")
        }
        near = [name for name, gap in misfit.items() if gap <= _MEMORY_TOLERANCE]
        return min(near, key=lambda n: (misfit[n], len(n)), default=None)
