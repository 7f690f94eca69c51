"""Processes that die, ports that are taken, readers that do not read; and what the daemon says."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from spotwright.v1 import job_pb2, planner_pb2, telemetry_pb2
from spotwright.v1.job_pb2_grpc import JobServiceStub
from spotwright.v1.planner_pb2_grpc import PlannerServiceStub
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from tests.cli.command import spotwright
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.agent_client import PATIENCE_S, plain_channel, sending_fleet
from tests.e2e.bad_requests import JOB_TEXT
from tests.e2e.daemon_health import OF_GRPC_ITSELF, metric
from tests.e2e.test_bad_input import rss_bytes

_EXAMPLE = Path(__file__).parents[2] / "examples" / "bert.yaml"


async def _search(address: str, *, short: bool) -> planner_pb2.CreatePlanResponse:
    """Ask for a plan that takes an instant, or as long as it may."""
    text = JOB_TEXT if short else _EXAMPLE.read_text(encoding="utf-8")
    job = planner_pb2.JobDocument(text=text, name="job.yaml")
    request = planner_pb2.CreatePlanRequest(
        job=job, gap_fraction=1e-12, time_limit_s=60, with_frontier=not short
    )
    async with plain_channel(address) as channel:
        return await PlannerServiceStub(channel).CreatePlan(request, timeout=PATIENCE_S)


async def _until_searching(daemon: DaemonProcess) -> None:
    running = 'spotwright_plan_lane_running{lane="search"}'
    async with asyncio.timeout(PATIENCE_S):
        while await asyncio.to_thread(metric, daemon.told["metrics"], running) < 1:
            await asyncio.sleep(0.05)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def test_a_worker_killed_during_a_search_is_told_and_replaced(tmp_path: Path) -> None:
    async def scene(daemon: DaemonProcess) -> None:
        search = asyncio.create_task(_search(daemon.address, short=False))
        await _until_searching(daemon)
        for child in _children(daemon.pid):
            os.kill(child, signal.SIGKILL)
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await search
        assert "died" in str(ended.value.details())
        assert (await _search(daemon.address, short=True)).HasField("plan")

    with running_daemon(tmp_path) as daemon:
        asyncio.run(scene(daemon))


def test_a_daemon_told_to_stop_cuts_off_a_search(tmp_path: Path) -> None:
    async def scene(daemon: DaemonProcess) -> None:
        search = asyncio.create_task(_search(daemon.address, short=False))
        await _until_searching(daemon)
        started_s = time.monotonic()
        assert await asyncio.to_thread(daemon.stop) == 0
        assert time.monotonic() - started_s < 10.0
        with pytest.raises(grpc.aio.AioRpcError):
            await search

    with running_daemon(tmp_path) as daemon:
        asyncio.run(scene(daemon))
        assert all("traceback" not in json.loads(line) for line in daemon.log)


def test_watchers_that_do_not_read_cost_no_memory_and_delay_nobody(tmp_path: Path) -> None:
    request = telemetry_pb2.WatchAgentsRequest(interval_s=0.1)

    async def scene(daemon: DaemonProcess) -> None:
        async with sending_fleet([daemon.address], 20), plain_channel(daemon.address) as channel:
            stub = TelemetryServiceStub(channel)
            idle = [stub.WatchAgents(request) for _ in range(50)]
            reading = stub.WatchAgents(request)
            seen: dict[str, int] = {}
            await reading.read()
            before_bytes, end_s = rss_bytes(daemon.pid), time.monotonic() + 8
            while time.monotonic() < end_s:
                answer = await asyncio.wait_for(reading.read(), 5.0)
                for agent in answer.agents:
                    assert agent.last_sequence >= seen.get(agent.facts.agent_id, 0)
                    seen[agent.facts.agent_id] = agent.last_sequence
            assert len(seen) == 20
            assert rss_bytes(daemon.pid) - before_bytes < 20 * 2**20
            for call in (*idle, reading):
                call.cancel()

    with running_daemon(tmp_path) as daemon:
        asyncio.run(scene(daemon))


def test_watchers_of_a_job_that_do_not_read_cost_no_memory_and_delay_nobody(tmp_path: Path) -> None:
    async def scene(daemon: DaemonProcess) -> None:
        plan = (await _search(daemon.address, short=True)).plan
        async with plain_channel(daemon.address) as channel:
            stub = JobServiceStub(channel)
            asked = job_pb2.CreateJobRequest(plan_id=plan.plan_id)
            job_id = (await stub.CreateJob(asked)).job.job_id
            request = job_pb2.WatchJobRequest(job_id=job_id)
            idle = [stub.WatchJob(request) for _ in range(50)]
            reading = stub.WatchJob(request)
            await reading.read()
            before_bytes = rss_bytes(daemon.pid)
            for samples in range(1, 121):
                progress = job_pb2.Progress(samples=samples)
                await stub.ReportProgress(
                    job_pb2.ReportProgressRequest(job_id=job_id, progress=progress)
                )
            async with asyncio.timeout(10):
                while (await reading.read()).job.progress.samples < 120:
                    pass
            assert rss_bytes(daemon.pid) - before_bytes < 20 * 2**20
            for call in (*idle, reading):
                call.cancel()

    with running_daemon(tmp_path) as daemon:
        asyncio.run(scene(daemon))


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port of loopback that another program has."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("flag", ["--listen", "--metrics"])
def test_a_port_that_is_taken_ends_the_start_in_one_line(
    tmp_path: Path, taken_port: int, flag: str
) -> None:
    flags = {"--listen": "127.0.0.1:0", "--metrics": "127.0.0.1:0"}
    flags[flag] = f"127.0.0.1:{taken_port}"

    _assert_refused(tmp_path, *(word for pair in flags.items() for word in pair), naming=flag)


def _assert_refused(folder: Path, *flags: str, naming: str) -> None:
    store = [] if "--store" in flags else ["--store", f"sqlite:///{folder / 'd.db'}"]
    usual = ["--metrics", "off"] if "--metrics" not in flags else []
    done = spotwright("serve", *usual, *store, *flags)
    told = [line for line in done.stderr.splitlines() if not OF_GRPC_ITSELF.match(line)]
    assert done.returncode in (1, 2)
    assert len(told) == 1, done.stderr
    assert naming in told[0]


@pytest.mark.parametrize(
    ("flags", "naming"),
    [
        (["--store", "sqlite:////proc/nothing/d.db"], "/proc/nothing"),
        (["--store", "postgresql://x@127.0.0.1:1/none"], "127.0.0.1"),
        (["--tls-dir", "/nonexistent"], "/nonexistent"),
    ],
)
def test_what_is_not_there_ends_the_start_in_one_line(
    tmp_path: Path, flags: list[str], naming: str
) -> None:
    _assert_refused(tmp_path, "--listen", "127.0.0.1:0", *flags, naming=naming)


def test_a_second_daemon_on_one_sqlite_file_ends_in_one_line(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon:
        flags = ["--listen", "127.0.0.1:0", "--store", daemon.store_url]
        _assert_refused(tmp_path, *flags, naming="another daemon uses")


def test_the_service_manager_is_told_ready_alive_and_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "600000")
        with running_daemon(tmp_path) as daemon:
            told = [manager.recv(4096).decode() for _ in range(4)]
            assert daemon.stop() == 0
        while "STOPPING=1" not in told:
            told.append(manager.recv(4096).decode())

    ready = next(message for message in told if message.startswith("READY=1"))
    assert ready == f"READY=1\nSTATUS=serving on {daemon.address}"
    assert told.count("WATCHDOG=1") >= 3


def test_every_line_on_stderr_is_an_object_with_time_level_and_message(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--log-level", "debug") as daemon:
        asyncio.run(_search(daemon.address, short=True))

    records = [json.loads(line) for line in daemon.log]
    assert [r["message"] for r in records if r["level"] == "info"] == ["serving", "stopping"]
    assert all(r["time"] and r["level"] and r["message"] for r in records)


def test_what_a_daemon_keeps_is_for_its_user_alone(tmp_path: Path) -> None:
    with running_daemon(tmp_path):
        kept = list(tmp_path.glob("daemon.db*"))

        assert len(kept) > 1
        assert [file.name for file in kept if file.stat().st_mode & 0o077] == []
