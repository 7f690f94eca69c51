"""CPU and memory of this host, from procfs."""

from pathlib import Path

from spotwright_agent.collectors.kernel_files import KernelFile
from spotwright_agent.readings import CollectorError, HostFigures

PROCFS = Path("/proc")
# Columns of the first line of `stat`, in ticks. Those of guests are within user and nice already.
_IDLE, _IOWAIT, _STEAL, _TOLD = 3, 4, 7, 8


class HostCollector:
    """The share of CPU time in use and stolen, and the memory in use."""

    name = "host"

    def __init__(self, root: Path = PROCFS) -> None:
        # The line of all CPUs comes first; those of each CPU, and of interrupts, are not needed.
        self._stat = KernelFile(root / "stat", most_bytes=256)
        self._memory = KernelFile(root / "meminfo", most_bytes=256)
        self._ticks: tuple[int, ...] = ()

    def read(self, now_s: float) -> HostFigures:
        """Return the figures; shares of CPU time are absent in the first call."""
        del now_s  # ticks are compared with ticks
        try:
            figures: HostFigures = {"memory_used_bytes": used_bytes(self._memory.read())}
            ticks = cpu_ticks(self._stat.read())
        except OSError as error:
            raise CollectorError(f"procfs cannot be read: {error.strerror}") from error
        except (ValueError, IndexError, KeyError) as error:
            raise CollectorError(f"procfs tells something else: {error!r}") from error
        before, self._ticks = self._ticks, ticks
        if before:
            _add_shares(figures, before=before, now=ticks)
        return figures


def cpu_ticks(stat: bytes) -> tuple[int, ...]:
    """Return what all CPUs did since boot: user, nice, system, idle, iowait, irqs and steal."""
    words = stat.split(b"\n", 1)[0].split()
    if words[0] != b"cpu" or len(words) <= _TOLD:
        raise ValueError("the first line of stat is not that of all CPUs")
    return tuple(map(int, words[1 : _TOLD + 1]))


def used_bytes(meminfo: bytes) -> int:
    """Return the memory that programs could not get."""
    words = meminfo.split()
    kib = {words[i]: words[i + 1] for i in range(len(words) - 1) if words[i].endswith(b":")}
    return (int(kib[b"MemTotal:"]) - int(kib[b"MemAvailable:"])) * 1024


def _add_shares(figures: HostFigures, *, before: tuple[int, ...], now: tuple[int, ...]) -> None:
    # Idle and waiting ticks of a CPU may go back a little: the kernel says so. Then they are 0.
    passed = [max(new - old, 0) for old, new in zip(before, now, strict=True)]
    whole = sum(passed)
    if whole > 0:
        idle = passed[_IDLE] + passed[_IOWAIT]
        figures["cpu_fraction"] = (whole - idle - passed[_STEAL]) / whole
        figures["cpu_steal_fraction"] = passed[_STEAL] / whole
