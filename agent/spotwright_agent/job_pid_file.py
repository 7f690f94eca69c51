"""The file in which a job names its processes, and signals to those that are its own.

A number alone proves nothing: anybody can write one, and an old one may be another process by now.
So a process is signalled only if it belongs to the owner of the file, unless that is root, and
was there when the file was written.
"""

import os
import signal
import stat
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

_MAX_BYTES = 64 * 1024
_MAX_PIDS = 1024
_CLOCK_S = 1.0  # kernel and file system count time in steps
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class _Named(NamedTuple):
    pids: frozenset[int]
    uid: int
    written_s: float  # by the clock since boot, as the kernel tells when a process started


def signal_named(path: Path, number: int, *, besides: Collection[int]) -> dict[int, str]:
    """Signal the processes in a file; return by process why that failed, empty where it did not.

    Args:
        path: the file, one process number a line; what else is in it is left alone.
        number: the signal.
        besides: processes to leave out.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not such a file.
    """
    try:
        named = _read(path)
    except FileNotFoundError:  # the job may not have started
        return {}
    pids = sorted(named.pids.difference(besides))[:_MAX_PIDS]
    return {pid: _signal(pid, number, named) for pid in pids}


def _read(path: Path) -> _Named:
    # A pipe would hold us, and a link may lead anywhere.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
    with open(os.open(path, flags), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError(f"{path} is not a file")
        if about.st_mode & stat.S_IWOTH:
            raise ValueError(f"{path} can be written by everybody")
        lines = file.read(_MAX_BYTES).decode("ascii", "replace").split("\n")
    told = [line.strip() for line in lines if line.strip()]
    pids = frozenset(int(line) for line in told if line.isdigit() and len(line) <= 9)
    if told and not pids:
        raise ValueError(f"{path} must have one process number a line")
    age_s = time.time() - about.st_mtime
    written_s = time.clock_gettime(time.CLOCK_BOOTTIME) - age_s
    return _Named(pids, about.st_uid, written_s)


def _signal(pid: int, number: int, named: _Named) -> str:
    if pid <= 1 or pid == os.getpid():  # 0 would be a whole group of processes
        return "is not a training process"
    try:
        pidfd = os.pidfd_open(pid)
        try:
            # Read while the pidfd is open: if the number is another's by now, the pidfd is dead.
            if refusal := _refusal(Path("/proc") / str(pid), named):
                return refusal
            signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _refusal(process: Path, named: _Named) -> str:
    try:
        status = (process / "status").read_text(encoding="ascii", errors="replace")
        figures = (process / "stat").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return "is hidden in /proc, so that its owner is not known"
    uid = int(status.partition("\nUid:\t")[2].split(maxsplit=1)[0])
    if named.uid not in (0, uid):
        return f"belongs to user {uid}, the file that names it to user {named.uid}"
    start_s = int(figures.rpartition(")")[2].split()[19]) / _TICKS_PER_S
    if start_s > named.written_s + _CLOCK_S:
        return "started after the file that names it was written"
    return ""
