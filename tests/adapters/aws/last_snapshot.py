"""A small last good snapshot: two regions, one retired type."""

from datetime import UTC, datetime

from spotwright.domain.catalog import QuotaKey, Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Market

LAST_TIME = datetime(2026, 8, 22, 14, 28, tzinfo=UTC)
P2_TIME = datetime(2025, 3, 27, tzinfo=UTC)
NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def _gpu(name: str, memory_gib: float) -> Gpu:
    return Gpu(
        name=name,
        architecture="test",
        memory_gib=memory_gib,
        memory_mbps=None,
        fp32_flops=1e12,
        fp16_flops=None,
        bf16_flops=None,
    )


def _type(name: str, *, gpu_name: str | None = None, retired: bool = False) -> InstanceType:
    return InstanceType(
        name=name,
        cloud=Cloud.AWS,
        vcpu_count=1,
        memory_gib=1,
        gpu_name=gpu_name,
        gpu_count=1 if gpu_name else 0,
        gpu_memory_gib=1 if gpu_name else 0,
        pcie_mbps=126_000 if gpu_name else None,
        nvlink_mbps=2_400_000 if name.startswith("p4") else 0,
        retired=retired,
    )


_GPUS = (
    _gpu("A10G", 24),
    _gpu("A100", 40),
    _gpu("A100-80GB", 80),
    _gpu("A100-80GB-PCIe", 80),
    _gpu("L4", 24),
    _gpu("RTX PRO 6000 Server", 96),
    _gpu("K80", 12),
)
_TYPES = (
    _type("g5.xlarge", gpu_name="A10G"),
    _type("g5.12xlarge", gpu_name="A10G"),
    _type("g6f.large", gpu_name="L4"),
    _type("g7e.2xlarge", gpu_name="RTX PRO 6000 Server"),
    _type("p4d.24xlarge", gpu_name="A100"),
    _type("p2.xlarge", gpu_name="K80", retired=True),
    _type("m5.xlarge"),
)

LAST = Snapshot(
    cloud=Cloud.AWS,
    price_times={"us-east-1": LAST_TIME, "us-west-2": LAST_TIME},
    retired_price_times={"p2.xlarge": P2_TIME},
    sources={"prices": "a list of August"},
    gpus={gpu.name: gpu for gpu in _GPUS},
    instance_types={t.name: t for t in _TYPES},
    prices=(
        ZonePrice("g5.xlarge", "us-east-1", "use1-az2", 1.1, 0.5),
        ZonePrice("p2.xlarge", "us-east-1", "use1-az1", 0.9, 0.27),
        ZonePrice("g5.xlarge", "us-west-2", "usw2-az1", 1.006, 0.37),
        ZonePrice("p2.xlarge", "us-west-2", "usw2-az1", 0.9, 0.31),
    ),
    interruption_fraction={("us-east-1", "g5.xlarge"): 0.12},
    vcpu_quotas={
        QuotaKey("us-east-1", "g-vt", Market.SPOT): 4,
        QuotaKey("us-west-2", "g-vt", Market.SPOT): 8,
    },
    placement_scores={("g5.xlarge", "use1-az6"): 1, ("g5.xlarge", "usw2-az1"): 7},
)
