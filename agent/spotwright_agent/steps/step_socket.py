"""The socket that training processes report their steps to, and are warned through.

One JSON object a line, several lines a datagram; docs/training-steps.md has the fields. Anybody on
the host may send: what is not a step is counted and dropped, and so is what a user sends beyond his
share of a fixed number of lines a second. It is still taken from the queue, which all users share.
"""

import os
import select
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from spotwright_agent.readings import StepReading
from spotwright_agent.steps.budget import LineBudget
from spotwright_agent.steps.lines import LineError, read_line
from spotwright_agent.steps.senders import Credentials, StepSenders

_LINE_BYTES = 256  # longer lines count for several
_MAX_DATAGRAM_BYTES = 65_536
_RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
_CREDENTIALS = struct.Struct("iii")
# Room for credentials and nothing else: files that somebody sends along are not taken.
_ANCILLARY_BYTES = socket.CMSG_SPACE(_CREDENTIALS.size)
_WAIT_MS, _RETRY_S, _LOOK_S = 1_000, 5.0, 10.0
# A flood costs the agent little, and still the queue of ten is emptied 500 times a second.
_REFUSED_AT_ONCE, _FLOOD_PAUSE_S = 10, 0.002
_NOBODY = -1


class StepSocket:
    """Takes steps from the training processes of this host, and warns them."""

    def __init__(
        self,
        path: Path,
        *,
        on_step: Callable[[StepReading], None],
        standing: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        """Remember what to do; `run` opens the socket.

        Args:
            path: where the socket is.
            on_step: gets each step, in the thread of `run`. Must not wait.
            standing: the warning that holds now, for those who come later.
        """
        self._path, self._on_step, self._standing = path, on_step, standing
        self._senders = StepSenders()
        self._socket: socket.socket | None = None
        self._inode = 0
        self._budget, self._refused_count = LineBudget(), 0
        self.problem = ""
        self.step_count = self.dropped_count = 0

    def run(self, stopping: threading.Event) -> None:
        """Take steps until told to stop; `problem` says why it cannot."""
        while not stopping.is_set():
            try:
                self._open()
                self.problem = ""
                self._receive(stopping)
            except OSError as error:
                self.problem = f"{self._path}: {error.strerror or error}"
                stopping.wait(_RETRY_S)
            finally:
                self._close()

    def send(self, document: bytes) -> int:
        """Send a document to every reporter, from any thread; return how many took it."""
        return sum(self._send_to(address, document) for address in self._senders.addresses())

    def pids(self) -> frozenset[int]:
        """Return the processes that report steps, by the kernel's word."""
        return self._senders.pids(now_s=time.monotonic())

    def signal(self, number: int) -> dict[int, str]:
        """Signal them; return by process why that failed, empty where it did not."""
        return self._senders.signal(number, now_s=time.monotonic())

    def _open(self) -> None:
        """Bind beside the path and move there, so that reporters never find nothing."""
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _refuse_other_files(self._path)
        own = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        own.unlink(missing_ok=True)
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            opened.setblocking(False)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
            opened.bind(str(own))
            own.chmod(0o666)
            self._inode = own.stat().st_ino
            own.replace(self._path)
        except BaseException:
            opened.close()
            own.unlink(missing_ok=True)
            raise
        self._socket = opened

    def _close(self) -> None:
        closing, self._socket = self._socket, None
        if closing is None:
            return
        closing.close()
        with suppress(OSError):
            if self._path.stat().st_ino == self._inode:  # not another agent's
                self._path.unlink()

    def _receive(self, stopping: threading.Event) -> None:
        assert self._socket is not None
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        look_at_s = time.monotonic() + _LOOK_S
        while not stopping.is_set():
            if time.monotonic() >= look_at_s:
                look_at_s = time.monotonic() + _LOOK_S
                if not self._is_in_place():
                    return
            if poll.poll(_WAIT_MS):
                self._take(self._socket, stopping)

    def _is_in_place(self) -> bool:
        """Tell whether reporters still find this socket; one of another agent is left to it."""
        try:
            mine = self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False
        self.problem = "" if mine else f"{self._path}: another process listens there by now"
        return True

    def _take(self, source: socket.socket, stopping: threading.Event) -> None:
        """Take one datagram, and as many of its lines as its user has left in this second."""
        try:
            payload, ancillary, flags, address = source.recvmsg(
                _MAX_DATAGRAM_BYTES, _ANCILLARY_BYTES
            )
        except BlockingIOError:
            return
        credentials = _credentials(ancillary)
        line_count = payload.count(b"\n", 0, -1) + 1
        granted = self._budget.take(
            credentials.uid if credentials is not None else _NOBODY,
            max(line_count, len(payload) // _LINE_BYTES),
            now_s=time.monotonic(),
        )
        if granted == 0:
            self._refuse(line_count, stopping)
            return
        lines = payload.splitlines()
        if flags & socket.MSG_TRUNC and lines:
            lines.pop()  # it is cut
            self.dropped_count += 1
        self.dropped_count += max(0, len(lines) - granted)
        self._read(lines[:granted], credentials, address if isinstance(address, bytes) else None)

    def _refuse(self, line_count: int, stopping: threading.Event) -> None:
        self.dropped_count += line_count
        self._refused_count += 1
        if self._refused_count % _REFUSED_AT_ONCE == 0:
            stopping.wait(_FLOOD_PAUSE_S)

    def _read(
        self, lines: list[bytes], credentials: Credentials | None, address: bytes | None
    ) -> None:
        now_unix_ms = int(time.time() * 1000)
        usable = greeted = False
        for line in lines:
            try:
                step = read_line(line, now_unix_ms=now_unix_ms)
            except LineError:
                self.dropped_count += 1
                continue
            usable, greeted = True, greeted or step is None
            if step is not None:
                self.step_count += 1
                self._on_step(step)
        if usable and credentials is not None:
            self._senders.see(credentials, address or None, now_s=time.monotonic())
        if greeted and address and (document := self._standing()):
            self._send_to(address, document)

    def _send_to(self, address: bytes, document: bytes) -> bool:
        sender = self._socket
        if sender is None:
            return False
        try:
            sender.sendto(document, address)
        except (ConnectionRefusedError, FileNotFoundError, PermissionError):
            self._senders.forget(address)  # closed, or reports to somebody else
        except OSError:
            return False  # it does not read: the warnings that it has will do
        else:
            return True
        return False


def _refuse_other_files(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(17, "there is a file that is not a socket; remove it")


def _credentials(ancillary: list[tuple[int, int, bytes]]) -> Credentials | None:
    for level, kind, told in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            pid, uid, _ = _CREDENTIALS.unpack(told[: _CREDENTIALS.size])
            return Credentials(pid, uid)
    return None
