"""The way to the agent: a datagram socket that never waits.

Lines that cannot go out now, because the agent's queue is full (Linux holds 10 datagrams) or the
agent restarts, are kept, the newest of them, and go out together with a later one. The socket has
a name that Linux chooses, so that the agent can answer, and is connected, so that nobody else can.
There is no lock: a signal handler or another thread may come in between at any point.
"""

import errno
import fcntl
import json
import os
import select
import signal
import socket
import time
from collections import deque
from contextlib import suppress

MAX_KEPT_LINES = 1_024
# Eleven of these fit into the usual send buffer. If they did not, room in it would raise the signal
# that is meant for warnings.
_MAX_DATAGRAM_BYTES = 16 * 1024
_RECONNECT_S, _FULL_PAUSE_S, _CLOSE_S = 1.0, 0.002, 0.5
_GONE = (errno.ECONNREFUSED, errno.ENOENT, errno.ENOTCONN, errno.ECONNRESET, errno.EBADF)


class AgentLink:
    """Sends lines to the agent at a path, and takes its answers."""

    def __init__(self, path: str, *, rank: int, signal_number: int | None) -> None:
        self.path, self._rank, self._signal = path, rank, signal_number
        self.dropped, self.problem = 0, ""
        self._kept: deque[bytes] = deque()
        self._socket: socket.socket | None = None
        self._greeted = self._closed = False
        self._pid, self._next_try_s = os.getpid(), 0.0
        self.flush()

    def send(self, line: bytes) -> None:
        """Send a line now, or keep it for later."""
        self._leave_parent()
        if self._closed:
            self.dropped += 1
            return
        self._kept.append(line)
        self.flush()
        while len(self._kept) > MAX_KEPT_LINES:
            self._kept.popleft()
            self.dropped += 1

    def flush(self) -> bool:
        """Send one datagram of what waits, unless it is too soon to try again."""
        now_s = time.monotonic()
        if now_s < self._next_try_s or (self._socket is None and not self._connect(now_s)):
            return False
        lines, payload = self._take()
        try:
            self._socket.send(payload)  # type: ignore[union-attr]
        except (OSError, AttributeError) as error:  # the latter: closed by another thread
            self._kept.extendleft(reversed(lines))
            self._stumble(error, now_s)
            return False
        self._greeted, self.problem = True, ""
        return True

    def receive(self) -> bytes | None:
        """Return one answer of the agent; None: there is none."""
        self._leave_parent()
        if self._socket is None:
            return None
        try:
            return self._socket.recv(65_536)
        except (OSError, AttributeError):
            return None

    def fileno(self) -> int:
        """Return what to poll for answers; -1: there is no socket."""
        return -1 if self._socket is None else self._socket.fileno()

    def close(self) -> None:
        """Send what waits, and close. A full queue gets a moment: the agent may only be busy."""
        self._leave_parent()
        self._closed, self._next_try_s = True, 0.0
        deadline_s = time.monotonic() + _CLOSE_S
        while self._kept and (self.flush() or self._waits_for_room(deadline_s)):
            pass
        self.dropped += len(self._kept)
        self._kept.clear()
        self._disconnect()

    def _waits_for_room(self, deadline_s: float) -> bool:
        """Wait until the agent takes more; False: it is gone, or time is up."""
        left_s = deadline_s - time.monotonic()
        if self._socket is None or left_s <= 0:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        self._next_try_s = 0.0
        return bool(poll.poll(left_s * 1000))

    def _take(self) -> tuple[list[bytes], bytes]:
        lines: list[bytes] = []
        size = 0
        with suppress(IndexError):  # another thread may take the last one
            while self._kept and size + len(self._kept[0]) <= _MAX_DATAGRAM_BYTES:
                lines.append(self._kept.popleft())
                size += len(lines[-1])
        payload = b"".join(lines)
        return lines, payload if self._greeted else self._hello() + payload

    def _hello(self) -> bytes:
        hello = {"hello": 1, "rank": self._rank, "pid": self._pid}
        return json.dumps(hello, separators=(",", ":")).encode() + b"\n"

    def _stumble(self, error: Exception, now_s: float) -> None:
        number = getattr(error, "errno", None) or errno.EBADF
        if number in _GONE:
            self._disconnect()
            self._next_try_s = now_s + _RECONNECT_S
        else:
            self._next_try_s = now_s + _FULL_PAUSE_S
        self.problem = f"{self.path}: {os.strerror(number)}"

    def _connect(self, now_s: float) -> bool:
        self._next_try_s = now_s + _RECONNECT_S
        found = None
        try:
            found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            found.setblocking(False)
            found.bind("")
            found.connect(self.path)
        except (OSError, ValueError, TypeError) as error:
            if found is not None:
                found.close()
            self.problem = f"{self.path}: {getattr(error, 'strerror', None) or error}"
            return False
        self._arm(found)
        self._socket, self._greeted, self._next_try_s = found, False, 0.0
        return True

    def _arm(self, found: socket.socket) -> None:
        """Have the kernel raise the signal when an answer comes.

        Not where nobody handles it: most signals would then end the training process.
        """
        if self._signal is None:
            return
        try:
            if signal.getsignal(self._signal) in (signal.SIG_DFL, signal.SIG_IGN):
                self._signal = None
                return
            fcntl.fcntl(found, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(found, fcntl.F_SETSIG, self._signal)
            flags = fcntl.fcntl(found, fcntl.F_GETFL)
            fcntl.fcntl(found, fcntl.F_SETFL, flags | os.O_ASYNC)
        except (OSError, ValueError, TypeError, OverflowError):
            self._signal = None

    @property
    def signals(self) -> bool:
        """Whether a warning raises the signal."""
        return self._signal is not None

    def _disconnect(self) -> None:
        found, self._socket, self._greeted = self._socket, None, False
        if found is not None:
            found.close()

    def _leave_parent(self) -> None:
        """Start anew in a forked process: the socket and what waits are its parent's."""
        if os.getpid() == self._pid:
            return
        self._pid = os.getpid()
        self._kept, self.dropped = deque(), 0
        self._next_try_s = 0.0
        self._disconnect()
