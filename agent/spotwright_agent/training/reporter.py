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
                already. The handler asks `should_save()`.
        """
        self.path = path or os.environ.get("SPOTWRIGHT_AGENT_SOCKET") or DEFAULT_PATH
        self.rank = own_rank() if rank is None else rank
        self._bad, self._bad_count = "", 0
        self._link = AgentLink(self.path, rank=self.rank, signal_number=signal_on_warning)
        self._notice_file = NoticeFile(self.path, "notice.json")
        self._request_file = NoticeFile(self.path, "checkpoint.json")
        self._request_file.changed()  # what was asked of an earlier process is not asked of this
        self._standing: TrainingWarning | None = None  # the hint or the interruption that holds
        self._request: TrainingWarning | None = None  # the latest one to save
        self._latest: TrainingWarning | None = None  # of any kind
        self._saved_for: tuple[str, TrainingWarning | None] = ("", None)
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
        """Return the hint or the interruption that holds, without waiting; None: nothing does."""
        self._look()
        standing = self._standing
        return None if standing is None or standing.expired else standing

    def should_save(self) -> TrainingWarning | None:
        """Return why to save now; None: nothing new asks for it.

        Each hint, interruption and request to save is a reason once, however often the agent
        repeats it. Without waiting; also for signal handlers.
        """
        standing, request = self.warning(), self._request
        kind = standing.kind if standing is not None else ""
        (saved_kind, saved_request), self._saved_for = self._saved_for, (kind, request)
        if kind not in ("", saved_kind):
            return standing
        return request if request != saved_request else None

    def wait_for_warning(self, timeout_s: float) -> TrainingWarning | None:
        """Return the next warning of any kind; None: none came in time."""
        before, deadline_s = self._latest, time.monotonic() + timeout_s
        while True:
            self._look()
            left_s = deadline_s - time.monotonic()
            if self._latest is not before or left_s <= 0:
                return None if self._latest is before else self._latest
            self._wait_for_answer(min(left_s, 1.0))

    def close(self) -> None:
        """Send what waits, for half a second at most. Later steps count as dropped."""
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
        """Take what the agent answered, and what its files say."""
        for _ in range(_MAX_ANSWERS):
            document = self._link.receive()
            if document is None:
                break
            if (found := read_warning(document)) is not None:
                self._hear(found)
        if self._request_file.changed() and self._request_file.warning is not None:
            self._hear(self._request_file.warning)
        before = self._notice_file.warning
        if self._notice_file.changed():
            if self._notice_file.warning is not None:
                self._hear(self._notice_file.warning)
            elif self._standing == before:
                self._hear(TrainingWarning(kind="withdrawn"))

    def _hear(self, found: TrainingWarning) -> None:
        """Keep what is new; the same comes from the socket and from a file."""
        is_withdrawal = found.kind == "withdrawn"
        if found in (self._standing, self._request) or (is_withdrawal and not self._standing):
            return
        if found.kind == "checkpoint":
            self._request = found
        else:
            self._standing = None if is_withdrawal else found
        self._latest = found

    def _wait_for_answer(self, timeout_s: float) -> None:
        self._link.flush()  # if only to find out that the agent is another one by now
        number = self._link.fileno()
        if number < 0:
            time.sleep(timeout_s)
            return
        poll = select.poll()
        poll.register(number, select.POLLIN)
        poll.poll(timeout_s * 1000)
