"""One sample of the host out of many collectors, none of which can spoil it for the others."""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, cast

from spotwright_agent.readings import (
    Collector,
    CollectorError,
    GpuReading,
    HostFigures,
    HostSample,
)

_MOST_TEXT = 199
_STALE_S = 20.0  # an answer to an older question is thrown away
_LIMIT, _LIMITS = 2**63, {"last_xid": 2**31}  # what the wire has room for
_NOT_NUMBERS = frozenset({"pcie_source", "gpu_index"})
_GPU_NUMBERS = tuple(field.name for field in fields(GpuReading) if field.name not in _NOT_NUMBERS)


class Sampler:
    """Asks every collector once a sample.

    A collector with `may_hang` reads in a thread of its own. Where it has not answered within
    `slow_s` the sample goes without it, and it is asked again only after it has answered. A late
    answer goes into the sample after it, unless that has one of its own: its rates are those of its
    own interval. A collector may have a `problem` to tell although it has figures.
    """

    def __init__(self, collectors: Sequence[Collector], *, slow_s: float = 0.8) -> None:
        self._slow_s = slow_s
        self._quick = [each for each in collectors if not _may_hang(each)]
        self._patient = [_OwnThread(each) for each in collectors if _may_hang(each)]
        self._faults: dict[str, str] = {}
        self._last_s: float | None = None

    @property
    def faults(self) -> Mapping[str, str]:
        """What cannot be read now, by collector."""
        return MappingProxyType(self._faults)

    def sample(self, *, now_s: float, time_unix_ms: int) -> HostSample:
        """Return what happened since the call before; the first has an interval of 0 s.

        Args:
            now_s: a clock that never jumps.
            time_unix_ms: the host's clock.
        """
        figures: HostFigures = {}
        faults: dict[str, str] = {}
        for asked in self._patient:
            asked.ask(now_s)
        for collector in self._quick:
            _merge(collector.name, _read(collector, now_s), figures, faults)
        deadline_s = time.monotonic() + self._slow_s
        for asked in self._patient:
            answer = asked.answer(now_s, wait_s=deadline_s - time.monotonic())
            _merge(asked.name, answer, figures, faults)
        self._faults = faults
        interval_s = 0.0 if self._last_s is None else max(now_s - self._last_s, 0.0)
        self._last_s = now_s
        return HostSample(
            time_unix_ms=time_unix_ms, interval_s=interval_s, figures=_plausible(figures)
        )


_Answer = tuple[HostFigures, str]


def _may_hang(collector: Collector) -> bool:
    return bool(getattr(collector, "may_hang", False))


def _read(collector: Collector, now_s: float) -> _Answer:
    """Return the figures, and what is wrong; whatever a collector raises stays here."""
    try:
        figures = collector.read(now_s)
        return figures, _short(getattr(collector, "problem", ""))
    except CollectorError as error:
        return {}, _short(str(error)) or "not readable"
    except Exception as error:  # one faulty collector must not end the sampling of all
        return {}, _short(f"{type(error).__name__}: {error}")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_TEXT else line[: _MOST_TEXT - 3] + "..."


def _merge(name: str, answer: _Answer, figures: HostFigures, faults: dict[str, str]) -> None:
    found, problem = answer
    figures.update(found)
    if problem:
        faults[name] = problem


class _OwnThread:
    """A collector that may hang, behind a thread that ends with the process."""

    def __init__(self, collector: Collector) -> None:
        self.name = collector.name
        self._collector = collector
        self._changed = threading.Condition()
        self._asked_s: float | None = None  # the question that has no answer yet
        self._earlier_s = 0.0  # when it was asked last
        self._is_late = False  # that question was of an earlier sample
        self._answered: _Answer | None = None  # nobody took it yet
        self._late: _Answer | None = None
        self._thread: threading.Thread | None = None

    def ask(self, now_s: float) -> None:
        """Ask, unless it is still busy with an earlier question."""
        if self._thread is None:
            name = f"read-{self.name}"
            self._thread = threading.Thread(target=self._answer_for_ever, name=name, daemon=True)
            self._thread.start()
        with self._changed:
            self._is_late = self._asked_s is not None
            if not self._is_late:
                recent = now_s - self._earlier_s <= _STALE_S
                self._late, self._answered = self._answered if recent else None, None
                self._asked_s = self._earlier_s = now_s
                self._changed.notify_all()

    def answer(self, now_s: float, *, wait_s: float) -> _Answer:
        """Return the answer to the question of this sample, or a late one, or that there is none.

        A late one is a fault, too, in the words of a short silence: so that the fault stays the
        same where some samples have a late answer and some have none.
        """
        with self._changed:
            late, self._late = self._late, None
            if not self._is_late:
                self._changed.wait_for(lambda: self._asked_s is None, max(wait_s, 0.0))
                if self._answered is not None:
                    found, self._answered = self._answered, None
                    return found
            silence = _silence(now_s - self._earlier_s)
            return ({}, silence) if late is None else (late[0], late[1] or silence)

    def _answer_for_ever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._asked_s is not None)
                now_s = cast(float, self._asked_s)
            found = _read(self._collector, now_s)
            with self._changed:
                self._asked_s, self._answered = None, found
                self._changed.notify_all()


def _silence(for_s: float) -> str:
    """Tell of a silence in steps of two, so that the text does not change every second."""
    return f"no answer for {2 ** int(math.log2(max(for_s, 1.0)))} s"


def _plausible(figures: HostFigures) -> HostFigures:
    """Leave out what nobody can have measured: the daemon would refuse the whole batch."""
    kept: dict[str, Any] = {}
    for name, value in figures.items():
        if name == "gpus":
            kept[name] = tuple(map(_plausible_gpu, cast(tuple[GpuReading, ...], value)))
        elif _is_plausible(name, value):
            kept[name] = value
    return cast(HostFigures, kept)


def _plausible_gpu(reading: GpuReading) -> GpuReading:
    bad = [
        name
        for name in _GPU_NUMBERS
        if (value := getattr(reading, name)) is not None and not _is_plausible(name, value)
    ]
    absent: dict[str, Any] = dict.fromkeys(bad)
    return replace(reading, **absent) if bad else reading


def _is_plausible(name: str, value: Any) -> bool:
    return bool(0 <= value < _LIMITS.get(name, _LIMIT))  # false for NaN, too
