import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace

import pytest

from spotwright.domain.errors import BusyError, StoreUnavailableError
from spotwright.domain.telemetry import AgentFacts, BatchKey, ReceivedBatch, RollupPart
from spotwright.usecases.record_telemetry import TelemetryWriter
from tests.fakes.memory_telemetry_store import MemoryTelemetryStore

SOON_S = 10.0


class Heard:
    """Notes which batches were said to be stored, and which refused."""

    def __init__(self) -> None:
        self.keys: list[BatchKey] = []
        self.refused: list[tuple[str, int]] = []  # session and sequence
        self._changed = threading.Condition()

    def __call__(self, keys: Sequence[BatchKey]) -> None:
        with self._changed:
            self.keys += keys
            self._changed.notify()

    def hear_refused(self, session_id: str, key: BatchKey) -> None:
        with self._changed:
            self.refused.append((session_id, key.sequence))
            self._changed.notify()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.keys) >= count, SOON_S)

    def wait_for_refusal(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.refused, SOON_S)

    @property
    def sequences(self) -> list[int]:
        return [key.sequence for key in self.keys]


def received(
    sequence: int, *, size_bytes: int = 10, agent_id: str = "a", receive_unix_ms: int = 0
) -> ReceivedBatch:
    part = RollupPart(start_unix_s=0, host_sample_count=1, gpu_sample_count=8)
    return ReceivedBatch(
        key=BatchKey(agent_id, "b", sequence),
        job_id="",
        receive_unix_ms=receive_unix_ms,
        first_unix_ms=0,
        last_unix_ms=0,
        clock_skew_s=0.0,
        document=b"x" * size_bytes,
        parts=(part,),
    )


@pytest.fixture
def store() -> MemoryTelemetryStore:
    store = MemoryTelemetryStore()
    store.open_session(AgentFacts(agent_id="a", boot_id="b"), session_id="s", replica="r")
    return store


@contextmanager
def running(writer: TelemetryWriter, heard: Heard) -> Iterator[None]:
    writer.start(heard, heard.hear_refused)
    try:
        yield
    finally:
        writer.stop()


def test_batches_that_come_together_are_committed_together(store: MemoryTelemetryStore) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=0.2), Heard()
    with running(writer, heard):
        for sequence in range(1, 11):
            writer.put(received(sequence), session_id="s")
        heard.wait_for(10)

    assert heard.sequences == list(range(1, 11))
    assert writer.figures().commits == 1
    assert (writer.figures().batches_stored, writer.figures().rows_stored) == (10, 80)


def test_a_full_group_does_not_wait(store: MemoryTelemetryStore) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=60.0, max_commit_batches=2), Heard()
    with running(writer, heard):
        writer.put(received(1), session_id="s")
        writer.put(received(2), session_id="s")
        heard.wait_for(2)


def test_a_batch_stored_before_is_told_and_counted_as_a_duplicate(
    store: MemoryTelemetryStore,
) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=0.01), Heard()
    with running(writer, heard):
        writer.put(received(1), session_id="s")
        heard.wait_for(1)
        writer.put(received(1), session_id="s")
        heard.wait_for(2)

    assert (writer.figures().batches_stored, writer.figures().duplicates) == (1, 1)


def test_a_store_that_comes_back_gets_everything_that_waited(store: MemoryTelemetryStore) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=0.01), Heard()
    store.fails = True
    with running(writer, heard):
        writer.put(received(1), session_id="s")
        writer.put(received(2), session_id="s")
        _wait_until(lambda: writer.figures().store_failing)
        assert not heard.keys
        store.fails = False
        heard.wait_for(2)

    assert not writer.figures().store_failing
    assert [row.key.sequence for row in store.rows] == [1, 2]


def test_a_batch_that_waited_long_counts_as_received_when_it_is_stored(
    store: MemoryTelemetryStore,
) -> None:
    now_s = [1_000.0]
    writer = TelemetryWriter(store, commit_interval_s=0.01, clock=lambda: now_s[0])
    heard = Heard()
    store.gate.clear()
    with running(writer, heard):
        writer.put(received(1, receive_unix_ms=1_000_000), session_id="s")
        _wait_until(lambda: store.commit_count == 1)
        writer.put(received(2, receive_unix_ms=1_000_000), session_id="s")
        writer.put(received(3, receive_unix_ms=1_058_000), session_id="s")
        now_s[0] = 1_060.0
        store.gate.set()
        heard.wait_for(3)

    assert [row.receive_unix_ms for row in store.rows] == [1_000_000, 1_060_000, 1_058_000]


def test_batches_that_a_store_comes_back_to_count_as_received_then(
    store: MemoryTelemetryStore,
) -> None:
    now_s = [1_000.0]
    writer = TelemetryWriter(store, commit_interval_s=0.01, clock=lambda: now_s[0])
    heard = Heard()
    store.fails = True
    with running(writer, heard):
        writer.put(received(1, receive_unix_ms=1_000_000), session_id="s")
        _wait_until(lambda: writer.figures().store_failing)
        now_s[0] = 1_060.0
        store.fails = False
        heard.wait_for(1)

    assert [row.receive_unix_ms for row in store.rows] == [1_060_000]


def test_stopping_stores_what_waits(store: MemoryTelemetryStore) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=60.0), Heard()
    with running(writer, heard):
        writer.put(received(1), session_id="s")

    assert heard.sequences == [1]


def test_stopping_gives_up_on_a_store_that_stays_away(store: MemoryTelemetryStore) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=0.01), Heard()
    store.fails = True
    writer.start(heard, heard.hear_refused)
    writer.put(received(1), session_id="s")
    _wait_until(lambda: writer.figures().store_failing)

    writer.stop(flush_s=0.05)

    assert not heard.keys


def test_more_bytes_than_may_wait_are_refused(store: MemoryTelemetryStore) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=60.0, max_queue_bytes=100), Heard()
    with running(writer, heard):
        writer.put(received(1, size_bytes=100), session_id="s")
        with pytest.raises(BusyError, match="1 batches wait"):
            writer.put(received(2), session_id="s")


def test_sums_count_among_the_bytes_that_wait(store: MemoryTelemetryStore) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=60.0), Heard()
    part = RollupPart(start_unix_s=0)
    with running(writer, heard):
        writer.put(replace(received(1), parts=(part,) * 100), session_id="s")

        assert writer.figures().queue_bytes > 100_000

    assert writer.figures().queue_bytes == 0


def test_batches_of_a_dropped_session_are_not_stored(store: MemoryTelemetryStore) -> None:
    writer, heard = TelemetryWriter(store, commit_interval_s=60.0), Heard()
    with running(writer, heard):
        writer.put(received(1), session_id="older")
        writer.drop("older")
        writer.put(received(2), session_id="newer")

    assert heard.sequences == [2]


class Choking(MemoryTelemetryStore):
    """Cannot keep the second batch of agent `a`."""

    def __init__(self) -> None:
        super().__init__()
        self.away, self.asked = False, threading.Event()
        for agent_id in ("a", "z"):
            facts = AgentFacts(agent_id=agent_id, boot_id="b")
            self.open_session(facts, session_id=f"of {agent_id}", replica="r")

    def commit_batches(self, batches: Sequence[ReceivedBatch]) -> Set[BatchKey]:
        if self.away:
            raise StoreUnavailableError("the store is away")
        if any(batch.key[::2] == ("a", 2) for batch in batches):
            self.asked.set()
            self.gate.wait(SOON_S)
            raise ZeroDivisionError("a fault of the store")
        return super().commit_batches(batches)


def test_a_batch_that_the_store_chokes_on_stops_its_session_and_nobody_else() -> None:
    store, heard = Choking(), Heard()
    writer = TelemetryWriter(store, commit_interval_s=60.0)
    with running(writer, heard):
        for sequence in range(1, 6):
            for agent_id in ("a", "z"):
                writer.put(received(sequence, agent_id=agent_id), session_id=f"of {agent_id}")

    assert [key.sequence for key in heard.keys if key.agent_id == "a"] == [1]
    assert [key.sequence for key in heard.keys if key.agent_id == "z"] == [1, 2, 3, 4, 5]
    assert sorted(row.key for row in store.rows) == sorted(heard.keys)
    assert heard.refused == [("of a", 2)]
    assert writer.figures().refused == 1


def test_what_waits_behind_a_refused_batch_of_its_session_is_not_stored() -> None:
    store, heard = Choking(), Heard()
    writer = TelemetryWriter(store, commit_interval_s=0.01)
    store.gate.clear()
    with running(writer, heard):
        writer.put(received(2), session_id="of a")
        assert store.asked.wait(SOON_S)
        writer.put(received(3), session_id="of a")
        writer.put(received(1, agent_id="z"), session_id="of z")
        store.gate.set()

    assert heard.keys == [("z", "b", 1)]


def test_what_comes_after_a_refused_batch_is_stored_only_when_another_session_sends_it() -> None:
    store, heard = Choking(), Heard()
    writer = TelemetryWriter(store, commit_interval_s=0.01)
    with running(writer, heard):
        writer.put(received(2), session_id="of a")
        heard.wait_for_refusal()
        writer.put(received(1, agent_id="z"), session_id="of z")
        heard.wait_for(1)
        writer.put(received(3), session_id="of a")  # it does not know yet
        writer.put(received(4), session_id="next of a")
        heard.wait_for(2)

    assert heard.keys == [("z", "b", 1), ("a", "b", 4)]


def test_a_store_that_comes_back_and_refuses_is_not_failing_any_more() -> None:
    store, heard = Choking(), Heard()
    writer = TelemetryWriter(store, commit_interval_s=0.01)
    store.away = True
    with running(writer, heard):
        writer.put(received(2), session_id="of a")
        _wait_until(lambda: writer.figures().store_failing)
        store.away = False
        heard.wait_for_refusal()

        assert not writer.figures().store_failing


def _wait_until(condition: Callable[[], bool]) -> None:
    pause, end_s = threading.Event(), time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < end_s
        pause.wait(0.01)
