"""Zeros over several connections at once: one end sends, the other counts and throws away.

Neither end touches the bytes: the sender hands the kernel pages of an empty memory file, and the
receiver asks TCP to drop what arrived (MSG_TRUNC). Both ends, on one core of a small machine, moved
32 Gbit/s that way.
"""

import contextlib
import mmap
import os
import select
import socket
import threading
import time
from collections.abc import Sequence

from spotwright_agent.probe.cpu_share import CpuWatch
from spotwright_agent.probe.errors import ProbeError

CONNECTION_COUNT = 4
_BLOCK_BYTES = 4 * 2**20
_SLOW_START_FRACTION = 0.1  # of the time; left out of the rate
_GRACE_S = 2.0  # the sender waits so much longer for the receiver to end it
_WAIT_S = 0.05
# Lets data gather, because each look at the sockets costs as much for 1 byte as for a megabyte.
_GATHER_S = 0.0005
_PIECE_BYTES = 65_536
_PIECE_S = 0.001
_BYTES_PER_S = 1e6 / 8  # of one mbps


class Bucket:
    """What may be sent now, so that a rate is not exceeded.

    Time that was slept too long is made up for, but no more than a twentieth of the whole: that is
    the most by which the rate can be exceeded.
    """

    def __init__(self, *, max_mbps: float, duration_s: float, now_s: float) -> None:
        self._bytes_per_s = max_mbps * _BYTES_PER_S
        self._capacity_bytes = self._bytes_per_s * min(0.05, duration_s / 20)
        # Smaller pieces would cost more, larger ones would be bursts.
        piece_bytes = max(_PIECE_BYTES, self._bytes_per_s * _PIECE_S)
        self._piece_bytes = min(piece_bytes, self._capacity_bytes / 2)
        self._level_bytes = 0.0
        self._now_s = now_s

    def allowed_bytes(self, now_s: float) -> int:
        """Return how much may be sent now; nothing before a piece is worth it."""
        gained = (now_s - self._now_s) * self._bytes_per_s
        self._level_bytes = min(self._capacity_bytes, self._level_bytes + gained)
        self._now_s = now_s
        return int(self._level_bytes) if self._level_bytes >= self._piece_bytes else 0

    def wait_s(self) -> float:
        """Return how long to wait for the next piece."""
        return max(0.0, self._piece_bytes - self._level_bytes) / self._bytes_per_s

    def take(self, size_bytes: int) -> None:
        """Note what was sent."""
        self._level_bytes -= size_bytes


def send_zeros(
    connections: Sequence[socket.socket],
    *,
    duration_s: float,
    max_mbps: float,
    stopping: threading.Event | None,
) -> float:
    """Send until the receiver closes the connections; return the fraction of the CPU used.

    Raises:
        ProbeError: the receiver goes on for too long, or somebody asked to stop.
        OSError: the network is gone.
    """
    cpu = CpuWatch()
    end_s = time.monotonic() + duration_s + _GRACE_S
    bucket = Bucket(max_mbps=max_mbps, duration_s=duration_s, now_s=time.monotonic())
    ready = _poll(connections, select.POLLOUT)
    zeros = os.memfd_create("probe", os.MFD_CLOEXEC)
    try:
        os.ftruncate(zeros, _BLOCK_BYTES)
        while time.monotonic() < end_s:
            _check(stopping)
            writable = [fd for fd, _ in ready.poll(1000 * _WAIT_S)]
            _send_some(writable, bucket, zeros)
    except (BrokenPipeError, ConnectionResetError):
        return cpu.used_fraction()
    finally:
        os.close(zeros)
    raise ProbeError("the receiving host did not end the transfer")


def _send_some(writable: Sequence[int], bucket: Bucket, zeros: int) -> None:
    """Send what is allowed and fits, the same on each connection."""
    allowed = bucket.allowed_bytes(time.monotonic())
    if not allowed:
        time.sleep(min(bucket.wait_s(), _WAIT_S))
        return
    for fd in writable:
        share = max(1, min(allowed // len(writable), _BLOCK_BYTES))
        with contextlib.suppress(BlockingIOError):
            bucket.take(os.sendfile(fd, zeros, 0, share))


def count_zeros(
    connections: Sequence[socket.socket], *, duration_s: float, stopping: threading.Event | None
) -> tuple[float, float]:
    """Return the rate at which bytes arrive in mbps, and the fraction of the CPU used.

    Raises:
        ProbeError: the sender ended too early or sent nothing, or somebody asked to stop.
    """
    cpu = CpuWatch()
    start_s = time.monotonic()
    with mmap.mmap(-1, _BLOCK_BYTES) as unused:  # never written to, so it takes no memory
        mark_s = start_s + _SLOW_START_FRACTION * duration_s
        _count_until(mark_s, connections, unused, stopping)
        mark_s = time.monotonic()
        size_bytes = _count_until(start_s + duration_s, connections, unused, stopping)
        wall_s = time.monotonic() - mark_s
    if not size_bytes:
        raise ProbeError(f"nothing arrived in {duration_s:g} s")
    return size_bytes / _BYTES_PER_S / wall_s, cpu.used_fraction()


def _count_until(
    end_s: float,
    connections: Sequence[socket.socket],
    unused: mmap.mmap,
    stopping: threading.Event | None,
) -> int:
    count = 0
    ready = _poll(connections, select.POLLIN)
    while (left_s := end_s - time.monotonic()) > 0:
        _check(stopping)
        ready.poll(1000 * min(left_s, _WAIT_S))
        for connection in connections:
            count += _drop_some(connection, unused)
        time.sleep(_GATHER_S)
    return count


def _drop_some(connection: socket.socket, unused: mmap.mmap) -> int:
    try:
        size = connection.recv_into(unused, _BLOCK_BYTES, socket.MSG_TRUNC)
    except BlockingIOError:
        return 0
    except OSError as error:
        raise ProbeError(f"the sending host is gone: {error.strerror}") from error
    if not size:
        raise ProbeError("the sending host ended the transfer early")
    return size


def _poll(connections: Sequence[socket.socket], event: int) -> select.poll:
    ready = select.poll()
    for connection in connections:
        ready.register(connection, event)
    return ready


def _check(stopping: threading.Event | None) -> None:
    if stopping is not None and stopping.is_set():
        raise ProbeError("stopped before the end")
