"""What memory this host, or the control group of this process, still has to give."""

from pathlib import Path


def free_memory_bytes() -> int | None:
    """Return the smaller of both; None: neither is known."""
    limits = [_free_of_host(Path("/proc/meminfo")), free_of_group(Path("/sys/fs/cgroup"))]
    known = [limit for limit in limits if limit is not None]
    return min(known, default=None)


def free_of_group(folder: Path) -> int | None:
    """Return what a control group may still take; None: no limit is known."""
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text()) - _dropped_at_need(folder)
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)


def _free_of_host(path: Path) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def _dropped_at_need(folder: Path) -> int:
    """Return the bytes of files that a group has read and the kernel would drop for it."""
    lines = (folder / "memory.stat").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
