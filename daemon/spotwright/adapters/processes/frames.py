"""What a pool and its workers say to each other over a socket."""

import struct
from enum import IntEnum
from typing import NamedTuple

_HEAD = struct.Struct("!BQdHI")  # kind, task, ends_s, bytes of the name, bytes of the payload
HEAD_BYTES = _HEAD.size


class Kind(IntEnum):
    """What a frame means."""

    READY = 1  # from a worker, once: it has imported all that it needs
    TASK = 2  # to a worker: work on this
    STOP = 3  # to a worker: end the task early
    DONE = 4  # from a worker: what came of a task


class Frame(NamedTuple):
    """One thing said."""

    kind: Kind
    task: int = 0  # counts up
    ends_s: float = 0.0  # of a task: when its answer is due, by the monotonic clock
    name: str = ""  # of a task: what to do
    payload: bytes = b""


class Head(NamedTuple):
    """What a frame begins with."""

    kind: Kind
    task: int
    ends_s: float
    name_bytes: int
    payload_bytes: int

    def frame(self, body: bytes) -> Frame:
        """Return the frame that has this head."""
        name, payload = body[: self.name_bytes].decode(), body[self.name_bytes :]
        return Frame(self.kind, self.task, self.ends_s, name, payload)


def encode(frame: Frame) -> bytes:
    """Return a frame as bytes."""
    name = frame.name.encode()
    head = _HEAD.pack(frame.kind, frame.task, frame.ends_s, len(name), len(frame.payload))
    return head + name + frame.payload


def decode_head(data: bytes) -> Head:
    """Read the head of a frame."""
    kind, task, ends_s, name_bytes, payload_bytes = _HEAD.unpack(data)
    return Head(Kind(kind), task, ends_s, name_bytes, payload_bytes)
