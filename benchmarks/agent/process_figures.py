"""What a process takes, as the kernel counts it."""

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return its CPU seconds so far, all threads, user and kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def memory_mb(pid: int) -> float:
    """Return the most memory that it ever had, in units of 10^6 bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    figures = dict(line.split(":", 1) for line in lines)
    return int(figures["VmHWM"].split()[0]) * 1024 / 1e6
