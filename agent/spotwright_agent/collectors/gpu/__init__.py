"""GPUs of this host, through NVIDIA's management library (NVML)."""

from spotwright_agent.collectors.gpu.collector import GpuCollector
from spotwright_agent.collectors.gpu.facts import (
    DriverFacts,
    GpuFacts,
    GpuUnavailableError,
    read_driver,
    read_gpus,
)

__all__ = [
    "DriverFacts",
    "GpuCollector",
    "GpuFacts",
    "GpuUnavailableError",
    "read_driver",
    "read_gpus",
]
