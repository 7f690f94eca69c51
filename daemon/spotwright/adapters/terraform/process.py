"""One run of Terraform: its output as it comes, and its own time to end.

Terraform holds a lock and knows what it has just made. Killed, it leaves the lock and forgets the
rest, so it is only ever asked to stop, and waited for. It runs in a session of its own: a Ctrl-C in
the terminal comes to this process alone, which passes it on.
"""

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from spotwright.domain.errors import TerraformError

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LINES_KEPT = 2000  # Terraform's errors come last


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended."""

    exit_code: int
    output: str  # its last lines
    stop_count: int  # how often it was asked to stop


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    say: Callable[[str], None],
    stdout: IO[bytes] | None = None,
) -> Ended:
    """Run a command to its end, and say each line of its output when it comes.

    Signals that would end this process are passed on while it runs, if this is the main thread:
    Python lets no other one receive them.

    Args:
        command: the program and its arguments.
        folder: where it runs.
        environment: its variables.
        say: told each line.
        stdout: where results go; without it they are lines like those on standard error.

    Raises:
        TerraformError: the program or the folder cannot be used.
    """
    stopping = _Stopping()
    lines: deque[str] = deque(maxlen=_LINES_KEPT)
    with _handled(stopping):
        process = _start(command, folder=folder, environment=environment, stdout=stdout)
        stopping.begin(process)
        pipe = process.stdout if stdout is None else process.stderr
        assert pipe is not None
        with pipe:
            try:
                for line in pipe:
                    lines.append(line.rstrip("\n"))
                    say(lines[-1])
            finally:  # `say` failed, for want of a terminal perhaps; Terraform still has to end
                lines.extend(line.rstrip("\n") for line in pipe)
                exit_code = process.wait()
    return Ended(exit_code, "\n".join(lines), stopping.count)


def _start(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdout: IO[bytes] | None,
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.STDOUT if stdout is None else subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise TerraformError(f"cannot run {command[0]} in {folder}: {error.strerror}") from error


class _Stopping:
    """Passes on what should stop the run, also what came before there was a process."""

    def __init__(self) -> None:
        self.count = 0
        self._process: subprocess.Popen[str] | None = None
        self._waiting = 0

    def begin(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._pass_on()

    def receive(self, number: int, _frame: FrameType | None) -> None:
        # Terraform stops at once when it is asked twice, and loses what it was making. Only a
        # person does that on purpose: a closing terminal or `timeout` may well signal twice.
        if number == signal.SIGINT or self.count == 0:
            self.count += 1
            self._waiting += 1
            self._pass_on()

    def _pass_on(self) -> None:
        while self._process is not None and self._waiting:
            self._waiting -= 1
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    # As the terminal would: to the whole group. Terraform knows SIGINT, not SIGHUP.
                    os.killpg(self._process.pid, signal.SIGINT)


@contextmanager
def _handled(stopping: _Stopping) -> Iterator[None]:
    """Have signals go to `stopping`; one that is ignored, as under nohup, stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in _STOPPING}
    taken = {number: was for number, was in usual.items() if was is not signal.SIG_IGN}
    for number in taken:
        signal.signal(number, stopping.receive)
    try:
        yield
    finally:
        for number, was in taken.items():
            signal.signal(number, was or signal.SIG_DFL)
