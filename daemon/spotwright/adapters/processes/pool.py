"""Warm worker processes that do what would block an event loop.

Each lane has its own processes and its own line of those who wait, so that a long task in one never
delays a short one in another. A full line is an error that says when to come back.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from spotwright.adapters.processes.connection import Task, Worker
from spotwright.domain.errors import BusyError, WorkerDiedError

_log = logging.getLogger(__name__)

_STOP_TIME_S = 2.0  # for a task that nobody wants any more
_RESTART_PAUSE_S = 1.0  # after a process that could not even start
_FIRST_GUESS_S = 1.0  # of how long a task takes, before any has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Processes for tasks of one kind."""

    process_count: int
    max_waiting: int = 16
    niceness: int = 0  # above 0: others go first where processors are short


class WorkerPool:
    """Runs tasks in processes whose handler `target` makes: `MODULE:FUNCTION`."""

    def __init__(
        self,
        target: str,
        *,
        lanes: Mapping[str, Lane],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the pool; `environment` is added to that of this process."""
        self._lines = {
            name: _Line(name, lane, target=target, environment=environment)
            for name, lane in lanes.items()
        }

    async def start(self) -> None:
        """Start all processes; they get ready by themselves, and tasks wait until one is."""
        for line in self._lines.values():
            line.start()

    async def ready(self) -> None:
        """Wait until each lane has a process that can work."""
        for line in self._lines.values():
            await line.warm.wait()

    async def close(self) -> None:
        """End all processes; tasks under way fail."""
        await asyncio.gather(*(line.close() for line in self._lines.values()))

    async def run(
        self, name: str, payload: bytes, *, lane: str, time_limit_s: float = math.inf
    ) -> bytes:
        """Run a task and return what its handler does.

        When the caller is cancelled, the handler is told; a process that goes on is killed.

        Args:
            name: of the task, for the handler.
            payload: for the handler.
            lane: which processes.
            time_limit_s: until the answer is due, waiting included; the handler is told.

        Raises:
            BusyError: too many wait already, or none got ready in time.
            WorkerDiedError: the process died.
        """
        return await self._lines[lane].run(name, payload, time_limit_s=time_limit_s)

    def waiting_count(self, lane: str) -> int:
        """Return how many tasks wait for a process."""
        return self._lines[lane].waiting_count

    def running_count(self, lane: str) -> int:
        """Return how many tasks are being worked on, those that are being stopped included."""
        return self._lines[lane].running_count

    def pids(self, lane: str) -> list[int]:
        """Return the numbers of a lane's processes."""
        return self._lines[lane].pids


class _Line:
    """The processes of one lane, and who waits for them."""

    def __init__(
        self, name: str, lane: Lane, *, target: str, environment: Mapping[str, str] | None
    ) -> None:
        self._name, self._lane = name, lane
        self._target, self._environment = target, environment
        self._workers: set[Worker] = set()
        self._idle: deque[Worker] = deque()
        self._waiting: deque[asyncio.Future[Worker]] = deque()
        self._recent_s: deque[float] = deque(maxlen=32)
        self._background: set[asyncio.Task[None]] = set()
        self._starting: set[asyncio.Task[Worker]] = set()
        self._closed = False
        self.warm = asyncio.Event()

    @property
    def waiting_count(self) -> int:
        return sum(not waiting.done() for waiting in self._waiting)

    @property
    def running_count(self) -> int:
        return sum(worker.ready.done() for worker in self._workers) - len(self._idle)

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    def start(self) -> None:
        for _ in range(self._lane.process_count):
            self._do(self._keep_one())

    async def close(self) -> None:
        self._closed = True
        self._fail_waiting(WorkerDiedError("the daemon is about to end"))
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, *self._starting, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in list(self._workers)))

    async def run(self, name: str, payload: bytes, *, time_limit_s: float) -> bytes:
        ends_s = time.monotonic() + time_limit_s
        worker = await self._taken(time_limit_s)
        started_s, task = time.monotonic(), worker.send(name, payload, ends_s=ends_s)
        try:
            return await asyncio.shield(task.answer)
        except asyncio.CancelledError:
            self._do(self._stopped(task))
            raise
        finally:
            self._recent_s.append(time.monotonic() - started_s)
            task.answer.add_done_callback(lambda _: self._free(worker))

    async def _stopped(self, task: Task) -> None:
        await task.stop(within_s=_STOP_TIME_S)

    async def _taken(self, time_limit_s: float) -> Worker:
        """Return a process that is free, in the order of asking."""
        while self._idle:
            worker = self._idle.popleft()
            if not worker.gone.done():
                return worker
        if self._closed or self.waiting_count >= self._lane.max_waiting:
            raise self._busy(f"{self.waiting_count} requests wait for a planner already")
        waiting: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(None if math.isinf(time_limit_s) else time_limit_s):
                return await self._given(waiting)
        except TimeoutError:
            raise self._busy("no planner was free in time") from None

    async def _given(self, waiting: "asyncio.Future[Worker]") -> Worker:
        try:
            return await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled() and waiting.exception() is None:
                self._free(waiting.result())  # given at the same moment
            raise

    def _free(self, worker: Worker) -> None:
        """Let the next in line have a process that is done."""
        if worker.gone.done() or self._closed:
            return
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(worker)
                return
        self._idle.append(worker)

    async def _keep_one(self) -> None:
        """Keep one process alive, with another when it dies."""
        while True:
            try:
                await self._see_one_through()
            except (WorkerDiedError, OSError) as error:  # no memory, no more processes, no files
                _log.exception("a worker did not start", extra={"lane": self._name})
                self._fail_waiting(WorkerDiedError(f"no worker could be started: {error}"))
                await asyncio.sleep(_RESTART_PAUSE_S)

    async def _see_one_through(self) -> None:
        """Start a process and have it work until it is gone."""
        worker = await asyncio.shield(self._started())
        try:
            await worker.ready
            self.warm.set()
            self._free(worker)
            await asyncio.shield(worker.gone)
        finally:
            if worker.gone.done():  # else the lane is closing, and whoever closes it sees to it
                self._workers.discard(worker)
            with contextlib.suppress(ValueError):
                self._idle.remove(worker)

    def _started(self) -> "asyncio.Task[Worker]":
        """Start a process; whoever closes the lane waits for that, so that none is left over."""

        async def start() -> Worker:
            worker = await Worker.start(
                self._target, niceness=self._lane.niceness, environment=self._environment
            )
            self._workers.add(worker)
            return worker

        starting = asyncio.create_task(start())
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        return starting

    def _fail_waiting(self, error: WorkerDiedError) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(error)

    def _busy(self, problem: str) -> BusyError:
        usual_s = sum(self._recent_s) / len(self._recent_s) if self._recent_s else _FIRST_GUESS_S
        ahead = self.waiting_count + self._lane.process_count
        retry_after_s = max(0.1, round(usual_s * ahead / self._lane.process_count, 1))
        return BusyError(problem, retry_after_s=retry_after_s)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
