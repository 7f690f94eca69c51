"""Parts for tests of reporting: clocks that can be set, readings, a reporter in its thread."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from spotwright_agent.commands import Command
from spotwright_agent.readings import HostSample, Notice, NoticeKind
from spotwright_agent.report.clock import Clock, ClockStamp
from spotwright_agent.report.facts import AgentFacts
from spotwright_agent.report.outbox import Outbox
from spotwright_agent.report.parcels import Parcel, ParcelKind
from spotwright_agent.report.session import Reporter, SessionPatience
from spotwright_agent.report.spool import Spool, SpoolLimits
from spotwright_agent.tls_files import TlsFiles

PATIENCE_S = 60.0  # far longer than anything here takes
LIMITS = SpoolLimits(keep_free_bytes=0)


class SetClock:
    """Clocks that a test sets."""

    def __init__(self, *, kernel_boot: str = "kernel-1") -> None:
        self.kernel_boot = kernel_boot
        self.offset_ms = time.time_ns() // 1_000_000 - 5_000_000
        self.since_boot_ms = 5_000_000

    def wall_ms(self) -> int:
        return self.offset_ms + self.since_boot_ms

    def boot_ms(self) -> int:
        return self.since_boot_ms


def sample(number: int, *, unix_ms: int | None = None) -> HostSample:
    """Return a sample that is known by its memory."""
    now_ms = time.time_ns() // 1_000_000 if unix_ms is None else unix_ms
    return HostSample(time_unix_ms=now_ms, interval_s=1.0, figures={"memory_used_bytes": number})


def notice(detail: str = "terminate") -> Notice:
    return Notice(
        kind=NoticeKind.INTERRUPTION,
        time_unix_ms=time.time_ns() // 1_000_000,
        deadline_unix_ms=None,
        source="aws",
        detail=detail,
    )


def parcel(
    number: int, *, clock: Clock, kind: ParcelKind = ParcelKind.TELEMETRY, gpu_count: int = 0
) -> Parcel:
    """Return a parcel with one sample, or one notice."""
    batch = v1.Batch()
    now_ms = clock.wall_ms()
    if kind is ParcelKind.NOTICE:
        batch.notices.add(
            kind=v1.NOTICE_KIND_HINT, time_unix_ms=now_ms, source="aws", detail=str(number)
        )
    else:
        gpus = [v1.GpuSample(gpu_index=i, memory_used_bytes=2**40) for i in range(gpu_count)]
        batch.samples.add(time_unix_ms=now_ms, interval_s=1, memory_used_bytes=number, gpus=gpus)
    return Parcel(
        document=batch.SerializeToString(),
        kind=kind,
        stamp=ClockStamp.of(clock),
        create_boot_ms=clock.boot_ms(),
        sample_count=len(batch.samples),
        first_ms=now_ms,
        last_ms=now_ms,
    )


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that must come."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, f"gave up waiting: {what}"
        time.sleep(0.02)


@dataclass
class Running:
    """A reporter at work."""

    outbox: Outbox
    spool: Spool
    reporter: Reporter
    commands: list[Command]
    facts: AgentFacts  # as told in the next session

    def until_all_acked(self) -> None:
        until(
            lambda: self.outbox.due_in_s() is None and not self.reporter.figures().spooled_batches,
            f"everything is acknowledged: {self.reporter.figures()}",
        )

    def until_connected(self) -> None:
        until(lambda: self.reporter.figures().connected, f"connected: {self.reporter.figures()}")


@contextmanager
def reporting(
    folder: Path,
    address: str,
    *,
    agent_id: str = "gpu-7",
    tls: TlsFiles | None = None,
    patience: SessionPatience | None = None,
    clock: Clock | None = None,
) -> Iterator[Running]:
    """Run a reporter in its thread and stop it."""
    commands: list[Command] = []
    outbox, spool = Outbox(clock), Spool(folder / "spool.db", limits=LIMITS, clock=clock)
    reporter = Reporter(
        outbox,
        spool,
        address=address,
        tls=tls,
        facts=lambda: running.facts,
        on_command=commands.append,
        patience=patience,
    )
    facts = AgentFacts(agent_id=agent_id, agent_version="test")
    running = Running(outbox, spool, reporter, commands, facts)
    stopping = threading.Event()
    thread = threading.Thread(target=reporter.run, args=(stopping,))
    thread.start()
    try:
        yield running
    finally:
        stopping.set()
        thread.join(PATIENCE_S)
        spool.close()
    assert not thread.is_alive()


def stored(
    address: str, *, agent_id: str = "gpu-7", channel: grpc.Channel | None = None
) -> list[int]:
    """Return the numbers of the samples that a daemon has, as often as it has them."""
    own = channel or grpc.insecure_channel(
        address, options=(("grpc.use_local_subchannel_pool", 1),)
    )
    with own:
        stub = TelemetryServiceStub(own)
        found: list[int] = []
        request = v1.ListSamplesRequest(agent_id=agent_id, page_size=10_000)
        while True:
            page = stub.ListSamples(request, timeout=20)
            found += [each.memory_used_bytes for each in page.samples]
            request.page_token = page.next_page_token
            if not request.page_token:
                return sorted(found)


def agent_of(address: str, *, agent_id: str = "gpu-7") -> v1.Agent:
    """Return what a daemon knows of an agent."""
    with grpc.insecure_channel(
        address, options=(("grpc.use_local_subchannel_pool", 1),)
    ) as channel:
        agents = TelemetryServiceStub(channel).ListAgents(v1.ListAgentsRequest(), timeout=20)
        return next(each for each in agents.agents if each.facts.agent_id == agent_id)
