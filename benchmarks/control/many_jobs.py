"""One daemon that steers 1,000 jobs while clouds give 10 notices a second: `python -m ...`.

Each job has a host whose agent sends every 5 s. Notices come to one job after another, and each is
a decision. What the daemon's processes take of a processor is read from the kernel.
"""

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from benchmarks.daemon.load import raise_file_limit
from spotwright.adapters.store.sql_store import open_store
from spotwright.client import Client
from spotwright.domain.job_run import JobCourse, JobRun, JobState, Progress, Steer
from spotwright.domain.offer import Pool
from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from tests.cli.small_job import small_job
from tests.daemon_process import DaemonProcess
from tests.e2e.steered_job import planned_job

TARGET_FRACTION = 0.5
_BATCH_S = 5.0
_SETTLE_S = 30.0
_DECIDED = ("replanned", "waiting", "goal-out-of-reach")


def many_jobs(
    job_count: int = 1000, *, events_per_s: float = 10.0, lasts_s: float = 60.0
) -> list[tuple[str, str]]:
    """Return the figures as rows of a table."""
    raise_file_limit()
    with tempfile.TemporaryDirectory(prefix="sw-") as name:
        daemon = DaemonProcess(Path(name))
        pool = _prepared(daemon, Path(name), job_count)
        try:
            return asyncio.run(
                _measured(daemon, pool, job_count, events_per_s=events_per_s, lasts_s=lasts_s)
            )
        finally:
            daemon.stop()


def _prepared(daemon: DaemonProcess, folder: Path, job_count: int) -> Pool:
    """Keep a plan and its jobs, and leave the daemon running."""
    job = small_job(folder)
    daemon.start()
    with Client(daemon.address) as client:
        planned = planned_job(client, job)
    daemon.stop()
    store, now = open_store(daemon.store_url), datetime.now(UTC)
    steps = planned.plan.prediction.steps_to_goal
    run = JobRun(
        job_id="", name="job", plan_id=planned.plan_id, state=JobState.RUNNING,
        create_time=now, update_time=now, start_time=now, progress=Progress(steps=0.01 * steps),
        progress_fraction=0.01, course=JobCourse(steer=Steer.ANNOUNCE, is_told=True),
    )  # fmt: skip
    for number in range(job_count):
        done = 0.2 * number / job_count  # each is another question
        store.add_job(replace(run, job_id=f"job-{number}", progress_fraction=done), [])
    store.close()
    daemon.start()
    (group,) = planned.plan.prediction.fleet.workers
    assert group.offer is not None
    return group.offer.pool


async def _measured(
    daemon: DaemonProcess, pool: Pool, job_count: int, *, events_per_s: float, lasts_s: float
) -> list[tuple[str, str]]:
    agents = [_Agent(number, _channel(daemon.address), pool) for number in range(job_count)]
    sending = [asyncio.create_task(agent.run()) for agent in agents]
    await asyncio.sleep(_SETTLE_S)
    quiet = await _taken(daemon, lasts_s / 2)
    giving = asyncio.create_task(_give_notices(agents, events_per_s))
    busy = await _taken(daemon, lasts_s)
    giving.cancel()
    await asyncio.sleep(5.0)
    for task in sending:
        task.cancel()
    decided = sum(agent.noticed for agent in agents)
    store = open_store(daemon.store_url)
    told = sum(
        any(event.kind in _DECIDED for event in store.events(f"job-{number}", limit=100))
        for number in range(job_count)
    )
    store.close()
    return [
        ("jobs, notices per second", f"{job_count}, {events_per_s:g}"),
        ("nothing happens: daemon", f"{quiet[0]:.1%} of a core"),
        ("notices: daemon, without the process that decides", f"{busy[0]:.1%} of a core"),
        (
            "notices: all of its processes",
            f"{sum(busy):.1%} of a core (target {TARGET_FRACTION:.0%})",
        ),
        ("notices given, jobs decided about", f"{decided}, {told}"),
    ]


def _channel(address: str) -> grpc.aio.Channel:
    """Return a connection of its own, as each host has: new sessions are let in by connection."""
    return grpc.aio.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])


async def _give_notices(agents: "list[_Agent]", events_per_s: float) -> None:
    for agent in agents:
        agent.notice()
        await asyncio.sleep(1 / events_per_s)


async def _taken(daemon: DaemonProcess, lasts_s: float) -> tuple[float, float]:
    """Return what the daemon takes of a core, and what its other processes do."""
    before, started_s = _cpu_s(daemon.pid), time.monotonic()
    await asyncio.sleep(lasts_s)
    after, passed_s = _cpu_s(daemon.pid), time.monotonic() - started_s
    return (after[0] - before[0]) / passed_s, (after[1] - before[1]) / passed_s


def _cpu_s(pid: int) -> tuple[float, float]:
    """Return the processor seconds of a process, and of those it started."""
    own, others = 0.0, 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        used_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if int(path.parent.name) == pid:
            own = used_s
        elif int(fields[1]) == pid:
            others += used_s
    return own, others


class _Agent:
    """Says every few seconds that it is there."""

    def __init__(self, number: int, channel: grpc.aio.Channel, pool: Pool) -> None:
        self._number, self._channel, self._pool = number, channel, pool
        self._sequence = 0
        self._call: Any = None
        self._waiting: list[v1.Notice] = []
        self._wake = asyncio.Event()
        self.noticed = 0

    async def run(self) -> None:
        await asyncio.sleep(self._number % 50 * _BATCH_S / 50)
        while True:  # sessions are let in at a limited rate
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await self._session()
            await asyncio.sleep(1.0 + self._number % 10 / 10)

    async def _session(self) -> None:
        call = TelemetryServiceStub(self._channel).Session()
        facts = v1.AgentFacts(
            agent_id=f"agent-{self._number}", boot_id="boot", job_id=f"job-{self._number}",
            instance_id=f"i-{self._number}", instance_type=self._pool.instance_type,
            zone=self._pool.zone, market=str(self._pool.market),
        )  # fmt: skip
        await call.write(v1.SessionRequest(hello=facts))
        reading = asyncio.create_task(_read_all(call))
        try:
            while True:
                self._wake.clear()
                await call.write(v1.SessionRequest(batch=self._batch()))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _BATCH_S)
        finally:
            reading.cancel()
            call.cancel()

    def notice(self) -> None:
        now_ms = int(time.time() * 1000)
        self._waiting.append(
            v1.Notice(
                kind=v1.NOTICE_KIND_INTERRUPTION,
                time_unix_ms=now_ms,
                deadline_unix_ms=now_ms + 120_000,
                source="aws",
            )
        )
        self.noticed += 1
        self._wake.set()

    def _batch(self) -> v1.Batch:
        self._sequence += 1
        now_ms = int(time.time() * 1000)
        notices, self._waiting = self._waiting, []
        return v1.Batch(
            sequence=self._sequence, send_time_unix_ms=now_ms, notices=notices,
            samples=[v1.HostSample(time_unix_ms=now_ms, interval_s=1.0)],
        )  # fmt: skip


async def _read_all(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    for name, value in many_jobs(parser.parse_args().jobs):
        print(f"{name:<52} {value}")


if __name__ == "__main__":
    main()
