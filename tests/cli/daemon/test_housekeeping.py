import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spotwright.adapters.store.sql_store import SqlStore, open_store
from spotwright.cli.daemon.housekeeping import LEASE, Housekeeping
from spotwright.domain.errors import OutsideWorldError
from spotwright.usecases.keep_house import GoOn


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with closing(open_store(f"sqlite:///{tmp_path}/store.db")) as opened:
        yield opened


def test_a_stop_waits_for_the_round_which_sees_it_and_gives_the_lease_back(store: SqlStore) -> None:
    began, ended = threading.Event(), threading.Event()

    def keep_house(go_on: GoOn) -> None:
        began.set()
        while go_on():
            ended.wait(0.01)
        assert not store.acquire_lease(LEASE, "other", ttl_s=1.0)
        ended.set()

    async def scene() -> None:
        stopping = asyncio.Event()
        housekeeping = Housekeeping(store, keep_house, replica="me", period_s=0.01)
        task = asyncio.create_task(housekeeping.run(stopping))
        assert await asyncio.to_thread(began.wait, 10)
        stopping.set()
        await asyncio.wait_for(task, 10)
        assert ended.is_set()

    asyncio.run(scene())

    assert store.acquire_lease(LEASE, "other", ttl_s=1.0)


def test_a_long_round_renews_its_lease_and_ends_when_it_lost_it(store: SqlStore) -> None:
    rounds: list[str] = []

    def keep_house(go_on: GoOn) -> None:
        store.release_lease(LEASE, "me")
        assert go_on()  # taken again: nobody else has it
        assert not store.acquire_lease(LEASE, "other", ttl_s=60.0)
        store.release_lease(LEASE, "me")
        store.acquire_lease(LEASE, "other", ttl_s=60.0)
        rounds.append("goes on" if go_on() else "ends")

    asyncio.run(_until(rounds, Housekeeping(store, keep_house, replica="me", period_s=0.0)))

    assert rounds == ["ends"]
    assert not store.acquire_lease(LEASE, "me", ttl_s=60.0)


def test_a_round_that_fails_is_followed_by_another(store: SqlStore) -> None:
    rounds: list[str] = []

    def keep_house(_: GoOn) -> None:
        if not rounds:
            rounds.append("failed")
            raise OutsideWorldError("no room")
        rounds.append("done")

    asyncio.run(_until(rounds, Housekeeping(store, keep_house, replica="me", period_s=0.01), 2))

    assert rounds[:2] == ["failed", "done"]


async def _until(rounds: list[str], housekeeping: Housekeeping, count: int = 1) -> None:
    stopping = asyncio.Event()
    task = asyncio.create_task(housekeeping.run(stopping))
    async with asyncio.timeout(10):
        while len(rounds) < count:
            await asyncio.sleep(0.001)
        stopping.set()
        await task
