"""What every store must do with sums by time."""

import random
from collections.abc import Iterable, Sequence

import pytest

from spotwright.domain.telemetry import FIGURES, AgentFacts, RollupPart, Statistic
from spotwright.usecases.store_ports import Retention, Store
from tests.contracts.store_values import START_UNIX_S, in_threads, new_agent, new_batch

Sample = tuple[float, str, float]


class RollupContract:
    """Tests that a subclass inherits."""

    @pytest.mark.parametrize("resolution_s", [10, 60])
    def test_rollups_equal_the_sums_of_all_samples_once(
        self, store: Store, other: Store, resolution_s: int
    ) -> None:
        facts, rng = _connected(store), random.Random(resolution_s)
        sent: list[Sample] = []
        for sequence in range(1, 121):
            samples = _random_samples(rng, around_s=2.0 * sequence)
            batch = new_batch(facts, sequence, at_s=2.0 * sequence, values=samples)
            store_of_it = rng.choice((store, other))
            assert store_of_it.commit_batches([batch])
            assert not rng.choice((store, other)).commit_batches([batch])
            sent += samples

        assert_same_sums(_rollups(store, facts, resolution_s), _summed(sent, resolution_s))

    def test_rollups_written_at_once_by_two_replicas_lose_nothing(
        self, store: Store, other: Store
    ) -> None:
        agents = [_connected(store) for _ in range(4)]

        def send(worker: int) -> None:
            for sequence in range(1, 31):
                batch = new_batch(agents[worker], sequence, at_s=sequence / 10)
                (store, other)[sequence % 2].commit_batches([batch])

        in_threads(4, send)

        for facts in agents:
            (whole,) = _rollups(store, facts, 60)
            assert whole.host_sample_count == 30

    def test_an_agent_that_replays_days_out_of_order_is_summed_up_exactly(
        self, store: Store
    ) -> None:
        facts, rng = _connected(store), random.Random(5)
        sent: list[Sample] = []
        for sequence in range(1, 101):
            samples = [(rng.randrange(20) * 8640.0, "cpu_fraction", rng.random())]
            store.commit_batches([new_batch(facts, sequence, values=samples)])
            sent += samples

        assert_same_sums(_rollups(store, facts, 10), _summed(sent, 10))

    def test_whole_intervals_come_oldest_first_up_to_a_limit(
        self, store: Store, other: Store
    ) -> None:
        facts = _connected(store)
        for sequence in range(1, 21):
            replica = (store, other)[sequence % 2]
            replica.commit_batches([new_batch(facts, sequence, at_s=5.0 * sequence)])

        found = store.rollups(
            facts.agent_id,
            resolution_s=10,
            start_unix_s=START_UNIX_S + 10,
            end_unix_s=START_UNIX_S + 60,
            limit=3,
        )

        starts = [START_UNIX_S + after_s for after_s in (10, 20, 30)]
        assert [(part.start_unix_s, part.host_sample_count) for part in found] == [
            (start, 2) for start in starts
        ]

    def test_every_figure_can_be_summed_up(self, store: Store) -> None:
        facts = _connected(store)
        values = [(1.0, figure, number) for number, figure in enumerate(FIGURES)]

        store.commit_batches([new_batch(facts, 1, values=values)])

        (whole,) = _rollups(store, facts, 10)
        assert whole.statistics == {f: Statistic.of(float(n)) for n, f in enumerate(FIGURES)}

    def test_rollups_are_dropped_by_their_own_age(self, store: Store) -> None:
        facts = _connected(store)
        for sequence in range(1, 7):
            store.commit_batches([new_batch(facts, sequence, at_s=20.0 * sequence)])
        before = {10: START_UNIX_S + 60.0, 60: START_UNIX_S + 60.0}

        while store.prune(Retention(batches_unix_s=0.0, rollups_unix_s=before), limit=1000):
            pass

        ten, minute = _rollups(store, facts, 10), _rollups(store, facts, 60)
        assert [part.start_unix_s - START_UNIX_S for part in ten] == [60, 80, 100, 120]
        assert [part.start_unix_s - START_UNIX_S for part in minute] == [60, 120]

    @pytest.mark.parametrize("limit", [3, 1000])
    def test_minutes_outlive_the_ten_seconds_they_are_made_of(
        self, store: Store, limit: int
    ) -> None:
        facts, rng = _connected(store), random.Random(limit)
        sent: list[Sample] = []
        for sequence in range(1, 61):
            samples = _random_samples(rng, around_s=4.0 * sequence)
            store.commit_batches([new_batch(facts, sequence, values=samples)])
            sent += samples
            if sequence % 20 == 0:  # late samples come after some of it was dropped
                before = {10: START_UNIX_S + 3.0 * sequence, 60: 0.0}
                while store.prune(Retention(0.0, before), limit=limit):
                    pass

        assert_same_sums(_rollups(store, facts, 60), _summed(sent, 60))
        assert min(part.start_unix_s for part in _rollups(store, facts, 10)) > START_UNIX_S + 160

    def test_samples_that_come_after_their_ten_seconds_were_dropped_count_once(
        self, store: Store, other: Store
    ) -> None:
        facts = _connected(store)

        for sequence in range(1, 7):
            store.commit_batches([new_batch(facts, sequence)])
            if sequence % 2:
                replica = (store, other)[sequence % 3 == 0]
                replica.prune(Retention(0.0, {10: START_UNIX_S + 10.0}), limit=1000)

        (minute,) = _rollups(store, facts, 60)
        assert minute.host_sample_count == 6

    def test_sums_stay_exact_while_others_drop_the_rows_they_are_added_to(
        self, store: Store, other: Store
    ) -> None:
        agents = [_connected(store) for _ in range(3)]

        def work(worker: int) -> None:
            for sequence in range(1, 41):
                if worker == 3:
                    other.prune(Retention(0.0, {10: START_UNIX_S + 10.0, 60: 0.0}), limit=1000)
                else:
                    store.commit_batches([new_batch(agents[worker], sequence)])

        in_threads(4, work)

        for facts in agents:
            (minute,) = _rollups(store, facts, 60)
            assert minute.host_sample_count == 40

    def test_rollups_outlive_the_batches_they_sum_up(self, store: Store) -> None:
        facts = _connected(store)
        store.commit_batches([new_batch(facts, 1)])

        while store.prune(Retention(batches_unix_s=2e9, rollups_unix_s={}), limit=1000):
            pass
        store.commit_batches([new_batch(facts, 2)])

        (whole,) = _rollups(store, facts, 10)
        assert whole.host_sample_count == 2


def assert_same_sums(
    found: Sequence[RollupPart], expected: dict[int, dict[str, list[float]]]
) -> None:
    """Compare with the values themselves; totals may differ by rounding."""
    assert [part.start_unix_s for part in found] == sorted(expected)
    for part in found:
        figures = expected[part.start_unix_s]
        assert part.host_sample_count == sum(len(values) for values in figures.values())
        assert part.statistics.keys() == figures.keys()
        for name, (count, total, largest) in part.statistics.items():
            values = figures[name]
            assert (count, largest) == (len(values), max(values))
            assert total == pytest.approx(sum(values), rel=1e-12, abs=1e-12)


def _summed(sent: Iterable[Sample], resolution_s: int) -> dict[int, dict[str, list[float]]]:
    sums: dict[int, dict[str, list[float]]] = {}
    for after_s, figure, value in sent:
        start = START_UNIX_S + int(after_s / resolution_s) * resolution_s
        sums.setdefault(start, {}).setdefault(figure, []).append(value)
    return sums


def _random_samples(rng: random.Random, *, around_s: float) -> list[Sample]:
    return [
        (around_s + rng.uniform(0.0, 15.0), rng.choice(FIGURES), rng.uniform(-1e6, 1e6))
        for _ in range(rng.randint(1, 6))
    ]


def _connected(store: Store) -> AgentFacts:
    facts = new_agent()
    store.open_session(facts, session_id="session-1", replica="replica-1")
    return facts


def _rollups(store: Store, facts: AgentFacts, resolution_s: int) -> Sequence[RollupPart]:
    return store.rollups(
        facts.agent_id, resolution_s=resolution_s, start_unix_s=0, end_unix_s=2**40, limit=10_000
    )
