"""Roles as processes that can be killed, forked from one that has imported PyTorch."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spotwright.train.roles import ServerRole, WorkerRole, run_server, run_worker

ROOT = Path(__file__).parents[2]
SCRIPT = "tests.train.task_script"
_END_S = 90  # on a machine that others use, too


class RoleProcess:
    """A role in a process of its own, and what it tells."""

    def __init__(self, role: ServerRole | WorkerRole) -> None:
        context = multiprocessing.get_context("forkserver")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_run, args=(role, theirs))
        self.process.start()
        theirs.close()

    def wait_for(self, text: str) -> str:
        """Return the first line that has a text."""
        while True:
            assert self._pipe.poll(_END_S), f"no {text!r}"
            told = self._pipe.recv()
            if text in str(told):
                return str(told)

    def result(self) -> Any:
        """Return what it did, when it ends."""
        while True:
            assert self._pipe.poll(_END_S), "it does not end"
            told = self._pipe.recv()
            if not isinstance(told, str):
                self.process.join(_END_S)
                return told

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


def _run(role: ServerRole | WorkerRole, pipe: Any) -> None:
    if isinstance(role, ServerRole):
        pipe.send(run_server(role, tell=pipe.send, listens=lambda address: pipe.send(str(address))))
    else:
        pipe.send(run_worker(role, tell=pipe.send))


@contextmanager
def roles() -> Iterator[list[RoleProcess]]:
    """Hold processes that are killed at the end, if they still run."""
    started: list[RoleProcess] = []
    try:
        yield started
    finally:
        for role in started:
            role.kill()
            role._pipe.close()


def wait_until(done: Callable[[], bool]) -> None:
    end_s = time.monotonic() + _END_S
    while not done():
        assert time.monotonic() < end_s, "it does not come about"
        time.sleep(0.01)
