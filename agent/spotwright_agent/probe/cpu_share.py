"""How much of a core this process may use, and how much of that it used."""

import time
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


def allowed_cores(*, cgroups: Path = _CGROUPS, own_cgroup: Path = _OWN_CGROUP) -> float:
    """Return what one busy thread may use: one core, or less where a cgroup has a quota."""
    try:
        lines = own_cgroup.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return 1.0
    path = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    folder = cgroups / path
    above = [folder, *folder.parents]
    return min([1.0, *(_quota(f) for f in above if f.is_relative_to(cgroups))])


def _quota(folder: Path) -> float:
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        cores = float(quota) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # "max": no quota
        return 1.0
    return cores if cores > 0 else 1.0


class CpuWatch:
    """Counts the processor time of this process from now on."""

    def __init__(self) -> None:
        self._allowed_cores = allowed_cores()
        self._wall_s, self._cpu_s = time.monotonic(), time.process_time()

    def used_fraction(self) -> float:
        """Return how much was used of what is allowed."""
        wall_s = time.monotonic() - self._wall_s
        return (time.process_time() - self._cpu_s) / max(wall_s, 1e-9) / self._allowed_cores
