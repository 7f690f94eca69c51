"""A worker process: takes tasks from a socket, one at a time, and gives back what comes of them.

    python -m spotwright.adapters.processes.worker FD MODULE:FUNCTION NICENESS

FUNCTION makes the handler, having imported and read all that a first task would otherwise wait for.
The process ends when the one that started it ends, whatever it is working on.
"""

import ctypes
import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module

from spotwright.adapters.processes.frames import HEAD_BYTES, Frame, Kind, decode_head, encode

_PR_SET_PDEATHSIG = 1


class Control:
    """How long a task may take, and whether anybody still wants it."""

    def __init__(self, ends_s: float, *, told_to_stop: Callable[[], bool] = lambda: False) -> None:
        """Set when the answer is due, by the monotonic clock, and who says that nobody waits."""
        self._ends_s, self._told_to_stop, self._stopped = ends_s, told_to_stop, False

    @property
    def left_s(self) -> float:
        """Seconds until the answer is due."""
        return self._ends_s - time.monotonic()

    @property
    def stopped(self) -> bool:
        """Nobody waits for the answer any more."""
        self._stopped = self._stopped or self._told_to_stop()
        return self._stopped


Handler = Callable[[str, bytes, Control], bytes]


def main() -> None:
    """Work until the pool is gone."""
    descriptor, target, niceness = sys.argv[1:]
    _end_with_parent()
    os.nice(int(niceness))
    with socket.socket(fileno=int(descriptor)) as pool:
        handler = _handler(target)
        gc.freeze()  # what is loaded now stays: full collections need not look at it
        with suppress(BrokenPipeError, ConnectionResetError):  # the pool is gone: nobody waits
            pool.sendall(encode(Frame(Kind.READY)))
            _work(pool, handler)


def _end_with_parent() -> None:
    """Leave Ctrl-C and termination to the pool, which lets tasks end; die with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _handler(target: str) -> Handler:
    module, _, function = target.partition(":")
    handler: Handler = getattr(import_module(module), function)()
    return handler


def _work(pool: socket.socket, handler: Handler) -> None:
    while (frame := _received(pool)) is not None:
        if frame.kind is Kind.TASK:  # else it would stop one that has ended
            stopping = partial(_told_to_stop, pool, frame.task)
            control = Control(frame.ends_s, told_to_stop=stopping)
            payload = handler(frame.name, frame.payload, control)
            pool.sendall(encode(Frame(Kind.DONE, frame.task, payload=payload)))


def _told_to_stop(pool: socket.socket, task: int) -> bool:
    """Look at the socket: a thread that listened would have to be woken for each task, too."""
    while select.select([pool], [], [], 0.0)[0]:
        frame = _received(pool)
        if frame is None or frame.task == task:
            return True
    return False


def _received(pool: socket.socket) -> Frame | None:
    """Return the next thing that the pool says; None when it is gone."""
    head = _read(pool, HEAD_BYTES)
    if len(head) < HEAD_BYTES:
        return None
    parsed = decode_head(head)
    return parsed.frame(_read(pool, parsed.name_bytes + parsed.payload_bytes))


def _read(pool: socket.socket, byte_count: int) -> bytes:
    """Read so many bytes, or fewer where the pool is gone."""
    parts: list[bytes] = []
    while byte_count > 0 and (part := pool.recv(byte_count)):
        parts.append(part)
        byte_count -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    main()
