"""Frames between workers and servers: a header of fixed size, a note in JSON, raw tensor bytes.

    magic 4 | protocol 2 | kind 1 | flags 1 | sequence 8 | version 8 | batch 4 | staleness 4
    | loss 8 | note bytes 4 | body bytes 8                                     (network order)

Tensors travel as they lie in memory, in the byte order of the hosts, which is checked to be little.
Whoever reads says how large note and body may be, so that a foreign header makes nobody wait for,
or make room for, bytes that it merely announces. Nothing is ever unpickled.
"""

import json
import socket
import ssl
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any

from spotwright.domain.errors import PeerRefusedError

PROTOCOL = 1
MAGIC = b"SPWT"
NOTE_MAX_BYTES = 64 * 1024
HELLO_MAX_BYTES = 16 * 1024 * 1024  # names and shapes of a model's tensors
_HEADER = struct.Struct("!4sHBBQQIIdIQ")
_NOTE_AT_ONCE_BYTES = 64 * 1024  # what a note's size alone makes room for
_SEND_AT_ONCE = 512  # buffers of one sendmsg; the kernel takes 1024


class FrameKind(IntEnum):
    """What a frame says."""

    HELLO = 1  # worker: who I am and what my model is
    WELCOME = 2  # server: what I hold, all of it
    JOIN = 3  # worker: I am going to push
    PULL = 4  # worker: how are the parameters?  With the version that server 0 told, or 0
    PUSH = 5  # worker: a gradient
    UPDATED = 6  # server: the parameters after it; also the answer to JOIN and PULL
    LEAVE = 7  # worker: I have pushed my last
    REFUSED = 8  # server: not you, and why
    FETCH = 10  # a node that lacks an item of the data asks its owner
    ITEM = 11  # the owner's answer
    STATUS = 9  # anybody: how far are you?  The answer has the same kind


class Flag(IntFlag):
    """What an UPDATED says beside its parameters, and a LEAVE about training."""

    NONE = 0
    APPLIED = 1  # the gradient counts: now, or when it was pushed before
    OVER = 2  # training has reached its last step


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message; its body is where the reader wanted it."""

    kind: FrameKind
    flags: Flag = Flag.NONE
    sequence: int = 0  # of a worker's pushes, from 1
    version: int = 0  # of a server's parameters: updates so far
    batch: int = 0
    staleness: int = 0  # versions between what the gradient was computed on and what it changed
    loss: float = 0.0
    note: Mapping[str, Any] = field(default_factory=dict)
    body_bytes: int = 0


_KINDS = frozenset(int(kind) for kind in FrameKind)
_FLAGS = sum(int(flag) for flag in Flag)


class ConnectionLostError(OSError):
    """The peer is gone, or the connection to it."""


class Wire:
    """A connected socket that sends and receives frames."""

    def __init__(self, connection: socket.socket) -> None:
        if sys.byteorder != "little":
            raise PeerRefusedError("this host is big-endian, which tensors on the wire are not")
        self._socket = connection
        self._header = bytearray(_HEADER.size)
        self._is_closed = False
        self._ends_s: float | None = None  # of a wait that several calls share
        # One call for all of a body, and one for several buffers; TLS has neither.
        self._is_plain = type(connection) is socket.socket
        self._receive_flags = socket.MSG_WAITALL if self._is_plain else 0

    def send(self, frame: Frame, body: Sequence[memoryview] = ()) -> None:
        """Send a frame and, as it lies in memory, its body."""
        note = json.dumps(frame.note, separators=(",", ":")).encode() if frame.note else b""
        header = _HEADER.pack(
            MAGIC, PROTOCOL, frame.kind, frame.flags, frame.sequence, frame.version, frame.batch,
            frame.staleness, frame.loss, len(note), sum(part.nbytes for part in body),
        )  # fmt: skip
        self._send_all([memoryview(header + note), *body])

    def refuse(self, reason: str, problem: str) -> None:
        """Tell the peer why it is not served."""
        self.send(Frame(kind=FrameKind.REFUSED, note={"reason": reason, "problem": problem}))

    def receive_head(self, *, note_max_bytes: int = NOTE_MAX_BYTES) -> Frame:
        """Receive a frame up to its body, which must be received next.

        Raises:
            PeerRefusedError: what arrives is no frame, or larger than it may be.
            ConnectionLostError: nothing arrives any more.
        """
        self._fill(memoryview(self._header))
        (
            magic, protocol, kind, flags, sequence, version, batch,
            staleness, loss, note_bytes, body_bytes,
        ) = _HEADER.unpack(self._header)  # fmt: skip
        if magic != MAGIC:
            raise PeerRefusedError(f"the peer does not speak this protocol (it began {magic!r})")
        if protocol != PROTOCOL:
            raise PeerRefusedError(
                f"the peer speaks version {protocol} of the protocol, this is version {PROTOCOL}; "
                "install the same spotwright on all hosts"
            )
        if kind not in _KINDS or flags & ~_FLAGS:
            raise PeerRefusedError(f"the peer sent a frame of no known kind ({kind}, {flags})")
        if note_bytes > note_max_bytes:
            raise PeerRefusedError(f"a note of {note_bytes} bytes; {note_max_bytes} are allowed")
        return Frame(
            kind=FrameKind(kind), flags=Flag(flags), sequence=sequence, version=version,
            batch=batch, staleness=staleness, loss=loss, note=self._note(note_bytes),
            body_bytes=body_bytes,
        )  # fmt: skip

    def receive_body(self, frame: Frame, parts: Sequence[memoryview] = ()) -> None:
        """Receive a frame's body into memory that is exactly as large.

        Raises:
            PeerRefusedError: it has another size.
            ConnectionLostError: not all of it arrives.
        """
        expected = sum(part.nbytes for part in parts)
        if frame.body_bytes != expected:
            raise PeerRefusedError(
                f"a {frame.kind.name} frame of {frame.body_bytes} bytes; {expected} are expected"
            )
        for part in parts:
            self._fill(part)

    def close(self) -> None:
        """End the connection; whoever waits in it is told."""
        self._is_closed = True
        with suppress(OSError):  # it has ended already
            # Not SSLSocket's: that drops the cipher first, and another thread that sends or
            # receives here would go on in the clear.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self._socket.close()

    def set_timeout(self, seconds: float | None) -> None:
        """Wait no longer than this in each call; None: as long as the peer is there."""
        self._ends_s = None
        self._set_timeout(seconds)

    def set_deadline(self, seconds: float) -> None:
        """Receive for no longer than this in all, however often a few bytes arrive."""
        self._ends_s = time.monotonic() + seconds

    def _note(self, size: int) -> Mapping[str, Any]:
        if not size:
            return {}
        text = bytearray()
        while len(text) < size:
            part = bytearray(min(_NOTE_AT_ONCE_BYTES, size - len(text)))
            self._fill(memoryview(part))
            text += part
        try:
            note = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PeerRefusedError(f"a note that is not JSON: {error}") from None
        if not isinstance(note, dict):
            raise PeerRefusedError("a note that is no JSON object")
        return note

    def _wait_until(self, end_s: float) -> None:
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            raise ConnectionLostError("the peer took too long to say what it had begun to")
        self._set_timeout(left_s)

    def _set_timeout(self, seconds: float | None) -> None:
        try:
            self._socket.settimeout(seconds)
        except OSError as error:
            raise ConnectionLostError(f"the connection was ended: {error}") from error

    def _fill(self, memory: memoryview) -> None:
        while memory.nbytes:
            if self._ends_s is not None:
                self._wait_until(self._ends_s)
            try:
                count = self._socket.recv_into(memory, 0, self._receive_flags)
            except OSError as error:
                raise _broken(error) from error
            if not count or self._is_closed:
                raise ConnectionLostError("the peer ended the connection")
            memory = memory[count:]

    def _send_all(self, parts: Sequence[memoryview]) -> None:
        try:
            if not self._is_plain:
                for part in parts:
                    self._socket.sendall(part)
                return
            left = [part for part in parts if part.nbytes]
            while left:
                sent = self._socket.sendmsg(left[:_SEND_AT_ONCE])
                left = _unsent(left, sent)
        except OSError as error:
            raise _broken(error) from error


def _broken(error: OSError) -> Exception:
    """Return what a failed call means: a peer that refuses our certificate says so only now."""
    lost = ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError
    if isinstance(error, ssl.SSLError) and not isinstance(error, lost):
        reason = (error.reason or str(error)).lower().replace("_", " ")
        return PeerRefusedError(f"the peer refuses this host: {reason}")
    return ConnectionLostError(f"the connection broke: {error}")


def _unsent(parts: Sequence[memoryview], sent: int) -> list[memoryview]:
    for index, part in enumerate(parts):
        if sent < part.nbytes:
            return [part[sent:], *parts[index + 1 :]]
        sent -= part.nbytes
    return []
