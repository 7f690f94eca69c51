"""One worker process as the event loop sees it."""

import asyncio
import contextlib
import itertools
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping
from typing import Any, Self

from spotwright.adapters.processes.frames import HEAD_BYTES, Frame, Kind, decode_head, encode
from spotwright.domain.errors import WorkerDiedError

_END_TIME_S = 2.0  # for a process whose socket was closed
_tasks = itertools.count(1)


class Worker:
    """A process that works on one task at a time.

    Attributes:
        ready: done once it can work; WorkerDiedError where it never could.
        gone: done once the process has ended.
    """

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self.gone = asyncio.create_task(self._listen())

    @classmethod
    async def start(
        cls, target: str, *, niceness: int, environment: Mapping[str, str] | None
    ) -> Self:
        """Start a process; it gets ready by itself."""
        ours, theirs = socket.socketpair()
        arguments = (str(theirs.fileno()), target, str(niceness))
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "spotwright.adapters.processes.worker", *arguments),
                stdin=DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=None if environment is None else {**os.environ, **environment},
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        return cls(process, *await asyncio.open_connection(sock=ours))

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def send(self, name: str, payload: bytes, *, ends_s: float) -> "Task":
        """Give it something to do."""
        number = next(_tasks)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._writer.write(encode(Frame(Kind.TASK, number, ends_s, name, payload)))
        return Task(self, number, answer)

    def tell_to_stop(self, task: int) -> None:
        """Ask it to end a task early."""
        self._writer.write(encode(Frame(Kind.STOP, task)))

    def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """End the process, at once if it does not by itself."""
        self._writer.close()
        try:
            await asyncio.wait_for(asyncio.shield(self.gone), _END_TIME_S)
        except TimeoutError:
            self.kill()
            await self.gone

    async def _listen(self) -> None:
        """Take what it says until it is gone."""
        try:
            while True:
                head = decode_head(await self._reader.readexactly(HEAD_BYTES))
                body = await self._reader.readexactly(head.name_bytes + head.payload_bytes)
                self._heard(head.frame(body))
        except (asyncio.IncompleteReadError, OSError):
            self._writer.close()
            code = await self._process.wait()
            self._lost(WorkerDiedError(f"the worker that worked on this died ({_ending(code)})"))

    def _heard(self, frame: Frame) -> None:
        if frame.kind is Kind.READY:
            self.ready.set_result(None)
            return
        answer = self._answers.pop(frame.task)
        if not answer.done():
            answer.set_result(frame.payload)

    def _lost(self, error: WorkerDiedError) -> None:
        everyone: list[asyncio.Future[Any]] = [self.ready, *self._answers.values()]
        for waiting in everyone:
            if not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # nobody may be left to hear of it


class Task:
    """Something that a worker is at.

    Attributes:
        answer: what comes of it; WorkerDiedError where the process dies.
    """

    def __init__(self, worker: Worker, number: int, answer: "asyncio.Future[bytes]") -> None:
        self._worker, self._number, self.answer = worker, number, answer

    async def stop(self, *, within_s: float) -> None:
        """End it early; kill the process where that takes longer."""
        self._worker.tell_to_stop(self._number)
        done, _ = await asyncio.wait([self.answer], timeout=within_s)
        if not done:
            self._worker.kill()


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
