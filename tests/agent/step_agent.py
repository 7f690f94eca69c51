"""The agent's end of the training socket, run in a thread of the test."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spotwright_agent.readings import StepReading
from spotwright_agent.steps.step_socket import StepSocket


class ListeningAgent:
    """A StepSocket that listens, and the steps that it took."""

    def __init__(self, path: Path, standing: bytes | None = None) -> None:
        self.steps: list[StepReading] = []
        self.socket = StepSocket(path, on_step=self.steps.append, standing=lambda: standing)


@contextmanager
def listening_agent(path: Path, standing: bytes | None = None) -> Iterator[ListeningAgent]:
    """Run one until the block ends."""
    agent, stopping = ListeningAgent(path, standing), threading.Event()
    thread = threading.Thread(target=agent.socket.run, args=(stopping,))
    thread.start()
    try:
        wait_for(lambda: path.is_socket() or bool(agent.socket.problem))
        yield agent
    finally:
        stopping.set()
        thread.join(10)


@contextmanager
def short_path() -> Iterator[Path]:
    """Give a path that fits into the 108 bytes of a socket's address."""
    with tempfile.TemporaryDirectory(prefix="sw") as folder:
        yield Path(folder) / "s"


def wait_for(done: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Wait until something is so; fail if it never is."""
    deadline_s = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline_s, "does not happen"
        time.sleep(0.01)
