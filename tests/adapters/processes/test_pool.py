import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from spotwright.adapters.processes.pool import Lane, WorkerPool
from spotwright.domain.errors import BusyError, WorkerDiedError

REPOSITORY = Path(__file__).parents[3]
TASKS = "tests.adapters.processes.small_tasks:open_tasks"
FAILS = "tests.adapters.processes.small_tasks:fail_to_open"


@asynccontextmanager
async def opened_pool(
    *, target: str = TASKS, process_count: int = 1, max_waiting: int = 16, niceness: int = 0
) -> AsyncIterator[WorkerPool]:
    lane = Lane(process_count=process_count, max_waiting=max_waiting, niceness=niceness)
    pool = WorkerPool(target, lanes={"only": lane}, environment={"PYTHONPATH": str(REPOSITORY)})
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()


def in_pool(test: Callable[[WorkerPool], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def run() -> None:
        async with opened_pool(**settings) as pool, asyncio.timeout(30):
            await pool.ready()
            await test(pool)

    asyncio.run(run())


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not happened():
            await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    return state != "Z"


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_a_payload_of_any_size_comes_back_whole(size: int) -> None:
    async def test(pool: WorkerPool) -> None:
        payload = os.urandom(size)
        assert await pool.run("echo", payload, lane="only") == payload

    in_pool(test)


def test_tasks_sent_at_once_each_get_their_own_answer() -> None:
    async def test(pool: WorkerPool) -> None:
        texts = [str(number).encode() for number in range(15)]
        answers = await asyncio.gather(*(pool.run("echo", text, lane="only") for text in texts))
        assert answers == texts

    in_pool(test)


def test_the_process_that_works_is_another_one() -> None:
    async def test(pool: WorkerPool) -> None:
        pid = int(await pool.run("pid", b"", lane="only"))
        assert pid != os.getpid()
        assert pool.pids("only") == [pid]

    in_pool(test)


def test_a_full_line_is_an_error_that_says_when_to_come_back() -> None:
    async def test(pool: WorkerPool) -> None:
        searches = [asyncio.create_task(pool.run("search", b"", lane="only")) for _ in range(3)]
        await until(lambda: pool.waiting_count("only") == 2)

        with pytest.raises(BusyError, match="2 requests wait") as busy:
            await pool.run("echo", b"", lane="only")

        assert busy.value.retry_after_s > 0
        for search in searches:
            search.cancel()
        await asyncio.gather(*searches, return_exceptions=True)

    in_pool(test, max_waiting=2)


def test_a_task_that_no_process_gets_to_in_time_is_an_error_not_a_hang() -> None:
    async def test(pool: WorkerPool) -> None:
        search = asyncio.create_task(pool.run("search", b"", lane="only"))
        await until(lambda: pool.running_count("only") == 1)

        with pytest.raises(BusyError):
            await pool.run("echo", b"", lane="only", time_limit_s=0.05)

        search.cancel()

    in_pool(test)


def test_a_cancelled_task_is_told_and_its_process_is_free_again() -> None:
    async def test(pool: WorkerPool) -> None:
        pids = pool.pids("only")
        search = asyncio.create_task(pool.run("search", b"", lane="only"))
        await until(lambda: pool.running_count("only") == 1)

        search.cancel()

        assert await pool.run("echo", b"next", lane="only", time_limit_s=1.9) == b"next"
        assert pool.pids("only") == pids

    in_pool(test)


def test_a_task_cancelled_while_it_waits_is_never_started() -> None:
    async def test(pool: WorkerPool) -> None:
        first = asyncio.create_task(pool.run("search", b"", lane="only"))
        await until(lambda: pool.running_count("only") == 1)
        second = asyncio.create_task(pool.run("search", b"", lane="only"))
        await until(lambda: pool.waiting_count("only") == 1)

        second.cancel()
        await until(lambda: pool.waiting_count("only") == 0)
        first.cancel()

        assert await pool.run("echo", b"next", lane="only") == b"next"

    in_pool(test)


def test_a_process_that_does_not_stop_is_killed_and_replaced() -> None:
    async def test(pool: WorkerPool) -> None:
        (pid,) = pool.pids("only")
        deaf = asyncio.create_task(pool.run("deaf", b"", lane="only"))
        await until(lambda: pool.running_count("only") == 1)
        started_s = time.monotonic()

        deaf.cancel()
        await until(lambda: not is_alive(pid))

        assert 1.9 < time.monotonic() - started_s < 5
        assert int(await pool.run("pid", b"", lane="only")) != pid

    in_pool(test)


def test_a_killed_process_fails_its_task_and_is_replaced() -> None:
    async def test(pool: WorkerPool) -> None:
        (pid,) = pool.pids("only")
        search = asyncio.create_task(pool.run("search", b"", lane="only"))
        await until(lambda: pool.running_count("only") == 1)

        os.kill(pid, signal.SIGKILL)

        with pytest.raises(WorkerDiedError, match="killed by signal 9"):
            await search
        assert int(await pool.run("pid", b"", lane="only")) != pid

    in_pool(test)


def test_a_process_that_ends_by_itself_fails_only_its_own_task() -> None:
    async def test(pool: WorkerPool) -> None:
        dying, next_one = await asyncio.gather(
            pool.run("die", b"", lane="only"),
            pool.run("echo", b"next", lane="only"),
            return_exceptions=True,
        )
        assert isinstance(dying, WorkerDiedError)
        assert "exit code 3" in str(dying)
        assert next_one == b"next"

    in_pool(test)


def test_an_idle_process_that_is_killed_costs_no_task() -> None:
    async def test(pool: WorkerPool) -> None:
        (pid,) = pool.pids("only")
        os.kill(pid, signal.SIGKILL)
        await until(lambda: pool.pids("only") not in ([pid], []))

        assert await pool.run("echo", b"next", lane="only") == b"next"

    in_pool(test)


def test_the_handler_is_told_when_its_answer_is_due() -> None:
    async def test(pool: WorkerPool) -> None:
        assert 4 < float(await pool.run("left", b"", lane="only", time_limit_s=5.0)) < 5
        assert await pool.run("search", b"", lane="only", time_limit_s=0.05) == b"time is up"
        assert await pool.run("left", b"", lane="only") == b"inf"

    in_pool(test)


def test_a_lane_can_be_polite() -> None:
    async def test(pool: WorkerPool) -> None:
        assert int(await pool.run("nice", b"", lane="only")) == os.nice(0) + 5

    in_pool(test, niceness=5)


def test_processes_that_cannot_start_are_an_error_not_a_hang(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async def test() -> None:
        async with opened_pool(target=FAILS) as pool:
            with pytest.raises(WorkerDiedError, match="exit code 1"):
                await pool.run("echo", b"", lane="only")

    asyncio.run(test())

    assert "a worker did not start" in caplog.text
    assert "nothing works here" in capfd.readouterr().err


def test_a_closed_pool_leaves_no_process() -> None:
    async def test() -> list[int]:
        async with opened_pool(process_count=2) as pool:
            await pool.ready()
            search = asyncio.create_task(pool.run("search", b"", lane="only"))
            await until(lambda: pool.running_count("only") >= 1)
            pids = pool.pids("only")
        with pytest.raises(WorkerDiedError):
            await search
        return pids

    pids = asyncio.run(test())

    assert pids
    assert not any(is_alive(pid) for pid in pids)


def test_a_pool_closed_while_it_starts_leaves_no_process() -> None:
    async def test() -> None:
        async with opened_pool(process_count=2):
            pass

    before = children()
    asyncio.run(test())

    assert children() <= before


def children() -> set[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    return {int(child) for child in listed if is_alive(int(child))}


def test_a_process_that_cannot_be_made_is_tried_again() -> None:
    async def test() -> bytes:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        open_now = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 1, hard))
        async with opened_pool() as pool:
            try:
                with pytest.raises(WorkerDiedError, match="no worker could be started"):
                    await pool.run("echo", b"first", lane="only")
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            return await pool.run("echo", b"second", lane="only")

    assert asyncio.run(test()) == b"second"


def test_processes_end_with_a_pool_that_is_killed() -> None:
    program = (
        "import asyncio\n"
        "from tests.adapters.processes.test_pool import opened_pool\n"
        "async def main():\n"
        "    async with opened_pool() as pool:\n"
        "        await pool.ready()\n"
        "        print(*pool.pids('only'), flush=True)\n"
        "        await pool.run('deaf', b'', lane='only')\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()

    asyncio.run(until(lambda: not is_alive(pid)))
