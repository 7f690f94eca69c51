"""The reporter against a real daemon."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from spotwright_agent.commands import SetSampling
from spotwright_agent.report.channel import is_loopback
from spotwright_agent.report.clock import HostClock
from spotwright_agent.report.session import Reporter
from spotwright_agent.report.spool import Spool
from spotwright_agent.settings import SettingsError
from tests.agent.report.reporting import (
    LIMITS,
    Running,
    SetClock,
    agent_of,
    notice,
    parcel,
    reporting,
    sample,
    stored,
    until,
)
from tests.daemon_process import running_daemon

_SMALL_AGENT = """
import sys, time
from pathlib import Path
from tests.agent.report.reporting import reporting, sample
folder, address, first = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with reporting(folder, address) as running:
    running.outbox.set_batch_s(0.5)
    for number in range(first, first + 10_000):
        running.outbox.add_sample(sample(number))
        time.sleep(0.01)
        if number % 10 == 0:
            running.outbox.set_batch_s(0.5)
            print(number, flush=True)
"""


def _feed(running: Running, first: int, last: int, *, pause_s: float = 0.0) -> None:
    for number in range(first, last + 1):
        running.outbox.add_sample(sample(number))
        if number % 10 == 0:
            running.outbox.set_batch_s(0.5)
        time.sleep(pause_s)


def test_five_restarts_of_the_daemon_lose_and_repeat_nothing(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon, reporting(tmp_path, daemon.address) as running:
        for number in range(5):
            _feed(running, number * 100 + 1, number * 100 + 60, pause_s=0.01)
            daemon.kill() if number % 2 else daemon.stop()
            _feed(running, number * 100 + 61, number * 100 + 100, pause_s=0.01)
            daemon.start()
        running.until_all_acked()

        assert stored(daemon.address) == list(range(1, 501))
        assert running.reporter.figures().dropped_samples == 0


def test_what_was_gathered_without_a_daemon_is_told_by_the_next_process(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon:
        address = daemon.address
        daemon.stop()
        with reporting(tmp_path, address) as running:
            _feed(running, 1, 50)
            until(lambda: running.spool.batch_count, "something is spooled")
        daemon.start()
        with reporting(tmp_path, address) as running:
            running.until_connected()
            running.until_all_acked()

        assert stored(address) == list(range(1, 51))


def test_an_agent_that_is_killed_leaves_no_row_twice_and_no_gap(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon:
        told = 0
        for _ in range(3):
            agent = subprocess.Popen(
                [sys.executable, "-c", _SMALL_AGENT, tmp_path, daemon.address, str(told + 10_001)],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert agent.stdout is not None
            for _ in range(12):
                told = int(agent.stdout.readline())
            agent.send_signal(signal.SIGKILL)
            agent.wait()
            agent.stdout.close()
        with reporting(tmp_path, daemon.address) as running:
            running.until_connected()
            running.until_all_acked()

        found = stored(daemon.address)
        assert len(found) == len(set(found))
        for run in {number // 10_000 for number in found}:
            of_run = [number for number in found if number // 10_000 == run]
            assert of_run == list(range(of_run[0], of_run[-1] + 1))
            assert len(of_run) >= 50  # what was cut is there; the last half second was not


def test_a_notice_overtakes_a_long_replay(tmp_path: Path) -> None:
    clock = HostClock()
    spool = Spool(tmp_path / "spool.db", limits=LIMITS, clock=clock)
    for number in range(1, 241):
        batch = v1.Batch()
        then_ms = clock.wall_ms() - (241 - number) * 5_000
        for second in range(5):
            batch.samples.add(
                time_unix_ms=then_ms + second * 1_000, interval_s=1, memory_used_bytes=number
            )
        one = parcel(number, clock=clock)
        # Too many samples to be joined. An hour of spool is joined to fewer batches than these.
        fields = {name: getattr(one, name) for name in one.__slots__}
        fields |= {"document": batch.SerializeToString(), "sample_count": 400}
        spool.put(type(one)(**fields))
    spool.close()
    with running_daemon(tmp_path, "--raw-window", "2h") as daemon:
        with reporting(tmp_path, daemon.address) as running:
            running.until_connected()
            until(lambda: running.reporter.figures().acked_batches >= 3, "the replay began")
            running.outbox.add_notice(notice("spot interruption"))
            until(lambda: agent_of(daemon.address).notice.source == "aws", "the notice is known")
            left = running.reporter.figures().spooled_batches
            running.until_all_acked()

        assert left > 200  # it did not wait for them
        assert stored(daemon.address) == sorted(list(range(1, 241)) * 5)


def test_small_batches_are_joined_for_a_replay(tmp_path: Path) -> None:
    clock = HostClock()
    spool = Spool(tmp_path / "spool.db", limits=LIMITS, clock=clock)
    for number in range(1, 301):
        spool.put(parcel(number, clock=clock))
    spool.close()
    with running_daemon(tmp_path) as daemon, reporting(tmp_path, daemon.address) as running:
        running.until_connected()
        running.until_all_acked()

        assert stored(daemon.address) == list(range(1, 301))
        assert running.reporter.figures().sent_batches < 10


def test_a_batch_that_the_daemon_does_not_take_is_left_out_and_counted(tmp_path: Path) -> None:
    clock = SetClock()
    spool = Spool(tmp_path / "spool.db", limits=LIMITS, clock=clock)
    bad = v1.Batch()
    bad.samples.add(time_unix_ms=clock.wall_ms(), interval_s=1, cpu_fraction=float("nan"))
    for number in range(1, 8):
        clock.offset_ms += 100_000  # of another clock each: not joined
        one = parcel(number, clock=clock)
        if number == 4:
            fields = {name: getattr(one, name) for name in one.__slots__}
            one = type(one)(**(fields | {"document": bad.SerializeToString()}))
        spool.put(one)
    spool.close()
    with running_daemon(tmp_path) as daemon, reporting(tmp_path, daemon.address) as running:
        running.until_connected()
        running.until_all_acked()
        _feed(running, 8, 10)
        until(lambda: running.reporter.figures().sent_batches > 6, "one more was sent")
        running.until_all_acked()

        assert stored(daemon.address) == [1, 2, 3, 5, 6, 7, 8, 9, 10]
        assert agent_of(daemon.address).dropped_sample_count == 1


def test_two_agents_with_one_name_are_told_and_keep_apart(tmp_path: Path) -> None:
    with (
        running_daemon(tmp_path) as daemon,
        reporting(tmp_path / "a", daemon.address) as first,
    ):
        first.until_connected()
        with reporting(tmp_path / "b", daemon.address) as second:
            second.until_connected()
            until(lambda: not first.reporter.figures().connected, "the first was thrown out")
            assert "same name" in first.reporter.figures().last_error
            first.outbox.add_notice(notice())  # not even that makes it come back at once
            time.sleep(2)
            assert first.reporter.figures().session_count == 1
            assert second.reporter.figures().session_count == 1


def test_samples_of_a_clock_that_jumped_are_stored_at_their_time(tmp_path: Path) -> None:
    clock, right = SetClock(), HostClock()
    clock.offset_ms, clock.since_boot_ms = right.wall_ms() - 3_600_000, 0  # an hour behind
    with running_daemon(tmp_path) as daemon:
        address = daemon.address
        daemon.stop()
        with reporting(tmp_path, address, clock=clock) as running:
            running.outbox.add_sample(sample(1, unix_ms=clock.wall_ms()))
            clock.offset_ms += 3_600_000  # set right
            running.outbox.add_sample(sample(2, unix_ms=clock.wall_ms()))
            until(lambda: running.spool.batch_count >= 2, "both are spooled")
            daemon.start()
            clock.since_boot_ms = right.wall_ms() - clock.offset_ms
            running.until_all_acked()
        times = _times(address)
        assert all(abs(each - right.wall_ms()) < 120_000 for each in times)
        assert len(times) == 2


def _times(address: str) -> list[int]:
    with grpc.insecure_channel(address) as channel:
        page = TelemetryServiceStub(channel).ListSamples(
            v1.ListSamplesRequest(agent_id="gpu-7"), timeout=20
        )
    return [each.time_unix_ms for each in page.samples]


def test_faults_are_replaced_and_cleared_at_the_daemon(tmp_path: Path) -> None:
    def faults() -> dict[str, str]:
        found = agent_of(daemon.address).faults
        return {each.collector: each.problem for each in found}

    with running_daemon(tmp_path) as daemon, reporting(tmp_path, daemon.address) as running:
        running.until_connected()
        running.outbox.set_faults({"gpu": "lost", "rdma": "absent"})
        until(lambda: faults() == {"gpu": "lost", "rdma": "absent"}, "both are known")
        running.outbox.set_fault("gpu", "")
        until(lambda: faults() == {"rdma": "absent"}, "one is left")
        running.outbox.set_fault("rdma", "")
        until(lambda: faults() == {}, "none is left")


def test_the_daemon_says_how_often_and_a_drain_ends_the_session(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon, reporting(tmp_path, daemon.address) as running:
        running.until_connected()
        until(lambda: running.commands, "sampling is told")
        assert running.commands[0] == SetSampling(interval_s=1.0, batch_s=5.0)
        running.outbox.add_sample(sample(1))
        with grpc.insecure_channel(daemon.address) as channel:
            TelemetryServiceStub(channel).SendCommand(
                v1.SendCommandRequest(
                    agent_id="gpu-7", command=v1.Command(drain=v1.Drain(reconnect_after_s=2.0))
                ),
                timeout=20,
            )
        until(lambda: not running.reporter.figures().connected, "the session ended")
        assert stored(daemon.address) == [1]
        until(lambda: running.reporter.figures().session_count == 2, "it came back")


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:1", True), ("[::1]:1", True), ("localhost:1", True),
     ("10.0.0.5:1", False), ("gpu-head:7443", False), ("127.0.0.1.evil.org:1", False)],
)  # fmt: skip
def test_only_this_machine_is_reached_in_the_clear(
    address: str, expected: bool, tmp_path: Path
) -> None:
    assert is_loopback(address) is expected
    if not expected:
        with pytest.raises(SettingsError, match="TLS"), reporting(tmp_path, address):
            raise AssertionError(Reporter)
