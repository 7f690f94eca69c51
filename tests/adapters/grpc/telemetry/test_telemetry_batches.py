"""Batches as they are read: checked, corrected and summed up."""

import math
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from spotwright.adapters.grpc.telemetry.batch_reader import MAX_BATCH_BYTES, Sender, read_batch
from spotwright.domain.errors import BadInputError
from spotwright.domain.telemetry import FIGURES, ReceivedBatch, RollupPart
from spotwright.v1 import telemetry_pb2 as v1

NOW_MS = 1_790_000_000_000  # a multiple of 10 s
SENDER = Sender("a", "b", "job")
GPU_NAMES = FIGURES[:6]
HOST_NAMES = FIGURES[6:16]
STEP_NAMES = FIGURES[16:]


def read(message: v1.Batch, *, receive_unix_ms: int = NOW_MS) -> ReceivedBatch:
    copy = v1.Batch.FromString(message.SerializeToString())
    return read_batch(copy, sender=SENDER, receive_unix_ms=receive_unix_ms)


def one(**fields: Any) -> v1.Batch:
    return v1.Batch(sequence=1, send_time_unix_ms=NOW_MS, **fields)


def sample(**fields: Any) -> v1.HostSample:
    return v1.HostSample(**({"time_unix_ms": NOW_MS, "interval_s": 1.0} | fields))


def probe(**fields: Any) -> v1.ProbeResult:
    usual: dict[str, Any] = {"time_unix_ms": NOW_MS, "peer": "10.0.0.2"}
    return v1.ProbeResult(**usual | fields)


def drawn_batch(draw: random.Random) -> v1.Batch:
    """Return a batch of a few minutes in which any figure may be absent, or zero."""

    def some(names: tuple[str, ...]) -> dict[str, Any]:
        return {
            name: draw.choice([0, draw.randrange(1, 1000)]) for name in names if draw.random() < 0.7
        }

    def time_ms() -> int:
        return NOW_MS + draw.randrange(-150_000, 1)

    samples = [
        sample(
            time_unix_ms=time_ms(),
            gpus=[v1.GpuSample(gpu_index=i, **some(GPU_NAMES)) for i in range(draw.randrange(4))],
            **some(HOST_NAMES),
        )
        for _ in range(draw.randrange(1, 20))
    ]
    steps = [
        v1.StepSample(time_unix_ms=time_ms(), step_s=draw.random(), **some(STEP_NAMES[1:]))
        for _ in range(draw.randrange(5))
    ]
    return one(samples=samples, steps=steps)


def values_by_interval(message: v1.Batch) -> dict[int, dict[str, list[float]]]:
    """Say what belongs into each interval, one value at a time."""
    found: dict[int, dict[str, list[float]]] = {}

    def note(time_ms: int, names: tuple[str, ...], source: Any) -> None:
        start = time_ms // 1000 // 10 * 10
        values = found.setdefault(start, {})
        present = {field.name for field, _ in source.ListFields()} | {"step_s"}
        for name in set(names) & present:
            values.setdefault(name, []).append(getattr(source, name))

    for host in message.samples:
        note(host.time_unix_ms, HOST_NAMES, host)
        for gpu in host.gpus:
            note(host.time_unix_ms, GPU_NAMES, gpu)
    for step in message.steps:
        note(step.time_unix_ms, STEP_NAMES, step)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_what_adding_up_value_by_value_gives(seed: int) -> None:
    message = drawn_batch(random.Random(seed))
    expected = values_by_interval(message)

    parts = read(message).parts

    assert [part.start_unix_s for part in parts] == sorted(expected)
    for part in parts:
        values = expected[part.start_unix_s]
        assert part.statistics.keys() == values.keys()
        for name, found in part.statistics.items():
            assert found.value_count == len(values[name])
            assert found.total == pytest.approx(math.fsum(values[name]))
            assert found.largest == max(values[name])
    assert _counts(parts) == (
        len(message.samples),
        sum(len(host.gpus) for host in message.samples),
        len(message.steps),
    )


def _counts(parts: tuple[RollupPart, ...]) -> tuple[int, int, int]:
    return (
        sum(part.host_sample_count for part in parts),
        sum(part.gpu_sample_count for part in parts),
        sum(part.step_count for part in parts),
    )


def test_a_batch_keeps_the_document_as_it_was_sent() -> None:
    message = one(samples=[sample(gpus=[v1.GpuSample(gpu_index=1)])], dropped_sample_count=3)

    found = read(message, receive_unix_ms=NOW_MS + 60_000)

    assert v1.Batch.FromString(found.document) == message
    assert found.key == ("a", "b", 1)
    assert (found.job_id, found.dropped_sample_count) == ("job", 3)


@pytest.mark.parametrize("skew_ms", [0, 1_999, -1_999])
def test_a_clock_that_is_off_by_less_than_two_seconds_is_left_alone(skew_ms: int) -> None:
    found = read(one(samples=[sample()]), receive_unix_ms=NOW_MS - skew_ms)

    assert found.clock_skew_s == 0.0
    assert found.first_unix_ms == NOW_MS


@pytest.mark.parametrize("skew_ms", [2_000, -2_000, 86_400_000, -86_400_000 * 365])
def test_times_of_a_wrong_clock_are_corrected(skew_ms: int) -> None:
    right_ms = NOW_MS - skew_ms
    step = v1.StepSample(time_unix_ms=NOW_MS - 3_000, step_s=1.0)
    told = v1.Notice(
        kind=v1.NOTICE_KIND_HINT, time_unix_ms=NOW_MS, deadline_unix_ms=right_ms + 120_000
    )
    counted = v1.Notice(
        kind=v1.NOTICE_KIND_HINT,
        time_unix_ms=NOW_MS,
        deadline_unix_ms=NOW_MS + 120_000,
        deadline_by_host_clock=True,
    )
    message = one(samples=[sample()], steps=[step], notices=[told, counted])

    found = read(message, receive_unix_ms=right_ms)

    assert found.clock_skew_s == skew_ms / 1000
    assert (found.first_unix_ms, found.last_unix_ms) == (right_ms - 3_000, right_ms)
    assert found.parts[-1].start_unix_s == right_ms // 1000 // 10 * 10
    assert v1.HostSample.FromString(found.latest_sample or b"").time_unix_ms == right_ms
    assert v1.StepSample.FromString(found.latest_step or b"").time_unix_ms == right_ms - 3_000
    for notice in found.notices:
        assert notice.time.timestamp() == pytest.approx(right_ms / 1000)
        assert notice.deadline is not None
        assert notice.deadline.timestamp() == pytest.approx(right_ms / 1000 + 120)


def test_each_batch_of_a_clock_that_jumps_is_corrected_by_itself() -> None:
    ahead = one(samples=[sample()])
    found = [read(ahead, receive_unix_ms=NOW_MS), read(ahead, receive_unix_ms=NOW_MS - 3_600_000)]

    assert [batch.first_unix_ms for batch in found] == [NOW_MS, NOW_MS - 3_600_000]


def test_a_batch_without_samples_is_placed_when_it_was_received() -> None:
    found = read(one(), receive_unix_ms=NOW_MS)

    assert (found.first_unix_ms, found.last_unix_ms) == (NOW_MS, NOW_MS)
    assert found.parts == ()
    assert (found.latest_sample, found.latest_step, found.faults) == (None, None, None)


def test_faults_are_kept_until_their_problem_is_over() -> None:
    broken = v1.CollectorFault(collector="gpu", problem="lost")
    over = v1.CollectorFault(collector="gpu")

    assert list(v1.Agent.FromString(read(one(faults=[broken])).faults or b"").faults) == [broken]
    assert read(one(faults=[over])).faults == b""


BAD = [
    (one(samples=[sample(cpu_fraction=math.nan)]), "batch.samples[0].cpu_fraction is nan"),
    (one(samples=[sample(), sample(network_rx_mbps=-1)]), "batch.samples[1].network_rx_mbps is -1"),
    (one(samples=[sample(memory_used_bytes=-5)]), "batch.samples[0].memory_used_bytes is -5"),
    (one(samples=[sample(interval_s=math.inf)]), "batch.samples[0].interval_s is inf"),
    (
        one(samples=[sample(gpus=[v1.GpuSample(), v1.GpuSample(power_w=math.inf)])]),
        "batch.samples[0].gpus[1].power_w is inf",
    ),
    (
        one(samples=[sample(gpus=[v1.GpuSample(gpu_index=-1)])]),
        "batch.samples[0].gpus[0].gpu_index",
    ),
    (
        one(steps=[v1.StepSample(time_unix_ms=NOW_MS, step_s=-1)]),
        "batch.steps[0].step_s is -1",
    ),
    (one(samples=[sample(time_unix_ms=0)]), "batch.samples.time_unix_ms is 0"),
    (
        one(samples=[sample(time_unix_ms=2**62)]),
        "batch.samples.time_unix_ms is 4611686018427387904",
    ),
    (one(steps=[v1.StepSample(time_unix_ms=-1)]), "batch.steps.time_unix_ms is -1"),
    (v1.Batch(sequence=1), "batch.send_time_unix_ms is 0"),
    (one(samples=[sample()] * 601), "batch.samples has 601 entries, at most 600"),
    (one(samples=[sample(gpus=[v1.GpuSample()] * 65)]), "gpus has 65 entries, at most 64"),
    (one(steps=[v1.StepSample()] * 6001), "batch.steps has 6001 entries, at most 6000"),
    (
        one(steps=[v1.StepSample(time_unix_ms=NOW_MS - 10_000 * i) for i in range(101)]),
        "batch.samples and batch.steps are of 101 intervals of 10 s, at most 100",
    ),
    (one(dropped_sample_count=-1), "batch.dropped_sample_count"),
    (one(dropped_sample_count=10**12 + 1), "from 0 to 1,000,000,000,000, got 1000000000001"),
    (one(notices=[v1.Notice(time_unix_ms=NOW_MS)]), "batch.notices.kind"),
    (one(notices=[v1.Notice(kind=v1.NOTICE_KIND_HINT)]), "batch.notices.time_unix_ms is 0"),
    (
        one(notices=[v1.Notice(kind=v1.NOTICE_KIND_HINT, time_unix_ms=NOW_MS, detail="x" * 1001)]),
        "notices.detail",
    ),
    (one(faults=[v1.CollectorFault(collector="\0")]), "batch.faults[0].collector"),
    (one(faults=[v1.CollectorFault(problem="x" * MAX_BATCH_BYTES)]), "at most 262,144"),
    (one(probes=[probe()] * 17), "batch.probes has 17 entries, at most 16"),
    (one(probes=[probe(time_unix_ms=0)]), "batch.probes.time_unix_ms is 0"),
    (one(probes=[probe(sent_mbps=math.nan)]), "batch.probes.sent_mbps is nan"),
    (one(probes=[probe(received_mbps=-1.0)]), "batch.probes.received_mbps is -1"),
    (one(probes=[probe(round_trip_s=math.inf)]), "batch.probes.round_trip_s is inf"),
    (one(probes=[probe(peer="a\nb")]), "batch.probes.peer must be at most 256"),
    (one(probes=[probe(command_id="x" * 257)]), "batch.probes.command_id must be at most 256"),
    (one(probes=[probe(problem="\0")]), "batch.probes.problem"),
    (one(probes=[probe(limited_by="luck")]), "batch.probes.limited_by must be rate-limit, cpu"),
]


@pytest.mark.parametrize(("message", "problem"), BAD, ids=[problem for _, problem in BAD])
def test_what_cannot_be_right_is_refused_by_name(message: v1.Batch, problem: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        read(message)

    assert problem in str(refusal.value)


def test_as_many_steps_and_intervals_as_are_allowed_are_taken() -> None:
    steps = [v1.StepSample(time_unix_ms=NOW_MS - 10_000 * (i % 100)) for i in range(6_000)]

    found = read(one(steps=steps))

    assert [part.step_count for part in found.parts] == [60] * 100


def test_the_time_of_a_probe_is_corrected_and_what_it_did_not_measure_is_absent() -> None:
    late_ms = NOW_MS + 60_000
    sent = probe(time_unix_ms=NOW_MS - 1_000, sent_mbps=940.0, limited_by="rate-limit")

    (found,) = read(one(probes=[sent]), receive_unix_ms=late_ms).probes

    assert found.time == datetime.fromtimestamp((late_ms - 1_000) / 1000, UTC)
    assert (found.sent_mbps, found.received_mbps, found.round_trip_s) == (940.0, None, None)
    assert (found.peer, found.limited_by, found.has_result) == ("10.0.0.2", "rate-limit", True)
    assert found.attainable_mbps is None  # more may be possible


def test_a_loss_that_diverged_is_taken() -> None:
    step = v1.StepSample(time_unix_ms=NOW_MS, step_s=1.0, loss=math.nan)

    assert read(one(steps=[step])).parts[0].step_count == 1
