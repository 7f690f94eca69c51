"""WatchJob over real connections: order, many readers, slow ones, and those that leave."""

import asyncio
import gc
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from spotwright.adapters.grpc.jobs.job_watch import JobWatches
from spotwright.client import job_calls as calls
from spotwright.client.aio import AioClient
from spotwright.domain.errors import NotFoundError, SpotwrightError, StoreUnavailableError
from spotwright.domain.job_run import Event, JobRun, JobState, NewEvent, Progress
from tests.adapters.grpc.jobs.job_daemon import JobDaemon, job_daemon
from tests.adapters.grpc.planning.example_plan import kept_plan
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_job_run import START, job_run

JOB = "resnet-1"
PATIENCE_S = 30.0


def new_store() -> MemoryJobStore:
    store = MemoryJobStore()
    store.add_plan(kept_plan())
    store.add_job(job_run(JOB), [NewEvent(time=START, kind="job-created", text="")])
    return store


def log(store: MemoryJobStore, *kinds: str, size: int = 0) -> None:
    """Log events as another replica would: this one is not told."""
    events = [NewEvent(time=START, kind=kind, text="x" * size) for kind in kinds]
    store.change_job(JOB, lambda job: (job, events))


def end(store: MemoryJobStore) -> None:
    event = NewEvent(time=START, kind="job-stopped", text="")
    store.change_job(JOB, lambda job: (replace(job, state=JobState.STOPPED), [event]))


def run(test: Callable[[JobDaemon, MemoryJobStore], Awaitable[None]], poll_s: float = 0.05) -> None:
    async def running() -> None:
        store = new_store()
        async with job_daemon(store, poll_s=poll_s) as daemon, asyncio.timeout(PATIENCE_S):
            await test(daemon, store)

    asyncio.run(running())


def watch(client: AioClient, *, after_sequence: int = 0) -> AsyncIterator[JobRun | Event]:
    return client.stream(calls.watch_job(JOB, after_sequence=after_sequence))


def names(updates: list[JobRun | Event]) -> list[str]:
    return [u.kind if isinstance(u, Event) else f"job {u.state}" for u in updates]


async def gone(watches: JobWatches) -> None:
    while watches.watched_jobs:
        await asyncio.sleep(0.01)


def test_the_job_comes_first_then_its_events_then_changes_until_it_has_ended() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        updates = watch(daemon.client)
        seen = [await anext(updates), await anext(updates)]
        await daemon.client.run(calls.report_progress(JOB, Progress(samples=1.0)))
        seen += [await anext(updates), await anext(updates)]
        await daemon.client.run(calls.stop_job(JOB))
        seen += [update async for update in updates]

        assert names(seen) == [
            *("job pending", "job-created", "job-started"),
            *("job running", "job-stopped", "job stopped"),
        ]
        await gone(daemon.watches)

    run(test)


def test_what_this_replica_changes_is_told_without_waiting_for_the_poll() -> None:
    async def test(daemon: JobDaemon, _store: MemoryJobStore) -> None:
        updates = watch(daemon.client)
        assert names([await anext(updates), await anext(updates)])[1] == "job-created"
        await daemon.client.run(calls.stop_job(JOB))
        assert names([update async for update in updates]) == ["job-stopped", "job stopped"]

    run(test, poll_s=10 * PATIENCE_S)


def test_what_another_replica_changes_is_told_by_the_poll() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        updates = watch(daemon.client, after_sequence=1)
        await anext(updates)
        log(store, "agent-silent")
        assert names([await anext(updates)]) == ["agent-silent"]
        end(store)
        assert names([update async for update in updates]) == ["job-stopped", "job stopped"]

    run(test)


def test_a_watch_of_a_job_that_has_ended_tells_its_whole_log_and_ends() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        log(store, *(f"kind-{i}" for i in range(1_000)))
        end(store)
        seen = [update async for update in watch(daemon.client)]

        assert names(seen) == [
            "job stopped",
            "job-created",
            *(f"kind-{i}" for i in range(1_000)),
            "job-stopped",
        ]
        assert names([u async for u in watch(daemon.client, after_sequence=1_001)]) == [
            "job stopped",
            "job-stopped",
        ]
        assert names([u async for u in watch(daemon.client, after_sequence=2**62)]) == [
            "job stopped"
        ]
        assert len([u async for u in watch(daemon.client, after_sequence=-5)]) == 1_003

    run(test)


def test_two_hundred_watchers_see_every_event_and_cost_one_poll() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        watchers = [
            asyncio.create_task(_events(watch(daemon.client, after_sequence=i % 3)))
            for i in range(200)
        ]
        while store.job_read_count < 200:  # one look for each who joins
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        joined = store.job_read_count
        await asyncio.sleep(0.5)
        assert store.job_read_count - joined <= 12
        for i in range(20):
            log(store, f"kind-{i}")
            await asyncio.sleep(0.01)
        end(store)

        whole = ["job-created", *(f"kind-{i}" for i in range(20)), "job-stopped"]
        for i, found in enumerate(await asyncio.gather(*watchers)):
            assert found == whole[i % 3 :]

    run(test)


async def _events(updates: AsyncIterator[JobRun | Event]) -> list[str]:
    return [update.kind async for update in updates if isinstance(update, Event)]


def test_a_reader_that_never_reads_holds_nothing_and_delays_nobody() -> None:
    async def test(daemon: JobDaemon, store: MemoryJobStore) -> None:
        async with AioClient(f"127.0.0.1:{daemon.port}") as other:
            gc.collect()
            left_by_others = _held_events()
            stuck = watch(other, after_sequence=1)
            await anext(stuck)
            for _ in range(40):
                log(store, *(["large"] * 50), size=20_000)  # 40 MB in all
            end(store)
            reader = await _events(watch(daemon.client))
            assert reader == ["job-created", *(["large"] * 2_000), "job-stopped"]
            held = [h for h in _held_events() if not any(h is other for other in left_by_others)]
            assert max(len(events) for events in held) <= 256

            late = [update async for update in stuck]
            assert [u.sequence for u in late if isinstance(u, Event)] == list(range(2, 2_003))

    run(test)


def _held_events() -> list[Sequence[Event]]:
    """Return every sequence of events that somebody holds, but for the store's own log."""
    found = [held for held in gc.get_objects() if type(held) in (list, deque)]
    return [held for held in found if len(held) in range(1, 2_000) and type(held[0]) is Event]


def test_a_reader_that_leaves_frees_its_poll() -> None:
    async def test(daemon: JobDaemon, _store: MemoryJobStore) -> None:
        readers = [watch(daemon.client) for _ in range(5)]
        for reader in readers:
            await anext(reader)
        assert daemon.watches.watched_jobs == {JOB}
        for reader in readers:
            await reader.aclose()  # type: ignore[attr-defined]

        await gone(daemon.watches)
        while len(daemon.statuses) < 5:
            await asyncio.sleep(0.01)
        assert daemon.statuses == [("WatchJob", "CANCELLED")] * 5
        assert not [task for task in asyncio.all_tasks() if task.get_name() == f"watch {JOB}"]

    run(test)


def test_a_job_that_is_not_there_cannot_be_watched() -> None:
    async def test(daemon: JobDaemon, _store: MemoryJobStore) -> None:
        with pytest.raises(SpotwrightError, match="no job 'other'"):
            await anext(daemon.client.stream(calls.watch_job("other")))
        assert not daemon.watches.watched_jobs

    run(test)


def test_a_watch_goes_on_where_it_left_off_when_the_daemon_was_restarted() -> None:
    async def running() -> list[str]:
        store, seen = new_store(), list[JobRun | Event]()
        async with job_daemon(store) as daemon:
            port = daemon.port
            updates = watch(daemon.client)
            seen += [await anext(updates), await anext(updates)]
            daemon.watches.close()
            with pytest.raises(SpotwrightError, match="about to stop"):
                await anext(updates)
        log(store, "missed")
        async with job_daemon(store, port=port) as daemon:
            updates = watch(daemon.client, after_sequence=1)
            seen += [await anext(updates), await anext(updates)]
            await updates.aclose()  # type: ignore[attr-defined]
        return names(seen)

    assert asyncio.run(running()) == ["job pending", "job-created", "job pending", "missed"]


class AbsentStore(MemoryJobStore):
    """A store that can be away."""

    away = False

    def job(self, job_id: str) -> JobRun:
        if self.away:
            raise StoreUnavailableError("the store is away")
        return super().job(job_id)


def test_watchers_outlive_a_store_that_is_away_for_a_while() -> None:
    async def running() -> list[str]:
        store = AbsentStore()
        store.add_job(job_run(JOB), [])
        watches = JobWatches(store, poll_s=0.01)
        updates = watches.watch(JOB, after_sequence=0)
        seen = [await anext(updates)]
        store.away = True
        await asyncio.sleep(0.1)
        log(store, "agent-silent")
        store.away = False
        seen.append(await anext(updates))
        await updates.aclose()
        return names(seen)

    assert asyncio.run(running()) == ["job pending", "agent-silent"]


def test_a_job_that_vanishes_ends_its_watch() -> None:
    async def running() -> None:
        store = new_store()
        watches = JobWatches(store, poll_s=0.01)
        updates = watches.watch(JOB, after_sequence=1)
        await anext(updates)
        store.forget(JOB)
        with pytest.raises(NotFoundError):
            await anext(updates)
        assert not watches.watched_jobs

    asyncio.run(running())
