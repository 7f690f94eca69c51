"""What is gathered becomes batches that the daemon's own reader takes."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotwright.adapters.grpc.telemetry.batch_reader import Sender, read_batch
from spotwright.domain.telemetry import ReceivedBatch
from spotwright.v1 import telemetry_pb2 as v1
from spotwright_agent.commands import Checkpoint, Probe, SetSampling
from spotwright_agent.readings import (
    GpuReading,
    HostFacts,
    HostSample,
    Notice,
    NoticeKind,
    PcieSource,
    ProbeResult,
    StepReading,
)
from spotwright_agent.report.clock import ClockStamp
from spotwright_agent.report.facts import AgentFacts
from spotwright_agent.report.messages import command_from_proto, facts_to_proto, gpu_to_proto
from spotwright_agent.report.outbox import Outbox
from spotwright_agent.report.packing import Joining
from spotwright_agent.report.parcels import Parcel, ParcelKind
from tests.agent.report.reporting import SetClock, notice, sample

_SENDER = Sender("gpu-7", "boot-1")
_FIGURES = st.one_of(st.none(), st.floats(), st.floats(0, 1e6))
_COUNTS = st.one_of(st.none(), st.integers(-(2**70), 2**70))
_TIMES = st.one_of(st.integers(-(2**70), 2**70), st.integers(1_700_000_000_000, 1_900_000_000_000))
_TEXTS = st.text(max_size=1_200)


def _gpus() -> st.SearchStrategy[GpuReading]:
    return st.builds(
        GpuReading, gpu_index=st.integers(-(2**40), 2**40), utilization_fraction=_FIGURES,
        memory_used_bytes=_COUNTS, pcie_rx_mbps=_FIGURES, throttle_reasons=_COUNTS,
        pcie_source=st.sampled_from([None, *PcieSource]), last_xid=_COUNTS,
        temperature_c=_FIGURES, power_w=_FIGURES,
    )  # fmt: skip


def _samples() -> st.SearchStrategy[HostSample]:
    figures = st.fixed_dictionaries(
        {}, optional={"cpu_fraction": _FIGURES, "memory_used_bytes": _COUNTS,
                      "network_rx_mbps": _FIGURES, "gpus": st.lists(_gpus(), max_size=3)},
    )  # fmt: skip
    return st.builds(HostSample, time_unix_ms=_TIMES, interval_s=st.floats(), figures=figures)


def _steps() -> st.SearchStrategy[StepReading]:
    return st.builds(
        StepReading, time_unix_ms=_TIMES, rank=st.integers(-2, 2**40),
        step=st.integers(-2, 2**70), step_s=st.floats(), data_wait_s=_FIGURES,
        samples=_FIGURES, loss=_FIGURES,
    )  # fmt: skip


def _notices() -> st.SearchStrategy[Notice]:
    return st.builds(
        Notice, kind=st.sampled_from(NoticeKind), time_unix_ms=_TIMES,
        deadline_unix_ms=st.one_of(st.none(), _TIMES), deadline_by_host_clock=st.booleans(),
        source=_TEXTS, detail=_TEXTS,
    )  # fmt: skip


def _read(parcel: Parcel, clock: SetClock, *, receive_unix_ms: int) -> ReceivedBatch:
    batch = v1.Batch.FromString(parcel.document)
    batch.sequence, batch.send_time_unix_ms = 1, parcel.stamp.now_ms(clock)
    return read_batch(batch, sender=_SENDER, receive_unix_ms=receive_unix_ms)


@settings(deadline=None)
@given(
    samples=st.lists(_samples(), max_size=6),
    steps=st.lists(_steps(), max_size=6),
    notices=st.lists(_notices(), max_size=20),
    faults=st.dictionaries(_TEXTS, _TEXTS, max_size=5),
)
def test_the_daemon_takes_whatever_is_read(
    samples: list[HostSample],
    steps: list[StepReading],
    notices: list[Notice],
    faults: dict[str, str],
) -> None:
    clock = SetClock()
    outbox = Outbox(clock)
    for each in samples:
        outbox.add_sample(each)
    for step in steps:
        outbox.add_step(step)
    for told in notices:
        outbox.add_notice(told)
    outbox.set_faults(faults)

    parcels, dropped = outbox.cut()

    read = [_read(each, clock, receive_unix_ms=clock.wall_ms()) for each in parcels]
    kept = sum(part.host_sample_count + part.step_count for each in read for part in each.parts)
    assert kept + dropped == len(samples) + len(steps)
    assert sum(len(each.notices) for each in read) == len(notices)
    assert outbox.cut() == ([], 0)


@pytest.mark.parametrize(
    ("count", "gpus", "spacing_ms"), [(600, 8, 1_000), (1_200, 64, 1_000), (300, 1, 60_000)]
)
def test_much_is_split_into_batches_that_the_daemon_takes(
    count: int, gpus: int, spacing_ms: int
) -> None:
    clock = SetClock()
    outbox = Outbox(clock)
    readings = tuple(
        GpuReading(gpu_index=i, utilization_fraction=0.5, memory_used_bytes=2**36, power_w=300.0)
        for i in range(gpus)
    )
    for number in range(count):
        time_ms = clock.wall_ms() + number * spacing_ms
        outbox.add_sample(
            HostSample(time_unix_ms=time_ms, interval_s=1, figures={"gpus": readings})
        )
        for _ in range(10):
            outbox.add_step(StepReading(time_unix_ms=time_ms, rank=0, step=number, step_s=0.1))

    parcels, dropped = outbox.cut()

    read = [_read(each, clock, receive_unix_ms=clock.wall_ms() + 12_345) for each in parcels]
    assert len(read) > 1
    kept = sum(part.host_sample_count + part.step_count for each in read for part in each.parts)
    assert kept + dropped == 11 * count


def test_what_nobody_fetches_is_bounded_and_counted() -> None:
    outbox = Outbox(SetClock())
    for number in range(1_500):
        outbox.add_sample(sample(number))

    parcels, dropped = outbox.cut()

    assert sum(each.sample_count for each in parcels) == 1_200
    assert dropped == 300


def test_a_clock_that_jumps_cuts_the_batch_and_every_sample_keeps_its_true_time() -> None:
    clock = SetClock()
    true_ms = clock.wall_ms()  # at the start; afterwards it is true_ms + what passed
    outbox, passed = Outbox(clock), []
    for jump_ms in (0, 0, 3_600_000, -86_400_000, 900, 5_000):
        clock.offset_ms += jump_ms
        outbox.add_sample(sample(1, unix_ms=clock.wall_ms()))
        passed.append(clock.since_boot_ms - 5_000_000)
        clock.since_boot_ms += 1_000

    parcels, _ = outbox.cut()
    clock.since_boot_ms += 600_000
    receive_ms = true_ms + clock.since_boot_ms - 5_000_000
    read = [_read(each, clock, receive_unix_ms=receive_ms) for each in parcels]

    assert len(parcels) == 4
    for batch, parcel in zip(read, parcels, strict=True):
        sent_ms = v1.Batch.FromString(parcel.document).samples[0].time_unix_ms
        corrected_ms = sent_ms - round(batch.clock_skew_s * 1000)
        assert min(abs(corrected_ms - true_ms - each) for each in passed) <= 1_000
    firsts = [batch.first_unix_ms for batch in read]
    assert all(1_000 <= later - earlier <= 3_000 for earlier, later in pairwise(firsts))


def test_after_a_reboot_the_wall_clock_is_the_best_there_is() -> None:
    clock, later = SetClock(), SetClock(kernel_boot="kernel-2")
    stamp = ClockStamp.of(clock)
    later.since_boot_ms = 10
    assert stamp.now_ms(later) == later.wall_ms()


def test_notices_wake_whoever_reports_and_have_a_batch_of_their_own() -> None:
    outbox, woken = Outbox(SetClock()), []
    outbox.on_ready(lambda: woken.append(1))
    outbox.add_sample(sample(1))
    assert not woken
    outbox.add_notice(notice())

    assert outbox.due_in_s() == 0.0
    assert woken
    assert [each.kind for each in outbox.cut().parcels] == [
        ParcelKind.NOTICE, ParcelKind.TELEMETRY,
    ]  # fmt: skip


def test_faults_are_told_whole_when_one_changes_and_once() -> None:
    def told() -> list[dict[str, str]]:
        batches = [v1.Batch.FromString(each.document) for each in outbox.cut().parcels]
        return [{f.collector: f.problem for f in each.faults} for each in batches]

    outbox = Outbox(SetClock())
    outbox.set_faults({"gpu": "lost", "rdma": "absent"})
    assert told() == [{"gpu": "lost", "rdma": "absent"}]
    outbox.set_fault("gpu", "lost")
    assert told() == []
    outbox.repeat_faults()
    assert told() == [{"gpu": "lost", "rdma": "absent"}]
    outbox.set_faults({"gpu": "", "rdma": ""})
    assert told() == [{"": ""}]


def test_joined_parcels_hold_what_their_parts_held() -> None:
    clock = SetClock()
    parts = []
    for number in range(3):
        outbox = Outbox(clock)
        outbox.add_sample(sample(number, unix_ms=clock.wall_ms()))
        parts += outbox.cut().parcels

    joining = Joining(parts[0])
    assert joining.take_in(parts[1])
    assert joining.take_in(parts[2])
    whole = v1.Batch.FromString(joining.whole().document)
    assert [each.memory_used_bytes for each in whole.samples] == [0, 1, 2]
    clock.offset_ms += 2_000
    other = Outbox(clock)
    other.add_sample(sample(4, unix_ms=clock.wall_ms()))
    assert not joining.take_in(other.cut().parcels[0])
    assert joining.whole().sample_count == 3


def test_every_figure_of_a_gpu_arrives_as_it_was_read() -> None:
    figures = {name: 3 + i for i, name in enumerate(GpuReading.__slots__)}
    figures["pcie_source"] = PcieSource.SAMPLED  # type: ignore[assignment]
    message = gpu_to_proto(GpuReading(**figures))  # type: ignore[arg-type]
    for name, value in figures.items():
        expected = v1.PCIE_SOURCE_SAMPLED if name == "pcie_source" else value
        assert getattr(message, name) == expected
        assert name in v1.GpuSample.DESCRIPTOR.fields_by_name
    assert {field.name for field, _ in message.ListFields()} == set(
        v1.GpuSample.DESCRIPTOR.fields_by_name
    )


def test_facts_probes_and_commands_are_the_same_on_both_sides() -> None:
    facts = AgentFacts(
        agent_id="gpu-7", hostname="h\n" * 300, host=HostFacts(zone="use1-az1", market="spot"),
        gpu_names=("H100",) * 80,
    )  # fmt: skip
    hello = facts_to_proto(facts, boot_id="b")
    assert (hello.zone, hello.market, len(hello.hostname)) == ("use1-az1", "spot", 256)
    assert hello.hostname.isprintable()
    assert len(hello.gpu_names) == 64
    outbox = Outbox(SetClock())
    outbox.add_probe(
        ProbeResult(peer="p", time_unix_ms=10**12, sent_mbps=9.5, received_mbps=math.nan)
    )
    probe = v1.Batch.FromString(outbox.cut().parcels[0].document).probes[0]
    assert (probe.peer, probe.sent_mbps, probe.HasField("received_mbps")) == ("p", 9.5, False)
    asked = [
        v1.Command(set_sampling=v1.Sampling(interval_s=0.5, batch_s=2)),
        v1.Command(checkpoint=v1.Checkpoint(seconds_left=90)),
        v1.Command(command_id="c", probe=v1.Probe(peer="p", duration_s=2, max_mbps=100)),
        v1.Command(set_sampling=v1.Sampling(interval_s=math.nan, batch_s=2)),
        v1.Command(),
    ]
    assert [command_from_proto(each) for each in asked] == [
        SetSampling(interval_s=0.5, batch_s=2.0),
        Checkpoint(seconds_left=90.0, interval_s=None),
        Probe(command_id="c", peer="p", duration_s=2.0, max_mbps=100.0),
        None,
        None,
    ]


def test_a_clock_that_jumps_there_and_back_loses_no_sample() -> None:
    clock = SetClock()
    outbox = Outbox(clock)
    for number, jump_ms in ((1, 3_600_000), (2, -3_600_000), (3, 0)):
        outbox.add_sample(sample(number))
        clock.offset_ms += jump_ms

    parcels, dropped_count = outbox.cut()

    assert sum(each.sample_count for each in parcels) == 3
    assert dropped_count == 0
