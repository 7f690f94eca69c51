"""What every store must do with batches."""

from dataclasses import replace

import pytest

from spotwright.domain.telemetry import AgentFacts, BatchKey, StepSums
from spotwright.usecases.store_ports import Retention, Store
from tests.contracts.store_values import START_UNIX_S, in_threads, new_agent, new_batch, unused

_START_MS = START_UNIX_S * 1000
_FOREVER = {"start_unix_ms": 0, "end_unix_ms": 2**52}


class TelemetryContract:
    """Tests that a subclass inherits."""

    def test_a_batch_comes_back_as_it_was_sent(self, store: Store) -> None:
        facts = _connected(store)
        batch = replace(new_batch(facts, 1), document=b"\x00\xff" * 1000)

        assert store.commit_batches([batch]) == {batch.key}

        ((number, stored),) = store.batches(facts.agent_id, **_FOREVER, limit=10)
        assert number > 0
        assert (stored.key, stored.document) == (batch.key, batch.document)
        assert (stored.receive_unix_ms, stored.clock_skew_s) == (_START_MS, -0.25)

    def test_steps_for_a_job_count_once_however_often_their_batch_comes(
        self, store: Store, other: Store
    ) -> None:
        job_id, silent = unused("job"), unused("job")
        one, two = (new_agent(job_id=job_id) for _ in range(2))
        first = StepSums(step_count=3, last_step=7, samples=1.5, loss=0.5)
        later = StepSums(step_count=2, last_step=5)
        for facts in (one, two):
            store.open_session(facts, session_id=unused("session"), replica="a")
        batch = replace(new_batch(one, 1), steps=first)

        for keeper in (store, other, store):
            keeper.commit_batches([batch])
        store.commit_batches([replace(new_batch(one, 2), steps=later), new_batch(two, 1)])

        found = store.job_steps([job_id, silent])
        assert dict(found) == {job_id: [StepSums(step_count=5, last_step=7, samples=1.5, loss=0.5)]}

    def test_steps_of_agents_and_jobs_are_told_apart(self, store: Store) -> None:
        jobs = [unused("job"), unused("job")]
        agents = [new_agent(job_id=job_id) for job_id in (*jobs, "")]
        sums = [StepSums(step_count=n, last_step=n, samples=float(n)) for n in (1, 2, 3)]

        store.commit_batches(
            [replace(new_batch(a, 1), steps=s) for a, s in zip(agents, sums, strict=True)]
        )

        assert dict(store.job_steps(jobs)) == {jobs[0]: [sums[0]], jobs[1]: [sums[1]]}

    @pytest.mark.parametrize(
        "odd", ["NULL", 'a"b', "a\\b", "{a,b}", "%(a)s", "ü 漢", " ", "a'b;--"]
    )
    def test_an_agent_may_have_any_name_and_its_sums_are_found(
        self, store: Store, odd: str
    ) -> None:
        facts = new_agent(agent_id=f"{odd}{unused(odd)}", boot_id=odd)

        assert store.commit_batches([new_batch(facts, 1)]) == {BatchKey(*_name(facts), 1)}

        assert _sequences(store, facts) == [1]
        (whole,) = store.rollups(
            facts.agent_id, resolution_s=10, start_unix_s=0, end_unix_s=2**40, limit=10
        )
        assert whole.host_sample_count == 1

    def test_nothing_to_store_is_nothing_new(self, store: Store) -> None:
        assert store.commit_batches([]) == set()

    def test_a_batch_is_new_once_however_often_and_with_whatever_it_is_sent(
        self, store: Store, other: Store
    ) -> None:
        facts = _connected(store)
        one, two, three = (new_batch(facts, sequence) for sequence in (1, 2, 3))

        assert store.commit_batches([one, one]) == {one.key}
        assert store.commit_batches([one, two]) == {two.key}
        assert other.commit_batches([three, two, one]) == {three.key}
        assert store.commit_batches([three]) == set()
        assert _sequences(store, facts) == [1, 2, 3]

    def test_the_same_sequence_of_another_boot_or_agent_is_another_batch(
        self, store: Store
    ) -> None:
        first, second = _connected(store), _connected(store)
        rebooted = replace(first, boot_id="boot-2")

        new = store.commit_batches([new_batch(facts, 1) for facts in (first, second, rebooted)])

        assert len(new) == 3
        assert len(store.batches(first.agent_id, **_FOREVER, limit=10)) == 2

    def test_batches_that_were_pruned_are_not_new_again(self, store: Store) -> None:
        facts = _connected(store)
        batches = [new_batch(facts, sequence, at_s=sequence) for sequence in (1, 2, 3)]
        store.commit_batches(batches)
        store.open_session(replace(facts, boot_id="boot-2"), session_id="s", replica="r")

        _prune_all(store)

        assert store.commit_batches(batches) == set()
        assert _sequences(store, facts) == []

    def test_gaps_left_by_dropped_batches_are_no_duplicates(self, store: Store) -> None:
        facts = _connected(store)

        store.commit_batches([new_batch(facts, 3)])

        assert store.commit_batches([new_batch(facts, 9)]) == {BatchKey(*_name(facts), 9)}
        assert store.agent(facts.agent_id).last_sequence == 9

    def test_one_batch_sent_to_many_at_once_is_new_to_one(self, store: Store, other: Store) -> None:
        facts = _connected(store)
        batches = [new_batch(facts, sequence) for sequence in range(1, 21)]

        new = in_threads(6, lambda i: (store, other)[i % 2].commit_batches(batches))

        assert sorted(len(keys) for keys in new) == [0, 0, 0, 0, 0, 20]
        assert _sequences(store, facts) == list(range(1, 21))

    def test_many_agents_committed_at_once_in_any_order_are_all_stored(
        self, store: Store, other: Store
    ) -> None:
        agents = [_connected(store) for _ in range(20)]

        def send(worker: int) -> int:
            order = agents if worker % 2 else agents[::-1]
            replica = (store, other)[worker % 2]
            return sum(
                len(replica.commit_batches([new_batch(facts, sequence) for facts in order]))
                for sequence in range(1, 11)
            )

        assert sum(in_threads(4, send)) == 200
        assert all(_sequences(store, facts) == list(range(1, 11)) for facts in agents)

    def test_an_agent_shows_the_latest_of_its_figures(self, store: Store) -> None:
        facts = _connected(store)
        first = replace(
            new_batch(facts, 1), latest_step=b"step 1", faults=b"fault", dropped_sample_count=2
        )
        second = replace(new_batch(facts, 2), latest_sample=None, dropped_sample_count=3)
        third = replace(new_batch(facts, 3), faults=b"")

        store.commit_batches([second, first])
        before = store.agent(facts.agent_id)
        store.commit_batches([third])
        after = store.agent(facts.agent_id)

        assert (before.latest_sample, before.latest_step) == (b"sample 1", b"step 1")
        assert (before.faults, before.dropped_sample_count) == (b"fault", 5)
        assert (after.latest_sample, after.latest_step) == (b"sample 3", b"step 1")
        assert (after.faults, after.last_sequence) == (b"", 3)

    def test_batches_are_found_by_the_time_of_their_samples_in_pages(self, store: Store) -> None:
        facts = _connected(store)
        for sequence in range(1, 11):
            store.commit_batches([new_batch(facts, sequence, at_s=sequence)])
        window = {"start_unix_ms": _START_MS + 3000, "end_unix_ms": _START_MS + 8000}

        found, after = [], 0
        while page := store.batches(facts.agent_id, **window, after=after, limit=2):
            found += [stored.key.sequence for _, stored in page]
            after = page[-1][0]

        assert found == [3, 4, 5, 6, 7]

    def test_batches_received_in_a_window_come_once_in_pages(self, store: Store) -> None:
        first, second = _connected(store), _connected(store)
        _prune_all(store)
        for sequence in range(1, 7):
            both = (new_batch(facts, sequence, at_s=sequence * 10) for facts in (first, second))
            store.commit_batches(list(both))
        window = {"start_unix_ms": _START_MS + 20_000, "end_unix_ms": _START_MS + 50_000}

        found, after = [], 0
        while page := store.received_batches(**window, after=after, limit=4):
            found += [stored.key for _, stored in page]
            after = page[-1][0]

        expected = [BatchKey(*_name(f), s) for f in (first, second) for s in (2, 3, 4)]
        assert sorted(found) == sorted(expected)
        assert store.oldest_batch_unix_ms() == _START_MS + 10_000

    def test_only_what_is_older_is_dropped_and_no_more_at_once_than_allowed(
        self, store: Store
    ) -> None:
        _prune_all(store)
        facts = _connected(store)
        for sequence in range(1, 11):
            store.commit_batches([new_batch(facts, sequence, at_s=sequence)])
        retention = Retention(batches_unix_s=START_UNIX_S + 8, rollups_unix_s={})

        assert [store.prune(retention, limit=3) for _ in range(4)] == [3, 3, 1, 0]
        assert _sequences(store, facts) == [8, 9, 10]

    def test_a_store_without_batches_has_no_oldest_one(self, store: Store) -> None:
        _prune_all(store)

        assert store.oldest_batch_unix_ms() is None
        assert store.received_batches(**_FOREVER, limit=10) == []


def _connected(store: Store) -> AgentFacts:
    facts = new_agent()
    store.open_session(facts, session_id="session-1", replica="replica-1")
    return facts


def _name(facts: AgentFacts) -> tuple[str, str]:
    return facts.agent_id, facts.boot_id


def _sequences(store: Store, facts: AgentFacts) -> list[int]:
    found = store.batches(facts.agent_id, **_FOREVER, limit=1000)
    return [stored.key.sequence for _, stored in found]


def _prune_all(store: Store) -> None:
    while store.prune(Retention(batches_unix_s=2e9, rollups_unix_s={}), limit=1000):
        pass
