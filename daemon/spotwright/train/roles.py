"""The processes of a job: a parameter server or a worker, from start to end."""

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch

from spotwright.domain.address import Address
from spotwright.domain.errors import ServerLostError, TrainingOverError
from spotwright.train.parameter_server import ParameterServer, ServerSettings
from spotwright.train.script import load_task
from spotwright.train.training_loop import TrainingLoop, WorkerResult
from spotwright.train.updates import Update
from spotwright.train.worker import Worker
from spotwright_agent.training import StepReporter

_TELLS_EVERY_S = 2.0
_RECENT = 50  # updates whose mean loss is told


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRole:
    """A parameter server to run."""

    script: str
    settings: ServerSettings
    linger_s: float | None = 0.0  # None: until it is asked to end
    threads: int | None = None  # of PyTorch; None: its own choice


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRole:
    """A worker to run."""

    script: str
    servers: tuple[str, ...]
    name: str | None = None
    batch: int = 32
    tls_dir: Path | None = None
    patience_s: float = 120.0
    rank: int | None = None  # that the agent is told
    threads: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResult:
    """What a parameter server did."""

    index: int
    version: int
    resumed_version: int | None
    saved_version: int | None
    updates: int
    workers: int  # that pushed
    first_loss: float | None  # means of a few updates
    last_loss: float | None
    mean_staleness: float | None
    max_staleness: int
    is_over: bool


class Course:
    """Sums up updates as they come; told from the server's lock, asked from anywhere."""

    def __init__(self) -> None:
        self.updates = self.max_staleness = self._staleness = self.version = 0
        self.workers: set[str] = set()
        self._first: list[float] = []
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._since, self._since_s = 0, time.monotonic()

    def __call__(self, update: Update) -> None:
        """Take an update."""
        self.updates, self.version = self.updates + 1, update.version
        self._staleness += update.staleness
        self.max_staleness = max(self.max_staleness, update.staleness)
        self.workers.add(update.worker)
        self._recent.append(update.loss)
        if len(self._first) < _RECENT:
            self._first.append(update.loss)

    @property
    def first_loss(self) -> float | None:
        """The mean loss of the first updates."""
        return sum(self._first) / len(self._first) if self._first else None

    @property
    def last_loss(self) -> float | None:
        """The mean loss of the latest updates."""
        recent = list(self._recent)
        return sum(recent) / len(recent) if recent else None

    @property
    def mean_staleness(self) -> float | None:
        """Versions between pull and push, on average."""
        return self._staleness / self.updates if self.updates else None

    def line(self, steps: int | None) -> str:
        """Return how training goes, since the last line."""
        now_s = time.monotonic()
        rate = (self.updates - self._since) / max(now_s - self._since_s, 1e-9)
        self._since, self._since_s = self.updates, now_s
        of = "" if steps is None else f" of {steps}"
        loss = "" if self.last_loss is None else f", loss {self.last_loss:.4g}"
        return (
            f"step {self.version}{of}{loss}, {rate:.1f} updates/s, staleness "
            f"{self.mean_staleness or 0:.1f}, {len(self.workers)} workers so far"
        )


def run_server(
    role: ServerRole, *, tell: Callable[[str], None], listens: Callable[[Address], None]
) -> ServerResult:
    """Serve until training is over; SIGTERM saves and ends, and another process may go on.

    Args:
        role: which server.
        tell: is given a line about the course of training now and then.
        listens: is given the address when workers may come.

    Raises:
        TrainingError: training cannot go on.
    """
    _use_threads(role.threads)
    task, course = load_task(role.script), Course()
    server = ParameterServer(task.model, task.optimizer, settings=role.settings, observe=course)
    done = threading.Event()
    with _at_sigterm(server.progress.stop), server:
        listens(server.address)
        if server.resumed_version is not None:
            tell(f"goes on from version {server.resumed_version} of the checkpoint")
        teller = threading.Thread(
            target=_tell_regularly, args=(course, role.settings.steps, tell, done), daemon=True
        )
        teller.start()
        try:
            server.wait(linger_s=role.linger_s)
        finally:
            done.set()
            teller.join()
    return _server_result(server, course)


def run_worker(role: WorkerRole, *, tell: Callable[[str], None]) -> WorkerResult:
    """Train until training is over; SIGTERM ends after the step, or where a server is away.

    Raises:
        LossNotFiniteError: this worker's loss is NaN; all training stops.
        TrainingError: training cannot go on.
    """
    _use_threads(role.threads)
    task, stopped = load_task(role.script), threading.Event()
    if torch.cuda.is_available():
        task.model.to("cuda")
    worker = Worker(
        task.model,
        role.servers,
        name=role.name,
        tls_dir=role.tls_dir,
        patience_s=role.patience_s,
    )
    reporter = StepReporter(rank=role.rank)
    loop = TrainingLoop(task, worker, batch=role.batch, reporter=reporter, stops=stopped.is_set)

    def stop() -> None:
        stopped.set()
        worker.hurry()

    try:
        with _at_sigterm(stop), worker:
            return loop.run()
    except ServerLostError:
        if not stopped.is_set():
            raise
        return loop.result("stopped")
    except TrainingOverError as error:
        tell(str(error))
        return loop.result("late")
    finally:
        reporter.close()


def _tell_regularly(
    course: Course, steps: int | None, tell: Callable[[str], None], done: threading.Event
) -> None:
    told = 0
    while not done.wait(_TELLS_EVERY_S):
        if course.updates != told:
            told = course.updates
            tell(course.line(steps))


def _server_result(server: ParameterServer, course: Course) -> ServerResult:
    return ServerResult(
        index=server.settings.index,
        version=server.progress.shard.version,
        resumed_version=server.resumed_version,
        saved_version=server.saved_version,
        updates=course.updates,
        workers=len(course.workers),
        first_loss=course.first_loss,
        last_loss=course.last_loss,
        mean_staleness=course.mean_staleness,
        max_staleness=course.max_staleness,
        is_over=server.progress.is_over,
    )


@contextmanager
def _at_sigterm(do: Callable[[], None]) -> Iterator[None]:
    """Call something at SIGTERM, where this thread may say so."""

    def heard(_number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=do, daemon=True).start()  # it may need a lock that is held here

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _use_threads(count: int | None) -> None:
    if count is not None:
        torch.set_num_threads(count)
