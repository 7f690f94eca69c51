"""A batch from the wire, checked, its times corrected and its figures summed up.

    clock_skew_s = send_time - receive_time, or 0 where it is below 2 s
    corrected    = time - clock_skew_s

The way through the network counts as skew; it is far below 2 s.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from spotwright.adapters.grpc.messages.probe import probe_from_proto
from spotwright.adapters.grpc.messages.telemetry import NOTICE_KINDS, check_text
from spotwright.adapters.grpc.telemetry.figure_sums import (
    GPU_FIGURES,
    HOST_FIGURES,
    STEP_FIGURES,
    FigureTable,
)
from spotwright.domain.errors import BadInputError
from spotwright.domain.telemetry import (
    RESOLUTIONS_S,
    AgentNotice,
    BatchKey,
    NetworkProbe,
    ReceivedBatch,
    RollupPart,
    Statistic,
    StepSums,
)
from spotwright.v1 import telemetry_pb2 as v1

MAX_BATCH_BYTES = 256 * 1024
MAX_SAMPLES, MAX_STEPS, MAX_INTERVALS = 600, 6_000, 100
_MAX_GPUS, _MAX_NOTICES, _MAX_FAULTS, _MAX_PROBES = 64, 16, 64, 16
_MAX_DROPPED = 10**12  # sums of these fit into the 64 bits of a database
_LEFT_ALONE_MS = 2_000
_FIRST_UNIX_MS, _LAST_UNIX_MS = 946_684_800_000, 4_102_444_800_000  # the years 2000 and 2100
_PART_S = RESOLUTIONS_S[0]
_NOTICE_KINDS = {number: kind for kind, number in NOTICE_KINDS.items()}


class Sender(NamedTuple):
    """Whose batch it is."""

    agent_id: str
    boot_id: str
    job_id: str = ""


def read_batch(batch: v1.Batch, *, sender: Sender, receive_unix_ms: int) -> ReceivedBatch:
    """Return a batch ready to be stored; BadInputError names the field that cannot be right."""
    document = batch.SerializeToString()
    _check_sizes(batch, len(document))
    skew_ms = _skew_ms(batch.send_time_unix_ms, receive_unix_ms)
    times = [_checked_time_ms(sample, skew_ms) for sample in batch.samples]
    times += [_checked_time_ms(step, skew_ms) for step in batch.steps]
    return ReceivedBatch(
        key=BatchKey(sender.agent_id, sender.boot_id, batch.sequence),
        job_id=sender.job_id,
        receive_unix_ms=receive_unix_ms,
        first_unix_ms=min(times, default=receive_unix_ms),
        last_unix_ms=max(times, default=receive_unix_ms),
        clock_skew_s=skew_ms / 1000,
        document=document,
        parts=_parts(batch, skew_ms),
        latest_sample=_latest(batch.samples, skew_ms),
        latest_step=_latest(batch.steps, skew_ms),
        steps=_step_sums(batch.steps),
        notices=tuple(_notice(notice, skew_ms) for notice in batch.notices),
        probes=tuple(_probe(probe, skew_ms) for probe in batch.probes),
        faults=_faults(batch),
        dropped_sample_count=batch.dropped_sample_count,
    )


def _check_sizes(batch: v1.Batch, byte_count: int) -> None:
    if byte_count > MAX_BATCH_BYTES:
        raise BadInputError(
            f"batch {batch.sequence} has {byte_count:,} bytes, at most {MAX_BATCH_BYTES:,} are "
            "taken; send smaller ones"
        )
    _at_most("batch.samples", len(batch.samples), MAX_SAMPLES)
    _at_most("batch.steps", len(batch.steps), MAX_STEPS)
    _at_most("batch.notices", len(batch.notices), _MAX_NOTICES)
    _at_most("batch.faults", len(batch.faults), _MAX_FAULTS)
    _at_most("batch.probes", len(batch.probes), _MAX_PROBES)
    if not 0 <= batch.dropped_sample_count <= _MAX_DROPPED:
        raise BadInputError(
            f"batch.dropped_sample_count must be from 0 to {_MAX_DROPPED:,}, "
            f"got {batch.dropped_sample_count}"
        )
    for number, fault in enumerate(batch.faults):
        check_text(f"batch.faults[{number}].collector", fault.collector)
        check_text(f"batch.faults[{number}].problem", fault.problem)


def _at_most(name: str, count: int, limit: int) -> None:
    if count > limit:
        raise BadInputError(f"{name} has {count} entries, at most {limit} are taken")


def _skew_ms(send_unix_ms: int, receive_unix_ms: int) -> int:
    if not _FIRST_UNIX_MS <= send_unix_ms <= _LAST_UNIX_MS:
        raise _bad_time("batch.send_time_unix_ms", send_unix_ms)
    skew_ms = send_unix_ms - receive_unix_ms
    return skew_ms if abs(skew_ms) >= _LEFT_ALONE_MS else 0


def _checked_time_ms(message: v1.HostSample | v1.StepSample, skew_ms: int) -> int:
    """Return the corrected time of a sample or step."""
    time_ms = message.time_unix_ms
    corrected_ms = time_ms - skew_ms
    if not (
        _FIRST_UNIX_MS <= time_ms <= _LAST_UNIX_MS
        and _FIRST_UNIX_MS <= corrected_ms <= _LAST_UNIX_MS
    ):
        kind = "samples" if isinstance(message, v1.HostSample) else "steps"
        raise _bad_time(f"batch.{kind}.time_unix_ms", time_ms)
    return corrected_ms


def _bad_time(name: str, unix_ms: int) -> BadInputError:
    return BadInputError(
        f"{name} is {unix_ms}, which is not within the years 2000 to 2100; set the host's clock"
    )


def _parts(batch: v1.Batch, skew_ms: int) -> tuple[RollupPart, ...]:
    """Sum up samples and steps by the finest resolution."""
    samples, steps = _by_interval(batch.samples, skew_ms), _by_interval(batch.steps, skew_ms)
    starts_s = samples.keys() | steps.keys()
    if len(starts_s) > MAX_INTERVALS:
        raise BadInputError(
            f"batch.samples and batch.steps are of {len(starts_s):,} intervals of {_PART_S} s, at "
            f"most {MAX_INTERVALS} are taken; send them in several batches"
        )
    return tuple(
        _part(batch, start_s, samples.get(start_s, ()), steps.get(start_s, ()))
        for start_s in sorted(starts_s)
    )


def _by_interval(messages: Iterable[Any], skew_ms: int) -> dict[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for message in messages:
        unix_s = (message.time_unix_ms - skew_ms) // 1000
        found[unix_s - unix_s % _PART_S].append(message)
    return found


def _part(
    batch: v1.Batch,
    start_unix_s: int,
    samples: Sequence[v1.HostSample],
    steps: Sequence[v1.StepSample],
) -> RollupPart:
    gpus = [gpu for sample in samples for gpu in sample.gpus]
    if len(gpus) > _MAX_GPUS:
        for sample in samples:
            _at_most("batch.samples.gpus", len(sample.gpus), _MAX_GPUS)
    statistics: dict[str, Statistic] = {}
    for table, messages in ((GPU_FIGURES, gpus), (HOST_FIGURES, samples), (STEP_FIGURES, steps)):
        sums = table.sums(messages)
        if sums is None:
            raise _bad_figure(batch)
        statistics |= sums
    return RollupPart(
        start_unix_s=start_unix_s,
        host_sample_count=len(samples),
        gpu_sample_count=len(gpus),
        step_count=len(steps),
        statistics=statistics,
    )


def _bad_figure(batch: v1.Batch) -> BadInputError:
    """Look for the figure that cannot have been measured, now that there is one."""
    rows: list[tuple[str, FigureTable, Any]] = []
    for i, sample in enumerate(batch.samples):
        rows.append((f"batch.samples[{i}]", HOST_FIGURES, sample))
        rows += [
            (f"batch.samples[{i}].gpus[{j}]", GPU_FIGURES, gpu) for j, gpu in enumerate(sample.gpus)
        ]
    rows += [(f"batch.steps[{i}]", STEP_FIGURES, step) for i, step in enumerate(batch.steps)]
    for where, table, message in rows:
        name = table.first_bad(message)
        if name is not None:
            return BadInputError(
                f"{where}.{name} is {getattr(message, name)}; figures must be finite and not "
                "negative, and are left out where they cannot be read"
            )
    raise AssertionError("sums and first_bad look for the same")


def _latest(messages: Sequence[v1.HostSample | v1.StepSample], skew_ms: int) -> bytes | None:
    if not messages:
        return None
    latest = messages[-1]
    latest.time_unix_ms -= skew_ms
    return latest.SerializeToString()


def _step_sums(steps: Sequence[v1.StepSample]) -> StepSums | None:
    """Add up steps, in the order in which they were made."""
    if not steps:
        return None
    samples = [step.samples for step in steps if step.HasField("samples")]
    losses = [step.loss for step in steps if step.HasField("loss") and math.isfinite(step.loss)]
    total = sum(count for count in samples if math.isfinite(count) and count >= 0)
    return StepSums(
        step_count=len(steps),
        last_step=max(0, *(step.step for step in steps)),
        samples=total if samples else None,
        loss=losses[-1] if losses else None,
    )


def _faults(batch: v1.Batch) -> bytes | None:
    """Return what cannot be read, as an Agent has it; a fault without a problem is over."""
    if not batch.faults:
        return None
    return v1.Agent(faults=[f for f in batch.faults if f.problem]).SerializeToString()


def _notice(notice: v1.Notice, skew_ms: int) -> AgentNotice:
    kind = _NOTICE_KINDS.get(notice.kind)
    if kind is None:
        raise BadInputError(f"batch.notices.kind must be one of NoticeKind, got {notice.kind}")
    check_text("batch.notices.source", notice.source)
    check_text("batch.notices.detail", notice.detail)
    return AgentNotice(
        kind=kind,
        time=_datetime("batch.notices.time_unix_ms", notice.time_unix_ms - skew_ms),
        deadline=_deadline(notice, skew_ms),
        source=notice.source,
        detail=notice.detail,
    )


def _deadline(notice: v1.Notice, skew_ms: int) -> datetime | None:
    if not notice.HasField("deadline_unix_ms"):
        return None
    # The cloud's clock is right: only a deadline counted by the host's is as wrong as that.
    wrong_by_ms = skew_ms if notice.deadline_by_host_clock else 0
    return _datetime("batch.notices.deadline_unix_ms", notice.deadline_unix_ms - wrong_by_ms)


def _probe(probe: v1.ProbeResult, skew_ms: int) -> NetworkProbe:
    time = _datetime("batch.probes.time_unix_ms", probe.time_unix_ms - skew_ms)
    return probe_from_proto(probe, time=time, where="batch.probes")


def _datetime(name: str, unix_ms: int) -> datetime:
    if not _FIRST_UNIX_MS <= unix_ms <= _LAST_UNIX_MS:
        raise _bad_time(name, unix_ms)
    return datetime.fromtimestamp(unix_ms / 1000, tz=UTC)
