"""How long a probe waits: until a moment, and not after somebody asked to stop."""

import contextlib
import select
import socket
import threading
import time

from spotwright_agent.probe.errors import ProbeError

_SLICE_S = 0.1  # so soon is a wish to stop noticed


class Patience:
    """Waits for sockets, but no longer than until its end."""

    def __init__(
        self, seconds: float, *, waits_for: str, stopping: threading.Event | None = None
    ) -> None:
        self._end_s = time.monotonic() + seconds
        self._waits_for = waits_for
        self._stopping = stopping

    def left_s(self) -> float:
        """Return the seconds to the end, or to the next look at whether to stop.

        Raises:
            ProbeError: the end is there, or somebody asked to stop.
        """
        if self._stopping is not None and self._stopping.is_set():
            raise ProbeError("stopped before the end")
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise ProbeError(f"waited too long for {self._waits_for}")
        return min(left_s, _SLICE_S)

    def receive(self, connection: socket.socket, size: int) -> bytes:
        """Return up to `size` bytes; empty when the other end closed."""
        while True:
            self._wait(connection, select.POLLIN)
            with contextlib.suppress(BlockingIOError):
                return connection.recv(size)

    def send(self, connection: socket.socket, data: bytes) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            self._wait(connection, select.POLLOUT)
            with contextlib.suppress(BlockingIOError):
                rest = rest[connection.send(rest) :]

    def _wait(self, connection: socket.socket, event: int) -> None:
        ready = select.poll()
        ready.register(connection, event)
        while not ready.poll(1000 * self.left_s()):
            pass
