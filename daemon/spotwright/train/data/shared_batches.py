"""Batches prepared once for all workers of a host, passed on through shared memory.

One process reads, decodes and augments; each worker sees every batch once, as tensors in memory
that all of them map. A batch stays until every worker that is connected has gone on to the next.
The memory has no name in the file system: it is gone with the last process that has it.
"""

import contextlib
import json
import mmap
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spotwright.domain.errors import BatchError, OutsideWorldError
from spotwright.train.layout import bytes_of, dtype_name, dtype_of
from spotwright.train.listener import Listener

_ALIGNMENT_BYTES = 64
_NEXT = b"n"


class BatchPreparer:
    """Prepares batches for the workers that connect to a socket of this host."""

    def __init__(self, path: Path, *, slots: int = 4, slot_bytes: int = 64 << 20) -> None:
        """Listen.

        Args:
            path: of a Unix socket, which is made.
            slots: batches that may be ahead of the slowest worker.
            slot_bytes: the largest batch.
        """
        self._path, self._slots, self._slot_bytes = path, slots, slot_bytes
        self._memory_number = os.memfd_create("spotwright-batches")
        os.ftruncate(self._memory_number, slots * slot_bytes)
        self._memory = mmap.mmap(self._memory_number, slots * slot_bytes)
        self._changed = threading.Condition()
        self._described: dict[int, str] = {}  # batches that are in their slots
        self._made, self._has_ended = 0, False
        self._is_closed = False
        # The batch that each worker has or waits for. By connection: file numbers come again.
        self._positions: dict[socket.socket, int] = {}
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        listening.listen()
        self._listener = Listener(listening, self._serve)

    @property
    def prepared(self) -> int:
        """Batches made so far."""
        return self._made

    def run(self, batches: Iterable[Sequence[Tensor]], *, workers: int = 1) -> None:
        """Prepare batches until there are no more, once so many workers are there.

        Raises:
            BatchError: one is larger than a slot.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._positions) >= workers)
        for batch in batches:
            self._add(batch)
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._positions)

    def close(self) -> None:
        """Let nobody connect any more; a worker that waits for a batch is told that it is gone."""
        self._listener.close()
        self._path.unlink(missing_ok=True)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            for connection in self._positions:
                with contextlib.suppress(OSError):  # it has ended already
                    connection.shutdown(socket.SHUT_RDWR)
        self._listener.join()
        with contextlib.suppress(BufferError):  # a batch is still looked at in this process
            self._memory.close()
        os.close(self._memory_number)

    def _add(self, batch: Sequence[Tensor]) -> None:
        """Prepare a batch in the slot of the oldest, which nobody looks at any more."""
        number, oldest = self._made, self._made - self._slots
        with self._changed:
            self._changed.wait_for(lambda: all(at > oldest for at in self._positions.values()))
        told = self._write(batch, number % self._slots)
        with self._changed:
            self._described.pop(oldest, None)
            self._described[number] = told
            self._made = number + 1
            self._changed.notify_all()

    def _write(self, batch: Sequence[Tensor], slot: int) -> str:
        at, told = slot * self._slot_bytes, []
        for tensor in batch:
            content = bytes_of(tensor)
            if at + content.nbytes > (slot + 1) * self._slot_bytes:
                size = sum(bytes_of(one).nbytes for one in batch)
                raise BatchError(
                    f"a batch of {size} bytes does not fit into a slot of {self._slot_bytes}; "
                    "raise slot_bytes"
                )
            self._memory[at : at + content.nbytes] = content
            told.append([at, list(tensor.shape), dtype_name(tensor.dtype)])
            at = -(-(at + content.nbytes) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        return json.dumps(told)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            try:
                self._pass_on(connection)
            finally:
                with self._changed:
                    self._positions.pop(connection, None)
                    self._changed.notify_all()

    def _pass_on(self, connection: socket.socket) -> None:
        """Tell a worker of one batch after the other, until it goes or this is closed."""
        size = self._slots * self._slot_bytes
        socket.send_fds(connection, [size.to_bytes(8, "little")], [self._memory_number])
        with self._changed:
            position = self._positions[connection] = self._made
            self._changed.notify_all()
        while connection.recv(1) == _NEXT:
            told = self._wait_for(connection, position)
            if told is None:
                return
            connection.sendall(told.encode() + b"\n")
            position += 1

    def _wait_for(self, worker: socket.socket, number: int) -> str | None:
        """Return what a batch is made of; `null`: all are done; None: this is closed."""
        with self._changed:
            self._positions[worker] = number
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._made > number or self._has_ended or self._is_closed
            )
            if number in self._described:
                return self._described[number]
            return "null" if self._has_ended else None


def shared_batches(path: Path) -> Iterator[tuple[Tensor, ...]]:
    """Yield the batches that a preparer on this host makes; each is valid until the next is taken.

    Raises:
        OutsideWorldError: there is no preparer, or it died.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
            size, numbers, _, _ = socket.recv_fds(connection, 8, 1)
            memory = mmap.mmap(numbers[0], int.from_bytes(size, "little"))
        except (OSError, IndexError) as error:
            raise OutsideWorldError(f"nobody prepares batches at {path}: {error}") from error
        os.close(numbers[0])
        lines = connection.makefile("rb")
        with lines:
            while (told := _next(connection, lines, path)) is not None:
                yield tuple(
                    torch.frombuffer(memory, dtype=torch.uint8)[at : at + _size(shape, name)]
                    .view(dtype_of(name))
                    .view(shape)
                    for at, shape, name in told
                )


def _next(connection: socket.socket, lines: Any, path: Path) -> Any:
    try:
        connection.sendall(_NEXT)
        line = lines.readline()
    except OSError as error:
        raise OutsideWorldError(f"who prepared batches at {path} is gone: {error}") from error
    if not line:
        raise OutsideWorldError(f"who prepared batches at {path} is gone")
    return json.loads(line)


def _size(shape: Sequence[int], name: str) -> int:
    return torch.Size(shape).numel() * dtype_of(name).itemsize
