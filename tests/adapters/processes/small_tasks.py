"""Tasks for worker processes under test."""

import os
import time

from spotwright.adapters.processes.worker import Control, Handler


def open_tasks() -> Handler:
    return handle


def fail_to_open() -> Handler:
    raise ImportError("nothing works here")


def handle(name: str, payload: bytes, control: Control) -> bytes:
    match name:
        case "echo":
            return payload
        case "pid":
            return str(os.getpid()).encode()
        case "die":
            os._exit(3)
        case "left":
            return repr(control.left_s).encode()
        case "search":  # as a planner does: looks at the flag again and again
            while not control.stopped and control.left_s > 0:
                time.sleep(0.001)
            return b"stopped" if control.stopped else b"time is up"
        case "deaf":
            time.sleep(60)
        case "nice":
            return str(os.nice(0)).encode()
    raise ValueError(name)
