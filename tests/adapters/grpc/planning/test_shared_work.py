import asyncio

import pytest

from spotwright.adapters.grpc.planning.shared_work import SharedWork


class Counted:
    """Work that waits to be let go, and counts."""

    def __init__(self) -> None:
        self.started = self.cancelled = 0
        self.go = asyncio.Event()

    async def __call__(self) -> int:
        self.started += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.started


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_those_who_ask_at_the_same_time_share_one_answer() -> None:
    async def test() -> None:
        shared, work = SharedWork[int](), Counted()
        asking = [asyncio.create_task(shared.run("a", work)) for _ in range(3)]
        await settle()
        work.go.set()

        assert await asyncio.gather(*asking) == [1, 1, 1]

    asyncio.run(test())


def test_work_that_is_done_is_done_anew_when_asked_again() -> None:
    async def test() -> None:
        shared, work = SharedWork[int](), Counted()
        work.go.set()

        assert [await shared.run("a", work), await shared.run("a", work)] == [1, 2]

    asyncio.run(test())


def test_names_do_not_share() -> None:
    async def test() -> None:
        shared, work = SharedWork[int](), Counted()
        work.go.set()
        await asyncio.gather(shared.run("a", work), shared.run("b", work))

        assert work.started == 2

    asyncio.run(test())


def test_one_who_leaves_takes_nothing_from_the_others() -> None:
    async def test() -> None:
        shared, work = SharedWork[int](), Counted()
        first, second = (asyncio.create_task(shared.run("a", work)) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        work.go.set()

        assert await second == 1
        assert first.cancelled()

    asyncio.run(test())


def test_work_that_nobody_waits_for_is_cancelled_and_can_start_again() -> None:
    async def test() -> None:
        shared, work = SharedWork[int](), Counted()
        only = asyncio.create_task(shared.run("a", work))
        await settle()
        only.cancel()
        await settle()
        assert work.cancelled == 1

        work.go.set()
        assert await shared.run("a", work) == 2

    asyncio.run(test())


def test_what_goes_wrong_goes_wrong_for_everybody() -> None:
    async def fail() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def test() -> None:
        shared = SharedWork[int]()
        found = await asyncio.gather(
            shared.run("a", fail), shared.run("a", fail), return_exceptions=True
        )

        assert [str(error) for error in found] == ["no", "no"]
        with pytest.raises(ValueError, match="no"):
            await shared.run("a", fail)

    asyncio.run(test())
