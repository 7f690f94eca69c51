"""The collectors of this host."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from spotwright_agent.collectors.cpu_limit import CpuLimitCollector
from spotwright_agent.collectors.disk import DiskCollector
from spotwright_agent.collectors.gpu import GpuCollector
from spotwright_agent.collectors.host import HostCollector
from spotwright_agent.collectors.network import NetworkCollector
from spotwright_agent.collectors.rdma import RdmaCollector
from spotwright_agent.collectors.sent_rate import SentRateCollector
from spotwright_agent.readings import Collector


def open_collectors(
    *, sysfs: Path, procfs: Path, pids: Callable[[], Collection[int]] = tuple
) -> list[Collector]:
    """Return all collectors; none has read anything yet, so that none can fail here.

    Args:
        sysfs: where it is mounted.
        procfs: likewise.
        pids: tells which processes train.
    """
    return [
        GpuCollector(),
        NetworkCollector(sysfs / "class" / "net"),
        RdmaCollector(sysfs / "class" / "infiniband"),
        HostCollector(procfs),
        CpuLimitCollector(procfs, pids),
        SentRateCollector(),
        DiskCollector(sysfs / "block"),
    ]


def gpu_names(collectors: Sequence[Collector]) -> tuple[str, ...]:
    """Return what the GPUs are called; empty until the driver has answered."""
    return next((each.names for each in collectors if isinstance(each, GpuCollector)), ())
