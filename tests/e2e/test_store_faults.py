"""A store that cannot write for a while: batches wait, and none of them is lost or doubled."""

import asyncio
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.agent_client import (
    Fleet,
    SendingAgent,
    assert_all_stored_once,
    plain_channel,
    sending_fleet,
    stored_sequences,
)
from tests.e2e.daemon_health import PLANNER, TELEMETRY, health_of, until_health

_LAST_ACKS_S = 2.0  # what was stored before may be acknowledged so much later
_ROOM_BYTES = 100_000


@contextmanager
def full_disk(daemon: DaemonProcess) -> Iterator[None]:
    """Have no file of the daemon grow much further: to it, that is a disk without room."""
    sizes = [path.stat().st_size for path in daemon.folder.glob("daemon.db*")]
    soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (max(sizes) + _ROOM_BYTES, hard))
    try:
        yield
    finally:
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def locked_store(daemon: DaemonProcess) -> Iterator[None]:
    """Hold the lock that every writer needs, as a backup that hangs would."""
    path = daemon.folder / "daemon.db"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def _assert_nothing_is_acknowledged(fleet: Fleet, *, for_s: float) -> None:
    await asyncio.sleep(_LAST_ACKS_S)
    before = fleet.acked_count
    await asyncio.sleep(for_s)
    assert fleet.acked_count == before


def test_a_full_disk_stops_acknowledgements_until_there_is_room_and_loses_nothing(
    tmp_path: Path,
) -> None:
    async def scene(daemon: DaemonProcess) -> None:
        async with sending_fleet([daemon.address], 20) as fleet:
            await fleet.until_each_acked(5)
            with full_disk(daemon):
                await until_health(daemon.address, TELEMETRY, "NOT_SERVING")
                assert await health_of(daemon.address, PLANNER) == "SERVING"
                await _assert_nothing_is_acknowledged(fleet, for_s=2.0)
            await until_health(daemon.address, TELEMETRY, "SERVING")
            await fleet.until_each_acked(5)
        await assert_all_stored_once(daemon.address, fleet.agents)

    with running_daemon(tmp_path) as daemon:
        asyncio.run(scene(daemon))
        assert daemon.events("the store cannot write, batches wait")


def test_a_store_locked_by_another_program_stops_acknowledgements_and_loses_nothing(
    tmp_path: Path,
) -> None:
    async def scene(daemon: DaemonProcess) -> None:
        async with sending_fleet([daemon.address], 20) as fleet:
            await fleet.until_each_acked(5)
            with locked_store(daemon):
                await until_health(daemon.address, TELEMETRY, "NOT_SERVING")
                await _assert_nothing_is_acknowledged(fleet, for_s=3.0)
            await until_health(daemon.address, TELEMETRY, "SERVING")
            await fleet.until_each_acked(5)
        await assert_all_stored_once(daemon.address, fleet.agents)

    with running_daemon(tmp_path) as daemon:
        asyncio.run(scene(daemon))


def test_an_agent_whose_clock_is_an_hour_off_is_stored_at_the_right_time(tmp_path: Path) -> None:
    async def scene(daemon: DaemonProcess) -> None:
        for name, off_s in (("slow", -3600.0), ("fast", 3600.0)):
            agent = SendingAgent(name, daemon.address, clock_off_s=off_s)
            run = asyncio.create_task(agent.run())
            await agent.until_acked(3)
            agent.finish()
            await run
            await assert_all_stored_once(daemon.address, [agent])
            async with plain_channel(daemon.address) as channel:
                stub = TelemetryServiceStub(channel)
                recent = await stored_sequences(stub, agent.agent_id, within_s=60)
            assert recent == list(range(1, agent.made + 1))

    with running_daemon(tmp_path) as daemon:
        asyncio.run(scene(daemon))
