"""StepReporter: a training process tells its steps to the agent on its host.

A call costs a few microseconds, waits for nobody and raises nothing: what cannot be told is
counted in `dropped`. docs/training-steps.md has the lines, for other languages.
"""

import atexit
import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict, Unpack

from spotwright_agent.training.agent_link import AgentLink
from spotwright_agent.training.notice_file import NoticeFile
from spotwright_agent.training.step_line import own_rank, step_line
from spotwright_agent.training.warning import TrainingWarning, read_warning

DEFAULT_PATH = "/run/spotwright-agent/training.sock"
_LOOK_S = 0.5  # between looks for a warning that step() takes
_MAX_ANSWERS = 16  # that one look takes


class StepFigures(TypedDict, total=False):
    """What a step may tell beside its length. Numbers: tensors are left out."""

    samples: float | None  # of this process
    loss: float | None
    data_wait_s: float | None
    compute_s: float | None
    communication_s: float | None


class StepReporter:
    """Tells steps, and hears warnings. Safe to use after a fork and where there is no agent."""

    def __init__(
        self,
        path: str | None = None,
        *,
        rank: int | None = None,
        signal_on_warning: int | None = None,
    ) -> None:
        """Say hello to the agent, if there is one.

        Args:
            path: the agent's socket; by default $SPOTWRIGHT_AGENT_SOCKET, or where it usually is.
            rank: by default what torchrun, Slurm or Open MPI tell, else 0.
            signal_on_warning: raised in this process when a warning comes, if it has a handler
                already. The handler asks `warning()`.
        """
        self.path = path or os.environ.get("SPOTWRIGHT_AGENT_SOCKET") or DEFAULT_PATH
        self.rank = own_rank() if rank is None else rank
        self._bad, self._bad_count = "", 0
        self._link = AgentLink(self.path, rank=self.rank, signal_number=signal_on_warning)
        self._file = NoticeFile(self.path)
        self._warning: TrainingWarning | None = None
        self._last_s, self._look_at_s = time.monotonic(), 0.0
        self._spent_s: dict[str, float] = {}
        atexit.register(self.close)

    @property
    def dropped(self) -> int:
        """Steps that the agent was not told of, and never will be."""
        return self._link.dropped + self._bad_count

    @property
    def problem(self) -> str:
        """Why the last step was not told, or not all of it; empty: it was."""
        return self._bad or self._link.problem

    @property
    def signals(self) -> bool:
        """Whether a warning raises `signal_on_warning`."""
        return self._link.signals

    def step(
        self, step: int, *, step_s: float | None = None, **figures: Unpack[StepFigures]
    ) -> None:
        """Tell that a step has ended.

        Args:
            step: its number.
            step_s: its length; by default the time since the call before.
            figures: numbers. A tensor is left out, because reading it would make this process
                wait for its GPU.
        """
        try:
            now_s = time.monotonic()
            if step_s is None:
                step_s = now_s - self._last_s
            self._last_s = now_s
            self._tell(step, step_s, self._with_spent({**figures}))
            if now_s >= self._look_at_s:
                self._look_at_s = now_s + _LOOK_S
                self._look()
        except Exception as error:  # whatever it is, training goes on
            self._bad, self._bad_count = f"step is not told: {error!r}", self._bad_count + 1

    @contextmanager
    def data_wait(self) -> Iterator[None]:
        """Add the time within to what this step waited for input."""
        with self._spending("data_wait_s"):
            yield

    @contextmanager
    def compute(self) -> Iterator[None]:
        """Add the time within to what this step computed."""
        with self._spending("compute_s"):
            yield

    @contextmanager
    def communication(self) -> Iterator[None]:
        """Add the time within to what this step communicated."""
        with self._spending("communication_s"):
            yield

    def add(self, name: str, seconds: float) -> None:
        """Add to data_wait_s, compute_s or communication_s of the step that is under way."""
        self._spent_s[name] = self._spent_s.get(name, 0.0) + seconds

    def warning(self) -> TrainingWarning | None:
        """Return the latest warning that holds, without waiting; also for signal handlers."""
        self._look()
        latest = self._warning
        return None if latest is None or latest.expired else latest

    def wait_for_warning(self, timeout_s: float) -> TrainingWarning | None:
        """Return the next warning; None: none came in time."""
        before, deadline_s = self._warning, time.monotonic() + timeout_s
        while True:
            self._look()
            left_s = deadline_s - time.monotonic()
            if self._warning is not before or left_s <= 0:
                return None if self._warning is before else self._warning
            self._wait_for_answer(min(left_s, 1.0))

    def close(self) -> None:
        """Send what waits if it can go at once. Later steps count as dropped."""
        atexit.unregister(self.close)
        self._link.close()

    def _tell(self, step: int, step_s: float, figures: dict[str, object]) -> None:
        line, problem = step_line(
            {
                "step": step,
                "rank": self.rank,
                "step_s": step_s,
                "time_unix_ms": int(time.time() * 1000),
                **figures,
            }
        )
        self._bad = problem
        self._link.send(line)

    def _with_spent(self, figures: dict[str, object]) -> dict[str, object]:
        if not self._spent_s:
            return figures
        spent_s, self._spent_s = self._spent_s, {}
        return {**spent_s, **figures}

    @contextmanager
    def _spending(self, name: str) -> Iterator[None]:
        started_s = time.monotonic()
        try:
            yield
        finally:
            self.add(name, time.monotonic() - started_s)

    def _look(self) -> None:
        """Take what the agent answered; the newest counts."""
        for _ in range(_MAX_ANSWERS):
            document = self._link.receive()
            if document is None:
                break
            self._warning = read_warning(document) or self._warning
        self._look_at_file()

    def _look_at_file(self) -> None:
        before = self._file.warning
        if not self._file.changed():
            return
        found = self._file.warning
        if found is not None and found != self._warning:
            self._warning = found
        elif found is None and self._warning == before:
            self._warning = None  # withdrawn, and nobody could say so

    def _wait_for_answer(self, timeout_s: float) -> None:
        self._link.flush()  # if only to find out that the agent is another one by now
        number = self._link.fileno()
        if number < 0:
            time.sleep(timeout_s)
            return
        poll = select.poll()
        poll.register(number, select.POLLIN)
        poll.poll(timeout_s * 1000)
