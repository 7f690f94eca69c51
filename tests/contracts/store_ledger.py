"""What every store must do with the ledger of rent."""

from dataclasses import replace
from datetime import timedelta

from spotwright.domain.ledger import LedgerEntry, ProgressMark, RentedPool
from spotwright.usecases.store_ports import LedgerStore
from tests.contracts.store_values import TIME, in_threads, unused

SPOT = RentedPool("g5.xlarge", "use1-az4", "spot")


def seen(job_id: str, agent_id: str = "gpu-1", *, from_s: float, to_s: float) -> LedgerEntry:
    return LedgerEntry(
        job_id=job_id,
        agent_id=agent_id,
        start_time=TIME + timedelta(seconds=from_s),
        end_time=TIME + timedelta(seconds=to_s),
        instance_id="i-0123",
        pool=SPOT,
        price_usd_per_hour=0.4375,
    )


class LedgerContract:
    """Tests that a subclass inherits."""

    def test_entries_come_back_as_they_were_by_start_and_agent(self, store: LedgerStore) -> None:
        job_id = unused("job")
        unknown = replace(
            seen(job_id, "gpu-2", from_s=0, to_s=0),
            instance_id="",
            pool=RentedPool("", "", ""),
            price_usd_per_hour=None,
        )
        later, first = seen(job_id, from_s=9.000001, to_s=10), seen(job_id, from_s=0, to_s=5)
        store.write_ledger([later, unknown, first])
        store.write_ledger([seen(unused("job"), from_s=0, to_s=1)])

        assert list(store.ledger(job_id)) == [first, unknown, later]
        assert list(store.ledger(unused("job"))) == []

    def test_the_end_of_an_entry_moves_on_and_never_back(self, store: LedgerStore) -> None:
        job_id = unused("job")
        for to_s in (5, 30, 20):
            store.write_ledger([seen(job_id, from_s=0, to_s=to_s)])

        assert list(store.ledger(job_id)) == [seen(job_id, from_s=0, to_s=30)]

    def test_a_price_that_was_not_known_is_filled_in_and_then_stays(
        self, store: LedgerStore
    ) -> None:
        job_id = unused("job")
        for to_s, usd in ((5, None), (6, 0.5), (7, 0.9), (8, None)):
            entry = replace(seen(job_id, from_s=0, to_s=to_s), price_usd_per_hour=usd)
            store.write_ledger([entry])

        (found,) = store.ledger(job_id)
        assert found == replace(seen(job_id, from_s=0, to_s=8), price_usd_per_hour=0.5)

    def test_entries_that_ended_before_can_be_left_out(self, store: LedgerStore) -> None:
        job_id = unused("job")
        ended, open_ = seen(job_id, from_s=0, to_s=5), seen(job_id, "gpu-2", from_s=1, to_s=60)
        store.write_ledger([ended, open_])

        assert list(store.ledger(job_id, seen_since=TIME + timedelta(seconds=6))) == [open_]
        assert list(store.ledger(job_id, seen_since=ended.end_time)) == [ended, open_]

    def test_a_mark_stays_as_it_was_written_first(self, store: LedgerStore) -> None:
        job_id = unused("job")
        first, second = (
            ProgressMark(job_id=job_id, time=TIME + timedelta(seconds=s), fraction=s / 100)
            for s in (10, 20)
        )
        store.write_ledger([], [second, first])
        store.write_ledger([], [replace(first, fraction=0.9)])

        assert list(store.progress_marks(job_id)) == [first, second]

    def test_replicas_that_write_the_same_rows_at_once_lose_nothing(
        self, store: LedgerStore, other: LedgerStore
    ) -> None:
        job_id, names = unused("job"), [f"gpu-{i:02}" for i in range(20)]

        def write(worker: int) -> None:
            ordered = names if worker % 2 else names[::-1]
            for to_s in range(1, 6):
                rows = [seen(job_id, name, from_s=0, to_s=to_s) for name in ordered]
                (store, other)[worker % 2].write_ledger(rows)

        in_threads(4, write)

        assert list(store.ledger(job_id)) == [seen(job_id, n, from_s=0, to_s=5) for n in names]
