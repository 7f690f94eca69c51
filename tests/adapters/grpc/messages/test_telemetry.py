import math
from datetime import UTC, datetime

import pytest

from spotwright.adapters.grpc.messages.probe import probe_from_proto, probe_to_proto
from spotwright.adapters.grpc.messages.telemetry import (
    agent_to_proto,
    command_from_proto,
    facts_from_proto,
    facts_to_proto,
    rows_of,
)
from spotwright.domain.errors import BadInputError
from spotwright.domain.telemetry import (
    AgentFacts,
    AgentNotice,
    AgentRecord,
    BatchKey,
    NetworkProbe,
    SampleRow,
    StoredBatch,
)
from spotwright.v1 import telemetry_pb2 as v1

FACTS = AgentFacts(
    agent_id="agent-1",
    boot_id="boot-1",
    agent_version="1.2",
    hostname="host",
    instance_id="i-1",
    instance_type="g5.xlarge",
    zone="use1-az1",
    market="spot",
    job_id="job",
    gpu_names=("A10G", "A10G"),
)


def test_facts_survive_the_way_there_and_back() -> None:
    assert facts_from_proto(facts_to_proto(FACTS)) == FACTS


def test_an_agent_that_never_sent_anything_has_no_figures() -> None:
    record = AgentRecord(
        facts=FACTS,
        session_id="",
        replica="",
        last_seen=None,
        clock_skew_s=0.0,
        last_sequence=0,
        dropped_sample_count=0,
        latest_sample=None,
        latest_step=None,
        notice=None,
        faults=None,
    )

    assert agent_to_proto(record, connected=False) == v1.Agent(facts=facts_to_proto(FACTS))


def test_a_probe_survives_the_way_there_and_back() -> None:
    time = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    for probe in (
        NetworkProbe(command_id="c", peer="p", time=time, sent_mbps=0.0, round_trip_s=0.5),
        NetworkProbe(command_id="", peer="p", time=time, received_mbps=1.5, limited_by="cpu"),
        NetworkProbe(command_id="c", peer="p", time=time, problem="two\nlines"),
    ):
        message = probe_to_proto(probe)

        assert message.time_unix_ms == time.timestamp() * 1000
        assert probe_from_proto(message, time=time, where="probes") == probe


def test_an_agent_has_the_notice_that_holds() -> None:
    time = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    record = AgentRecord(
        facts=FACTS,
        session_id="s",
        replica="r",
        last_seen=time,
        clock_skew_s=-3.5,
        last_sequence=9,
        dropped_sample_count=2,
        latest_sample=v1.HostSample(cpu_fraction=0.5).SerializeToString(),
        latest_step=v1.StepSample(step=4).SerializeToString(),
        notice=AgentNotice(
            kind="interruption", time=time, deadline=None, source="aws", detail="terminate"
        ),
        faults=v1.Agent(faults=[v1.CollectorFault(collector="efa")]).SerializeToString(),
    )

    found = agent_to_proto(record, connected=True)

    assert found.notice == v1.Notice(
        kind=v1.NOTICE_KIND_INTERRUPTION,
        time_unix_ms=1_777_636_800_250,
        source="aws",
        detail="terminate",
    )
    assert found.last_seen_time.ToMilliseconds() == 1_777_636_800_250
    assert (found.latest_sample.cpu_fraction, found.latest_step.step) == (0.5, 4)
    assert [fault.collector for fault in found.faults] == ["efa"]
    assert (found.connected, found.clock_skew_s, found.last_sequence) == (True, -3.5, 9)


def test_rows_have_a_line_for_each_gpu_and_one_for_a_host_without() -> None:
    with_gpus = v1.HostSample(time_unix_ms=10_000, interval_s=1.0, cpu_fraction=0.5)
    with_gpus.gpus.add(gpu_index=3, utilization_fraction=0.25, memory_used_bytes=7)
    with_gpus.gpus.add(gpu_index=4, power_w=0.0)
    bare = v1.HostSample(time_unix_ms=11_000, interval_s=1.0, memory_used_bytes=5)
    batch = StoredBatch(
        key=BatchKey("a", "b", 2),
        receive_unix_ms=8_000,
        clock_skew_s=2.5,
        document=v1.Batch(samples=[with_gpus, bare]).SerializeToString(),
    )

    first, second, third = rows_of(batch)

    nothing = SampleRow(*(None for _ in SampleRow._fields))  # type: ignore[arg-type]
    common = nothing._replace(agent_id="a", boot_id="b", sequence=2, interval_s=1.0)
    host = common._replace(time_unix_ms=7_500, cpu_fraction=0.5)
    assert first == host._replace(gpu_index=3, utilization_fraction=0.25, memory_used_bytes=7)
    assert second == host._replace(gpu_index=4, power_w=0.0)
    assert third == common._replace(time_unix_ms=8_500, host_memory_used_bytes=5)


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (v1.Command(), "command.action"),
        (v1.Command(set_sampling=v1.Sampling(interval_s=0.05, batch_s=5)), "interval_s"),
        (v1.Command(set_sampling=v1.Sampling(interval_s=61, batch_s=5)), "interval_s"),
        (v1.Command(set_sampling=v1.Sampling(interval_s=1, batch_s=0.5)), "batch_s"),
        (v1.Command(set_sampling=v1.Sampling(interval_s=1, batch_s=float("nan"))), "batch_s"),
        (v1.Command(drain=v1.Drain(reconnect_after_s=-1)), "reconnect_after_s"),
        (v1.Command(checkpoint=v1.Checkpoint(seconds_left=float("inf"))), "seconds_left"),
        (v1.Command(checkpoint=v1.Checkpoint(interval_s=0)), "checkpoint.interval_s"),
        (v1.Command(probe=v1.Probe(duration_s=1, max_mbps=1)), "probe.peer"),
        *(
            (v1.Command(probe=v1.Probe(peer="h", duration_s=s, max_mbps=1)), "from 0.2 to 10, got")
            for s in (0.1, 10.5, math.nan)
        ),
        *(
            (v1.Command(probe=v1.Probe(peer="h", duration_s=1, max_mbps=m)), "from 1 to 400,000,")
            for m in (0.0, 0.5, 400_100, math.inf)
        ),
    ],
)
def test_a_command_that_no_agent_could_carry_out_is_refused(
    command: v1.Command, field: str
) -> None:
    with pytest.raises(BadInputError, match=field):
        command_from_proto(command, command_id="c")


@pytest.mark.parametrize(
    "command",
    [
        v1.Command(set_sampling=v1.Sampling(interval_s=0.1, batch_s=60)),
        v1.Command(drain=v1.Drain()),
        v1.Command(checkpoint=v1.Checkpoint()),
        v1.Command(probe=v1.Probe(peer="10.0.0.1:80", duration_s=0.2, max_mbps=1)),
        v1.Command(probe=v1.Probe(peer="10.0.0.1:80", duration_s=10, max_mbps=400_000)),
    ],
)
def test_a_command_gets_its_name_from_the_daemon(command: v1.Command) -> None:
    command.command_id = "what the caller made up"

    assert command_from_proto(command, command_id="c").command_id == "c"
