"""How a search is looked on and ended early: a line on the terminal, Ctrl-C and a time limit."""

import math
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from spotwright.domain.plan import Objective
from spotwright.domain.units import format_duration, format_usd
from spotwright.planner.problem import SearchProgress, Watch

_LINES_PER_S = 10.0


class SearchWatch:
    """While it is entered, a search ends at the time limit and at the first Ctrl-C.

    A second Ctrl-C does what it always does, as the first does where it is not taken. Where stderr
    is a terminal, one line there tells how far the search has come; it is gone when the search is
    over.

    Attributes:
        ended_early: the search was told to end.
    """

    def __init__(
        self,
        *,
        time_limit_s: float,
        figure: Callable[[float], str],
        clock: Callable[[], float],
        takes_ctrl_c: bool = True,
    ) -> None:
        """Watch by that clock; `figure` prints what is made as small as possible."""
        self._time_limit_s, self._clock, self._takes_ctrl_c = time_limit_s, clock, takes_ctrl_c
        self._line = _ProgressLine(figure) if _is_terminal() else None
        self._start_s = self._next_line_s = 0.0
        self._interrupted = False
        self.ended_early = False
        self._usual: Any = signal.SIG_DFL

    def __enter__(self) -> Self:
        self._start_s = self._next_line_s = self._clock()
        self._usual = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
        # Ignored by nohup, and by shells for what runs behind.
        if self._takes_ctrl_c and self._usual is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._usual)
        if self._line:
            self._line.clear()

    @property
    def watch(self) -> Watch:
        """What the search is given."""
        return Watch(stopped=self._stopped, report=self._report)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self._interrupted = True
        signal.signal(signal.SIGINT, self._usual)

    def _stopped(self) -> bool:
        is_late = self._clock() - self._start_s >= self._time_limit_s
        self.ended_early = self.ended_early or self._interrupted or is_late
        return self.ended_early

    def _report(self, progress: SearchProgress) -> None:
        now_s = self._clock()
        if self._line and now_s >= self._next_line_s:
            self._next_line_s = now_s + 1 / _LINES_PER_S
            self._line.show(progress, now_s - self._start_s)


def watch_search(
    objective: Objective, time_limit_s: float, *, takes_ctrl_c: bool = True
) -> SearchWatch:
    """Return who looks on at a search for the user of a terminal."""
    figure = format_duration if objective is Objective.TIME else format_usd
    return SearchWatch(
        time_limit_s=time_limit_s, figure=figure, clock=time.monotonic, takes_ctrl_c=takes_ctrl_c
    )


class _ProgressLine:
    """One line of stderr, rewritten in place."""

    def __init__(self, figure: Callable[[float], str]) -> None:
        self._figure, self._length = figure, 0

    def show(self, progress: SearchProgress, elapsed_s: float) -> None:
        room = os.get_terminal_size(sys.stderr.fileno()).columns - 1  # a line that wraps stays
        text = progress_text(progress, elapsed_s, self._figure)[: room if room > 0 else None]
        self._write(text)
        self._length = len(text)

    def clear(self) -> None:
        self._write("")
        self._length = 0

    def _write(self, text: str) -> None:
        blank = " " * max(0, self._length - len(text))
        back = "\r" if not text else ""
        print(f"\r{text}{blank}{back}", end="", file=sys.stderr, flush=True)


def progress_text(
    progress: SearchProgress, elapsed_s: float, figure: Callable[[float], str]
) -> str:
    """Say how far a search has come."""
    best, bound, gap = progress.best, progress.lower_bound, progress.gap_fraction
    parts = ["no fleet yet" if best is None else f"best {figure(best)}"]
    if math.isfinite(bound) and bound > 0:
        parts.append(f"bound {figure(bound)}")
    if gap is not None:
        parts.append(f"gap {gap * 100:.1f} %")
    parts += [f"{progress.box_count:,} boxes", format_duration(elapsed_s)]
    return f"searching: {', '.join(parts)}"


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
