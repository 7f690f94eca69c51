"""What was read since the last batch was cut.

Threads that read only append here, under a lock that is held for microseconds; messages are made
and written to disk by the thread that reports. What it does not fetch is bounded: the oldest is
dropped and counted.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from spotwright_agent.readings import HostSample, Notice, ProbeResult, StepReading
from spotwright_agent.report.clock import Clock, ClockStamp, HostClock
from spotwright_agent.report.messages import (
    notice_to_proto,
    probe_to_proto,
    sample_to_proto,
    step_to_proto,
)
from spotwright_agent.report.packing import (
    MAX_FAULTS,
    MAX_PROBES,
    MAX_SAMPLES,
    MAX_STEPS,
    fault_parcel,
    notice_parcels,
    probe_parcels,
    telemetry_parcels,
)
from spotwright_agent.report.parcels import Parcel

DEFAULT_BATCH_S = 5.0
_BATCH_S = (0.5, 60.0)
_MAX_NOTICES = 1_000
_stamp_of, _item_of = itemgetter(0), itemgetter(1)


class Cutting(NamedTuple):
    """What is to be spooled."""

    parcels: list[Parcel]
    dropped_count: int  # samples and steps that had to be left out


class Outbox:
    """Gathers what is read until it is due; any thread may add to it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or HostClock()
        self._lock = threading.Lock()
        self._wake: Callable[[], None] = _nobody
        self._batch_s = DEFAULT_BATCH_S
        self._due_s: float | None = None  # monotonic; None: nothing waits
        self._stamp = ClockStamp.of(self._clock)
        self._samples: deque[tuple[ClockStamp, HostSample]] = deque()
        self._steps: deque[tuple[ClockStamp, StepReading]] = deque()
        self._notices: deque[tuple[ClockStamp, Notice]] = deque(maxlen=_MAX_NOTICES)
        self._probes: deque[tuple[ClockStamp, ProbeResult]] = deque(maxlen=MAX_PROBES)
        self._faults: dict[str, str] = {}
        self._faults_changed = False
        self._dropped_count = 0

    def add_sample(self, sample: HostSample) -> None:
        """Add a sample of the host."""
        with self._lock:
            full = self._add(self._samples, sample, most=MAX_SAMPLES)
        if full:
            self._wake()

    def add_step(self, step: StepReading) -> None:
        """Add a training step."""
        with self._lock:
            full = self._add(self._steps, step, most=MAX_STEPS)
        if full:
            self._wake()

    def add_notice(self, notice: Notice) -> None:
        """Add what the cloud said, which is cut and sent at once."""
        with self._lock:
            self._notices.append((self._stamped(), notice))
            self._due_s = 0.0
        self._wake()

    def add_probe(self, probe: ProbeResult) -> None:
        """Add what a probe found."""
        with self._lock:
            self._probes.append((self._stamped(), probe))
            self._due_s = 0.0
        self._wake()

    def set_fault(self, collector: str, problem: str) -> None:
        """Say what cannot be read; an empty problem says that it can be again."""
        with self._lock:
            if self._faults.get(collector, "") == problem:
                return
            if not problem:
                del self._faults[collector]
            elif collector in self._faults or len(self._faults) < MAX_FAULTS:
                self._faults[collector] = problem
            self._state_changed()

    def set_faults(self, faults: Mapping[str, str]) -> None:
        """Set the problems of several collectors; others keep theirs."""
        for collector, problem in faults.items():
            self.set_fault(collector, problem)

    def repeat_faults(self) -> None:
        """Have all faults told again, for a daemon that may not know them."""
        with self._lock:
            self._state_changed()

    def set_batch_s(self, batch_s: float) -> None:
        """Cut batches at another rate."""
        with self._lock:
            self._batch_s = min(max(batch_s, _BATCH_S[0]), _BATCH_S[1])
            if self._due_s is not None:
                self._due_s = min(self._due_s, time.monotonic() + self._batch_s)
        self._wake()

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Have somebody told when a batch should not wait; `wake` must not block."""
        self._wake = wake

    def due_in_s(self) -> float | None:
        """Return when the next batch should be cut; None: nothing waits."""
        with self._lock:
            return None if self._due_s is None else max(0.0, self._due_s - time.monotonic())

    def cut(self) -> Cutting:
        """Take everything out, as parcels; notices first."""
        with self._lock:
            samples, self._samples = self._samples, deque()
            steps, self._steps = self._steps, deque()
            notices, probes = list(self._notices), list(self._probes)
            self._notices.clear()
            self._probes.clear()
            faults = dict(self._faults) if self._faults_changed else None
            self._faults_changed, self._due_s = False, None
            dropped_count, self._dropped_count = self._dropped_count, 0
            stamp = self._stamp
        clock = self._clock
        parcels: list[Parcel] = []
        for of, some in groupby(notices, _stamp_of):
            told = [notice_to_proto(_item_of(each)) for each in some]
            parcels += notice_parcels(told, stamp=of, clock=clock)
        telemetry, unusable_count = self._telemetry(samples, steps)
        parcels += telemetry
        for of, found in groupby(probes, _stamp_of):
            measured = [probe_to_proto(_item_of(each)) for each in found]
            parcels += probe_parcels(measured, stamp=of, clock=clock)
        if faults is not None:
            parcels.append(fault_parcel(faults, stamp=stamp, clock=clock))
        return Cutting(parcels, dropped_count + unusable_count)

    def _telemetry(
        self,
        samples: deque[tuple[ClockStamp, HostSample]],
        steps: deque[tuple[ClockStamp, StepReading]],
    ) -> tuple[list[Parcel], int]:
        """Return parcels by clock, and how many samples and steps cannot be told."""
        parcels: list[Parcel] = []
        unusable_count = 0
        # A dict keeps the order; most batches are of one clock.
        for stamp in dict.fromkeys([*map(_stamp_of, samples), *map(_stamp_of, steps)]):
            own_samples = [sample_to_proto(each) for of, each in samples if of == stamp]
            own_steps = [step_to_proto(each) for of, each in steps if of == stamp]
            unusable_count += own_samples.count(None) + own_steps.count(None)
            parcels += telemetry_parcels(
                [each for each in own_samples if each is not None],
                [each for each in own_steps if each is not None],
                stamp=stamp,
                clock=self._clock,
            )
        return parcels, unusable_count

    def _add(self, gathered: deque[Any], item: Any, *, most: int) -> bool:
        """Add an item; tell whether a batch is full."""
        gathered.append((self._stamped(), item))
        if len(gathered) > 2 * most:  # nobody has fetched them for long
            gathered.popleft()
            self._dropped_count += 1
        if self._due_s is None:
            self._due_s = time.monotonic() + self._batch_s
        if len(gathered) != most:
            return False
        self._due_s = 0.0
        return True

    def _stamped(self) -> ClockStamp:
        """Return the clock's stamp; another one than before only where the clock jumped."""
        now = ClockStamp.of(self._clock)
        if not now.is_near(self._stamp):
            self._stamp = now
        return self._stamp

    def _state_changed(self) -> None:
        self._faults_changed = True
        due_s = time.monotonic() + min(1.0, self._batch_s)
        self._due_s = due_s if self._due_s is None else min(self._due_s, due_s)


def _nobody() -> None:
    """Wake nobody: nothing reports yet."""
