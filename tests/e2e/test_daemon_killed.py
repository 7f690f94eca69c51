"""A daemon that dies or is told to stop while agents send: nothing acknowledged is lost."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.agent_client import assert_all_stored_once, sending_fleet

AGENT_COUNT = 20


async def _kill_again_and_again(daemon: DaemonProcess, *, kill_count: int) -> int:
    async with sending_fleet([daemon.address], AGENT_COUNT) as fleet:
        for _ in range(kill_count):
            await fleet.until_each_acked(5)
            await asyncio.to_thread(daemon.kill)
            await asyncio.to_thread(daemon.start)
        await fleet.until_each_acked(5)
    assert all(agent.session_count > kill_count for agent in fleet.agents)
    return await assert_all_stored_once(daemon.address, fleet.agents)


def test_three_kills_under_load_lose_no_acknowledged_batch_and_double_none(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon:
        batch_count = asyncio.run(_kill_again_and_again(daemon, kill_count=3))

    assert batch_count >= 20 * AGENT_COUNT


@pytest.mark.soak
def test_twenty_kills_under_load_lose_no_acknowledged_batch_and_double_none(
    tmp_path: Path,
) -> None:
    with running_daemon(tmp_path) as daemon:
        batch_count = asyncio.run(_kill_again_and_again(daemon, kill_count=20))

    assert batch_count >= 105 * AGENT_COUNT


def test_a_daemon_told_to_stop_under_load_keeps_what_it_acknowledged_and_tells_its_agents(
    tmp_path: Path,
) -> None:
    async def scene(daemon: DaemonProcess) -> None:
        async with sending_fleet([daemon.address], AGENT_COUNT) as fleet:
            await fleet.until_each_acked(5)
            started_s = time.monotonic()
            assert await asyncio.to_thread(daemon.stop) == 0
            assert time.monotonic() - started_s < 10.0
            ends = Counter(agent.ends[0] for agent in fleet.agents)
            assert ends.pop(("UNAVAILABLE", "the daemon stops; come back shortly")) > 0
            # An agent that writes at that moment is told gRPC's own words instead.
            assert set(ends) <= {("INTERNAL", "Internal error from Core")}
            await asyncio.to_thread(daemon.start)
        await assert_all_stored_once(daemon.address, fleet.agents)

    with running_daemon(tmp_path) as daemon:
        asyncio.run(scene(daemon))
