"""Whether a server's shard fits into the memory of its host."""

from pathlib import Path

from torch import optim

from spotwright.domain.errors import HostMemoryError
from spotwright.train.layout import Shard

_SLOTS = {optim.SGD: 1, optim.Adagrad: 1, optim.RMSprop: 1}  # tensors beside each parameter
_MOST_SLOTS = 2  # Adam and its relatives


def needed_bytes(shard: Shard, optimizer: optim.Optimizer, *, workers: int) -> int:
    """Return what a server needs: parameters, optimizer, a push of each worker, what is sent.

    Each worker may be sent an older version, a copy of its own, while another is saved; the
    optimizer's own tensors stand there twice while they are saved, and in a round the mean.
    """
    slots = _SLOTS.get(type(optimizer), _MOST_SLOTS)
    return (2 + workers) * shard.size_bytes + (2 * slots + 1 + workers) * shard.exchanged_bytes


def available_bytes() -> int | None:
    """Return what this host, or the control group of this process, has to give; None: unknown."""
    limits = [_free_of_host(Path("/proc/meminfo")), free_of_group(Path("/sys/fs/cgroup"))]
    known = [limit for limit in limits if limit is not None]
    return min(known, default=None)


def check_fits(shard: Shard, optimizer: optim.Optimizer, *, workers: int) -> None:
    """Raise HostMemoryError where the host is known to be too small."""
    needed, available = needed_bytes(shard, optimizer, workers=workers), available_bytes()
    if available is not None and needed > available:
        raise HostMemoryError(
            f"a parameter server of {shard.size_bytes / 2**20:.0f} MiB for {workers} workers",
            needed_bytes=needed,
            available_bytes=available,
            way_out="divide the model among more servers, or take a larger host",
        )


def _free_of_host(path: Path) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def free_of_group(folder: Path) -> int | None:
    """Return what a control group may still take; None: no limit is known."""
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text()) - _dropped_at_need(folder)
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)


def _dropped_at_need(folder: Path) -> int:
    """Return the bytes of files that a group has read and the kernel would drop for it."""
    lines = (folder / "memory.stat").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
