"""Messages put into parcels that the daemon takes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from spotwright.v1 import telemetry_pb2 as v1
from spotwright_agent.report.clock import Clock, ClockStamp
from spotwright_agent.report.messages import text_for_wire
from spotwright_agent.report.parcels import Parcel, ParcelKind

MAX_SAMPLES, MAX_STEPS, MAX_NOTICES, MAX_FAULTS, MAX_PROBES = 600, 6_000, 16, 64, 16
MAX_BYTES = 240 * 1024  # the daemon takes 256 KiB; a number and times are added
MAX_SPAN_MS = 980_000  # touches 99 or fewer intervals of 10 s wherever these begin; 100 are taken
_FIELD_BYTES = 6  # before each message in a batch: its tag and length
_SAME_CLOCK_MS = 50  # a clock that is steered, not set
_T = TypeVar("_T")


def telemetry_parcels(
    samples: Iterable[v1.HostSample],
    steps: Iterable[v1.StepSample],
    *,
    stamp: ClockStamp,
    clock: Clock,
) -> list[Parcel]:
    """Put samples and steps of one clock into as few parcels as the limits allow."""
    packer = _Packer(stamp, clock)
    for sample in samples:
        packer.add(sample)
    for step in steps:
        packer.add(step)
    packer.close()
    return packer.parcels


def notice_parcels(
    notices: Sequence[v1.Notice], *, stamp: ClockStamp, clock: Clock
) -> list[Parcel]:
    """Put notices into parcels of their own, which may overtake all others."""
    return [
        _parcel(v1.Batch(notices=some), ParcelKind.NOTICE, stamp=stamp, clock=clock)
        for some in _chunks(notices, MAX_NOTICES)
    ]


def probe_parcels(
    probes: Sequence[v1.ProbeResult], *, stamp: ClockStamp, clock: Clock
) -> list[Parcel]:
    """Put what probes found into parcels."""
    return [
        _parcel(v1.Batch(probes=some), ParcelKind.STATE, stamp=stamp, clock=clock)
        for some in _chunks(probes, MAX_PROBES)
    ]


def fault_parcel(faults: Mapping[str, str], *, stamp: ClockStamp, clock: Clock) -> Parcel:
    """Put everything that cannot be read into a parcel; an empty fault says that nothing is."""
    told = [
        v1.CollectorFault(collector=text_for_wire(name), problem=text_for_wire(problem))
        for name, problem in islice(faults.items(), MAX_FAULTS)
    ]
    batch = v1.Batch(faults=told or [v1.CollectorFault()])
    return _parcel(batch, ParcelKind.STATE, stamp=stamp, clock=clock)


class _Packer:
    """Fills one parcel after the other."""

    def __init__(self, stamp: ClockStamp, clock: Clock) -> None:
        self.parcels: list[Parcel] = []
        self._stamp, self._clock = stamp, clock
        self._clear()

    def _clear(self) -> None:
        self._batch = v1.Batch()
        self._bytes = 0
        self._first_ms, self._last_ms = 2**62, -(2**62)

    def add(self, message: v1.HostSample | v1.StepSample) -> None:
        """Add a sample or step, to a new parcel where it does not fit into this one."""
        size_bytes, time_ms = message.ByteSize() + _FIELD_BYTES, message.time_unix_ms
        first_ms, last_ms = min(self._first_ms, time_ms), max(self._last_ms, time_ms)
        if self._bytes and (
            self._bytes + size_bytes > MAX_BYTES
            or last_ms - first_ms > MAX_SPAN_MS
            or len(self._batch.samples) >= MAX_SAMPLES
            or len(self._batch.steps) >= MAX_STEPS
        ):
            self.close()
            first_ms = last_ms = time_ms
        if isinstance(message, v1.HostSample):
            self._batch.samples.append(message)
        else:
            self._batch.steps.append(message)
        self._bytes += size_bytes
        self._first_ms, self._last_ms = first_ms, last_ms

    def close(self) -> None:
        """End the parcel that is being filled."""
        if not self._bytes:
            return
        step_count = len(self._batch.steps)
        self.parcels.append(
            Parcel(
                document=self._batch.SerializeToString(),
                kind=ParcelKind.TELEMETRY,
                stamp=self._stamp,
                create_boot_ms=self._clock.boot_ms(),
                sample_count=len(self._batch.samples) + step_count,
                step_count=step_count,
                first_ms=self._first_ms,
                last_ms=self._last_ms,
            )
        )
        self._clear()


class Joining:
    """Parcels that are to be sent as one."""

    def __init__(self, first: Parcel) -> None:
        self._parts = [first]
        self._bytes = len(first.document)
        self._samples, self._steps = first.sample_count, first.step_count
        self._first_ms, self._last_ms = first.first_ms, first.last_ms

    def take_in(self, more: Parcel) -> bool:
        """Take in one more parcel; False where these may not go together."""
        first = self._parts[0]
        size_bytes, steps = self._bytes + len(more.document), self._steps + more.step_count
        samples = self._samples + more.sample_count
        first_ms, last_ms = min(self._first_ms, more.first_ms), max(self._last_ms, more.last_ms)
        if not (
            first.kind == more.kind == ParcelKind.TELEMETRY
            and first.stamp.kernel_boot == more.stamp.kernel_boot
            and abs(first.stamp.offset_ms - more.stamp.offset_ms) <= _SAME_CLOCK_MS
            and samples - steps <= MAX_SAMPLES
            and steps <= MAX_STEPS
            and size_bytes <= MAX_BYTES
            and last_ms - first_ms <= MAX_SPAN_MS
        ):
            return False
        self._parts.append(more)
        self._bytes, self._samples, self._steps = size_bytes, samples, steps
        self._first_ms, self._last_ms = first_ms, last_ms
        return True

    def whole(self) -> Parcel:
        """Return them as one: messages of protobuf are joined by putting them in a row."""
        return replace(
            self._parts[0],
            document=b"".join(parcel.document for parcel in self._parts),
            sample_count=self._samples,
            step_count=self._steps,
            first_ms=self._first_ms,
            last_ms=self._last_ms,
        )


def _parcel(batch: v1.Batch, kind: ParcelKind, *, stamp: ClockStamp, clock: Clock) -> Parcel:
    return Parcel(
        document=batch.SerializeToString(),
        kind=kind,
        stamp=stamp,
        create_boot_ms=clock.boot_ms(),
    )


def _chunks(items: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]
