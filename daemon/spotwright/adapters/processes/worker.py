"""A worker process: takes tasks from a socket, one at a time, and gives back what comes of them.

    python -m spotwright.adapters.processes.worker FD MODULE:FUNCTION NICENESS

FUNCTION makes the handler, having imported and read all that a first task would otherwise wait for.
The process ends when the other side of its socket is gone, whatever it is working on.
"""

import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue

from spotwright.adapters.processes.frames import HEAD_BYTES, Frame, Kind, decode_head, encode

_PR_SET_PDEATHSIG = 1


class Control:
    """How long a task may take, and whether anybody still wants it."""

    def __init__(self, ends_s: float) -> None:
        """Set when the answer is due, by the monotonic clock."""
        self._ends_s, self._stopped = ends_s, threading.Event()

    @property
    def left_s(self) -> float:
        """Seconds until the answer is due."""
        return self._ends_s - time.monotonic()

    @property
    def stopped(self) -> bool:
        """Nobody waits for the answer any more."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Say that nobody waits."""
        self._stopped.set()


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
    tasks: SimpleQueue[tuple[Frame, Control]] = SimpleQueue()
    threading.Thread(target=_listen, args=(pool, tasks), daemon=True).start()
    while True:
        frame, control = tasks.get()
        payload = handler(frame.name, frame.payload, control)
        pool.sendall(encode(Frame(Kind.DONE, frame.task, payload=payload)))


def _listen(pool: socket.socket, tasks: "SimpleQueue[tuple[Frame, Control]]") -> None:
    """Pass tasks on, and stop the one under way when told to."""
    task, control = 0, Control(0.0)
    with pool.makefile("rb") as stream:
        while head := stream.read(HEAD_BYTES):
            if len(head) < HEAD_BYTES:
                break
            parsed = decode_head(head)
            frame = parsed.frame(stream.read(parsed.name_bytes + parsed.payload_bytes))
            if frame.kind is Kind.TASK:
                task, control = frame.task, Control(frame.ends_s)
                tasks.put((frame, control))
            elif frame.task == task:
                control.stop()
    os._exit(0)  # the pool is gone: nobody wants what the other thread is at


if __name__ == "__main__":
    main()
