"""Tasks that train in milliseconds a step, some of which go wrong."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from spotwright.train.script import Task
from tests.train.small_training import batch, build_model

_Batches = Iterator[tuple[Tensor, Tensor]]


def build() -> Task:
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    return Task(model, optimizer, nn.CrossEntropyLoss(), plain)


def build_slow() -> Task:
    return build()._replace(data=slow)


def build_spoiled() -> Task:
    return build()._replace(data=spoiled)


def build_empty() -> Task:
    return build()._replace(data=empty)


def build_killed() -> Task:
    return build()._replace(data=killed)


def build_late() -> Task:
    """Have w1 come when w0 has ended, and the server, too, unless it waits for w1."""
    name = multiprocessing.current_process().name
    pids = Path(os.environ["TASK_SCRIPT_PIDS"])
    (pids / name).write_text(str(os.getpid()))
    if name == "worker w1":
        _wait_for_the_end_of(pids / "worker w0", at_most_s=60.0)
        _wait_for_the_end_of(pids / "server 0", at_most_s=1.0)
    return build()


def _wait_for_the_end_of(pid: Path, *, at_most_s: float) -> None:
    end_s = time.monotonic() + at_most_s
    while not pid.exists() or Path("/proc", pid.read_text() or "self").exists():
        if time.monotonic() > end_s:
            return
        time.sleep(0.01)


def build_all_killed() -> Task:
    return build()._replace(data=all_killed)


def build_all_spoiled() -> Task:
    return build()._replace(data=all_spoiled)


def build_too_large() -> Task:
    return build()._replace(loss=too_large)


def no_task() -> int:
    return 3


def too_large(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs.sum() * torch.ones(10**7, 10**7).mean()


def plain(worker: str, size: int) -> _Batches:
    for step in range(1_000_000):
        yield batch(1000 * sum(worker.encode()) + step, size)


def slow(worker: str, size: int) -> _Batches:
    for one in plain(worker, size):
        time.sleep(0.01)
        yield one


def spoiled(worker: str, size: int) -> _Batches:
    """Yield what is not a number in the fifth batch of w1."""
    for step, (inputs, targets) in enumerate(plain(worker, size)):
        yield (inputs * torch.nan if (worker, step) == ("w1", 4) else inputs), targets


def all_spoiled(worker: str, size: int) -> _Batches:
    """Yield what is not a number."""
    return ((inputs * torch.nan, targets) for inputs, targets in plain(worker, size))


def empty(worker: str, size: int) -> _Batches:
    """Yield nothing in the second batch of w0."""
    for step, (inputs, targets) in enumerate(plain(worker, size)):
        yield (inputs[:0], targets[:0]) if (worker, step) == ("w0", 1) else (inputs, targets)


def killed(worker: str, size: int) -> _Batches:
    """Kill w1 at its fifth batch, as somebody outside would."""
    for step, one in enumerate(plain(worker, size)):
        if (worker, step) == ("w1", 4):
            os.kill(os.getpid(), signal.SIGKILL)
        yield one


def all_killed(worker: str, size: int) -> _Batches:
    """Kill every worker at its fifth batch."""
    for step, one in enumerate(plain(worker, size)):
        if step == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        yield one
