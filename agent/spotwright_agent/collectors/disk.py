"""What is read from disks of this host, from sysfs: it tells when training waits for its input.

Only whole disks that a device backs count. Partitions are within their disk, loops and device
mapper within the disks below them, and memory is no disk. The hidden paths of a multipath NVMe
disk are within that disk.
"""

from pathlib import Path

from spotwright_agent.collectors.counters import ByteRates
from spotwright_agent.collectors.kernel_files import KernelFiles
from spotwright_agent.readings import CollectorError, HostFigures

SYSFS = Path("/sys/block")
_LOOK_AGAIN_S = 10.0
_SECTOR_BYTES = 512  # in these counters, whatever the disk's own sectors are
_SECTORS_READ = 2  # column of `stat`


class DiskCollector:
    """Bytes read from all disks together."""

    name = "disk"

    def __init__(self, root: Path = SYSFS) -> None:
        self._root = root
        self._files = KernelFiles()
        self._rates = ByteRates()
        self._look_again_s = float("-inf")

    def read(self, now_s: float) -> HostFigures:
        """Return the rate; absent in the first call, and on hosts without disks."""
        if now_s >= self._look_again_s:
            self._files.keep({disk.name: disk / "stat" for disk in physical_disks(self._root)})
            self._look_again_s = now_s + _LOOK_AGAIN_S
        sectors = self._files.counts(column=_SECTORS_READ)
        read_bytes = {name: count * _SECTOR_BYTES for name, count in sectors.items()}
        read_mbps = self._rates.update_mbps(read_bytes, now_s=now_s)
        return {} if read_mbps is None else {"disk_read_mbps": read_mbps}


def physical_disks(root: Path = SYSFS) -> list[Path]:
    """Return the whole disks that a device backs; none where the host has no such folder.

    Raises:
        CollectorError: there is such a folder, but it cannot be listed.
    """
    try:
        if not root.is_dir():
            return []
        return [disk for disk in sorted(root.iterdir()) if _is_whole(disk)]
    except OSError as error:
        raise CollectorError(f"{root} cannot be listed: {error.strerror}") from error


def _is_whole(disk: Path) -> bool:
    return (disk / "device").exists() and not _is_hidden(disk)


def _is_hidden(disk: Path) -> bool:
    try:
        return (disk / "hidden").read_text().strip() == "1"
    except OSError:
        return False  # kernels before 4.15 hide none
