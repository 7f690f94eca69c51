"""CPU quotas of hosts: control groups, version 1 or 2, below one group of the laboratory's own."""

import os
import time
from contextlib import suppress
from pathlib import Path

_V1, _V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_PREFIX = "spotwright-lab-"
_PERIOD_US = 20_000  # short, so that a step of some 100 ms sees an even pace
_EMPTY_WITHIN_S = 5.0


class CpuQuotas:
    """A group for each host, made when it is first asked for."""

    def __init__(self, owner_pid: int) -> None:
        """Name the groups after the process that will remove them."""
        self._is_v1 = (_V1 / "cpu.cfs_quota_us").exists() or (_V1 / "cpu.shares").exists()
        self._root = (_V1 if self._is_v1 else _V2) / f"{_PREFIX}{owner_pid}"

    def group(self, host: str) -> Path:
        """Return a host's group."""
        group = self._root / host
        if not group.exists():
            self._root.mkdir(exist_ok=True)
            if not self._is_v1:
                (self._root.parent / "cgroup.subtree_control").write_text("+cpu")
                (self._root / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
        return group

    def set(self, host: str, cpus: float | None) -> None:
        """Give a host so many CPUs; None: all there are."""
        quota_us = None if cpus is None else round(cpus * _PERIOD_US)
        group = self.group(host)
        if self._is_v1:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(-1 if quota_us is None else quota_us))
        else:
            most = "max" if quota_us is None else str(quota_us)
            (group / "cpu.max").write_text(f"{most} {_PERIOD_US}")


def join(group: Path) -> None:
    """Count this process, and those it starts, against a host's quota."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def remove_groups(owner_pid: int) -> None:
    """Remove an ended laboratory's groups, and those of others that could not."""
    for root in (_V1, _V2):
        for group in root.glob(f"{_PREFIX}*"):
            owner = int(group.name.removeprefix(_PREFIX))
            if owner == owner_pid or not Path(f"/proc/{owner}").exists():
                _remove(group)


def _remove(group: Path) -> None:
    end_s = time.monotonic() + _EMPTY_WITHIN_S
    while group.exists() and time.monotonic() < end_s:
        for child in group.iterdir():
            if child.is_dir():
                with suppress(OSError):  # somebody in it has not quite ended
                    child.rmdir()
        with suppress(OSError):
            group.rmdir()
        time.sleep(0.05)
