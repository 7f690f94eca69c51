"""GPUs and the instance types that carry them: facts that do not change with the market."""

from dataclasses import dataclass
from enum import StrEnum

from spotwright.domain.checks import require_positive


class Cloud(StrEnum):
    """Whose instances they are."""

    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"


class Precision(StrEnum):
    """Number format of the matrix products in training."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """Data-sheet figures of one GPU; peaks, not what a model achieves. None = not published."""

    name: str
    architecture: str
    memory_gib: float
    memory_mbps: float | None
    fp32_flops: float | None
    fp16_flops: float | None  # dense, tensor cores where the GPU has them
    bf16_flops: float | None

    def __post_init__(self) -> None:
        require_positive(self, "memory_gib")

    def peak_flops(self, precision: Precision) -> float | None:
        """Return the peak rate at a precision; without hardware for it, that of fp32."""
        by_precision = {Precision.FP16: self.fp16_flops, Precision.BF16: self.bf16_flops}
        return by_precision.get(precision) or self.fp32_flops


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One machine type of a cloud, with what training needs to know of its hardware."""

    name: str
    cloud: Cloud
    vcpu_count: float
    memory_gib: float
    gpu_name: str | None = None
    gpu_count: float = 0.0  # g6f and gr6f carry a fraction of a GPU
    gpu_memory_gib: float = 0.0  # per GPU, as the instance exposes it
    network_baseline_mbps: float | None = None  # sustained
    network_peak_mbps: float | None = None  # "up to": a burst
    network_card_count: int = 1
    efa_interface_count: int = 0
    pcie_mbps: float | None = None  # one direction per GPU; many G types have x8 links
    nvlink_mbps: float = 0.0  # per GPU, one direction
    local_disk_gb: float = 0.0
    disk_mbps: float | None = None  # network block storage, maximum
    quota_class: str | None = None  # the AWS quota its vCPUs count against
    retired: bool = False

    def __post_init__(self) -> None:
        require_positive(self, "vcpu_count", "memory_gib")
        if (self.gpu_name is None) != (self.gpu_count == 0):
            raise ValueError(f"{self.name}: gpu_name and gpu_count must be given together")
