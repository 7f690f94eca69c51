import asyncio

import pytest

from spotwright.cli.daemon.background import background, tell_busy, tell_health


def test_work_that_fails_is_logged_and_the_rest_is_ended_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ends: list[str] = []

    async def broken() -> None:
        raise RuntimeError("a fault of ours")

    async def orderly(stopping: asyncio.Event) -> None:
        await stopping.wait()
        await asyncio.sleep(0)
        ends.append("orderly")

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("endless")

    async def scene() -> None:
        stopping = asyncio.Event()
        work = [broken(), orderly(stopping)]
        async with background(stopping, orderly=work, endless=[endless()]):
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scene())

    assert ends == ["orderly", "endless"]
    assert [record.message for record in caplog.records] == ["a background task failed"]


def test_health_is_told_when_it_changes_and_not_while_the_daemon_stops() -> None:
    told: list[bool] = []
    failing, stopping = iter([False, True, True, False, True]), asyncio.Event()

    async def tell(serving: bool) -> None:
        told.append(serving)
        if serving:
            stopping.set()

    asyncio.run(tell_health(lambda: next(failing), tell, stopping=stopping, period_s=0.0))

    assert told == [False, True]
    assert next(failing) is True  # nobody asked any more


def test_a_daemon_that_stops_asks_for_time_as_long_as_something_has_yet_to_end() -> None:
    async def scene() -> list[str]:
        stopping, ended, told = asyncio.Event(), asyncio.Event(), list[str]()
        left = iter([True, True, False, False])

        def is_busy() -> bool:
            busy = next(left, None)
            if busy is None:
                ended.set()
            return bool(busy)

        work = asyncio.create_task(
            tell_busy(is_busy, lambda: told.append("time"), stopping=stopping, period_s=0.0)
        )
        await asyncio.sleep(0)
        assert next(left)  # nothing was asked while it served
        stopping.set()
        await ended.wait()
        work.cancel()
        return told

    assert asyncio.run(scene()) == ["time"]
