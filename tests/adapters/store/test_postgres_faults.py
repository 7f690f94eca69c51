import secrets
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from spotwright.adapters.store.sql_store import SqlStore, open_store
from spotwright.domain.errors import BadInputError, StoreUnavailableError
from spotwright.domain.telemetry import AgentFacts
from tests.adapters.store.stored_counts import rolled_up_counts, stored_sequences
from tests.contracts.store_values import in_threads, new_agent, new_batch, new_job
from tests.postgres_server import PostgresServer, postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


def test_the_same_store_works_after_the_server_came_back(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    facts = new_agent()
    with closing(open_store(postgres_url)) as store:
        job = store.add_job(new_job(), [])
        store.commit_batches([new_batch(facts, 1)])
        postgres_server.stop()
        try:
            with pytest.raises(StoreUnavailableError):
                store.commit_batches([new_batch(facts, 2)])
            with pytest.raises(StoreUnavailableError):
                store.job(job.job_id)
            with pytest.raises(StoreUnavailableError):
                open_store(postgres_url)
        finally:
            postgres_server.start()

        assert store.commit_batches([new_batch(facts, 1), new_batch(facts, 2)])

        assert store.job(job.job_id) == job
        assert stored_sequences(store, facts.agent_id) == [1, 2]
        assert rolled_up_counts(store, facts.agent_id) == {10: 2, 60: 2}


class _Sender(threading.Thread):
    """Commits batches one after the other, each until it is acknowledged."""

    def __init__(self, store: SqlStore, facts: AgentFacts) -> None:
        super().__init__()
        self.acknowledged: list[int] = []
        self.failed_count = 0
        self._store, self._facts = store, facts
        self._enough = threading.Event()
        self._reached = threading.Condition()

    def run(self) -> None:
        while not self._enough.is_set():
            sequence = len(self.acknowledged) + 1
            try:
                self._store.commit_batches([new_batch(self._facts, sequence, at_s=sequence / 10)])
            except StoreUnavailableError:
                self.failed_count += 1
                self._enough.wait(0.01)
                continue
            with self._reached:
                self.acknowledged.append(sequence)
                self._reached.notify_all()

    def await_more(self, count: int) -> None:
        goal = len(self.acknowledged) + count
        with self._reached:
            assert self._reached.wait_for(lambda: len(self.acknowledged) >= goal, timeout=60)

    def stop(self) -> None:
        self._enough.set()
        self.join()


def test_a_server_that_crashes_during_commits_loses_and_doubles_nothing(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    with closing(open_store(postgres_url)) as store, closing(open_store(postgres_url)) as other:
        senders = [_Sender(replica, new_agent()) for replica in (store, other)]
        for sender in senders:
            sender.start()
        try:
            for _ in range(3):
                for sender in senders:
                    sender.await_more(20)
                postgres_server.kill()
                postgres_server.start()
            for sender in senders:
                sender.await_more(20)
        finally:
            for sender in senders:
                sender.stop()

        for sender in senders:
            agent_id, count = sender._facts.agent_id, len(sender.acknowledged)
            assert sender.failed_count > 0
            assert stored_sequences(store, agent_id) == sender.acknowledged
            assert rolled_up_counts(store, agent_id) == {10: count, 60: count}


def test_a_name_that_no_index_takes_is_an_error_of_who_gave_it(postgres_url: str) -> None:
    name = "".join(secrets.token_hex(8) for _ in range(1_000))

    with closing(open_store(postgres_url)) as store:
        with pytest.raises(BadInputError, match="this cannot be stored: index row"):
            store.acquire_lease(name, "a", ttl_s=1.0)

        assert store.acquire_lease(name[:1_000], "a", ttl_s=1.0)


def test_replicas_that_start_at_once_make_the_tables_once(postgres_server: PostgresServer) -> None:
    url = postgres_server.url("started_at_once")

    stores = in_threads(4, lambda _: open_store(url))

    for i, store in enumerate(stores):
        assert store.commit_batches([new_batch(replace(new_agent(), boot_id=f"boot-{i}"), 1)])
        store.close()
