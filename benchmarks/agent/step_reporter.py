"""What a call of StepReporter.step costs training: `python -m benchmarks.agent.step_reporter`."""

import socket
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.daemon.ingest_cases import against
from benchmarks.table import print_table
from spotwright_agent.training import StepReporter
from tests.agent.agent_process import running_agent
from tests.ports import stable_port

CALLS, ROUNDS, LIMIT_MS = 1_000, 5, 20.0


class Row(NamedTuple):
    """1,000 calls in one situation."""

    what: str
    median_ms: float
    worst_ms: float  # of the rounds: other processes are on the same cores
    dropped: int


def measure() -> list[Row]:
    """Return what 1,000 calls take with an agent, without one, and with one that does not read."""
    with tempfile.TemporaryDirectory(prefix="sw") as folder:
        path = Path(folder) / "s"
        absent = _row("agent absent", path)
        with _deaf(path):
            full = _row("its queue full", path)
        metrics = f"127.0.0.1:{stable_port()}"
        with running_agent(Path(folder), "--daemon", "127.0.0.1:1", "--metrics", metrics) as agent:
            _wait_for(lambda: agent.socket_path.exists() and bool(_shown(metrics)))
            present = _row("agent present", agent.socket_path)
            told = CALLS * ROUNDS - present.dropped
            _wait_for(lambda: _counted(metrics) == told)
            assert _counted(metrics) == told, "a step is told or counted, never lost"
    return [present, absent, full]


def _counted(address: str) -> float:
    """Return the steps that an agent took, and those that it had to drop."""
    wanted = ("spotwright_agent_steps_received_total ", "spotwright_agent_steps_dropped_total ")
    lines = _shown(address).splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith(wanted))


def _shown(address: str) -> str:
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as page:
            return str(page.read().decode())
    except OSError:
        return ""


def _row(what: str, path: Path) -> Row:
    reporter = StepReporter(str(path))
    times_ms = []
    for _ in range(ROUNDS):
        started_s = time.perf_counter()
        for step in range(CALLS):
            reporter.step(step, samples=256, loss=2.5)
        times_ms.append((time.perf_counter() - started_s) * 1000)
        time.sleep(0.1)
    reporter.close()
    return Row(what, median(times_ms), max(times_ms), reporter.dropped)


def _wait_for(done: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30.0
    while not done() and time.monotonic() < deadline_s:
        time.sleep(0.01)


@contextmanager
def _deaf(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        yield
    path.unlink()


def print_step_reporter(*, quick: bool) -> None:
    """Print a row for each situation."""
    del quick  # it takes a second
    lines = [
        (
            row.what,
            f"{row.median_ms:.1f} / {row.worst_ms:.1f}",
            f"{row.dropped:,} of {CALLS * ROUNDS:,}",
            *against(row.worst_ms, LIMIT_MS),
        )
        for row in measure()
    ]
    what = f"{CALLS:,} calls of StepReporter.step, {ROUNDS} rounds"
    print_table(what, ("case", "ms, median / worst", "steps dropped", "target", "verdict"), lines)


if __name__ == "__main__":
    print_step_reporter(quick=False)
