from collections.abc import Sequence

import pytest

from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.telemetry import StoredBatch
from spotwright.usecases.history_ports import Archived
from spotwright.usecases.keep_house import GoOn, HouseRules, keep_house
from spotwright.usecases.store_ports import Retention

_NOW = 1_800_000_000.0


class _Shelf:
    """Rows by age: one batch and one rollup of each resolution every second."""

    def __init__(self, *, seconds: int) -> None:
        times = [_NOW - age_s for age_s in range(seconds)]
        self.batches = list(times)
        self.rollups = {10: list(times), 60: list(times)}
        self.largest_chunk = 0

    def oldest_batch_unix_ms(self, *, since_unix_ms: int = 0) -> int | None:
        times = [time * 1000 for time in self.batches if time * 1000 >= since_unix_ms]
        return int(min(times)) if times else None

    def received_batches(
        self, *, start_unix_ms: int, end_unix_ms: int, after: int = 0, limit: int
    ) -> Sequence[tuple[int, StoredBatch]]:
        return []

    def prune(self, retention: Retention, *, limit: int) -> int:
        shelves = [(self.batches, retention.batches_unix_s)]
        shelves += [(self.rollups[r], before) for r, before in retention.rollups_unix_s.items()]
        dropped_count = 0
        for times, before in shelves:
            old = sorted(time for time in times if time < before)[:limit]
            for time in old:
                times.remove(time)
            self.largest_chunk = max(self.largest_chunk, len(old))
            dropped_count += len(old)
        return dropped_count


_RULES = HouseRules(batches_s=100.0, rollups_s={10: 200.0, 60: 300.0}, chunk_count=40)


def test_each_kind_is_dropped_by_its_own_age_in_chunks() -> None:
    shelf = _Shelf(seconds=400)

    report = keep_house(shelf, now_unix_s=_NOW, rules=_RULES)

    assert min(shelf.batches) == _NOW - 100
    assert min(shelf.rollups[10]) == _NOW - 200
    assert min(shelf.rollups[60]) == _NOW - 300
    assert (report.dropped_count, report.is_done, report.archived) == (299 + 199 + 99, True, None)
    assert shelf.largest_chunk == 40


def test_batches_that_history_has_not_reached_are_not_dropped() -> None:
    shelf, archived = _Shelf(seconds=400), Archived(_NOW - 250, segment_count=2, row_count=9)

    report = keep_house(shelf, now_unix_s=_NOW, rules=_RULES, archive=lambda _: archived)

    assert min(shelf.batches) == _NOW - 250
    assert min(shelf.rollups[10]) == _NOW - 200
    assert report.archived == archived


def test_history_that_is_ahead_does_not_shorten_the_time_batches_are_kept() -> None:
    shelf, archived = _Shelf(seconds=400), Archived(_NOW - 5, segment_count=0, row_count=0)

    keep_house(shelf, now_unix_s=_NOW, rules=_RULES, archive=lambda _: archived)

    assert min(shelf.batches) == _NOW - 100


def test_a_round_ends_after_so_many_chunks_and_says_that_more_is_left() -> None:
    shelf = _Shelf(seconds=400)
    rules = HouseRules(batches_s=100.0, rollups_s={}, chunk_count=40, max_chunks=2)

    report = keep_house(shelf, now_unix_s=_NOW, rules=rules)

    assert (report.dropped_count, report.is_done) == (80, False)


def test_a_round_that_is_told_to_stop_ends_between_two_chunks() -> None:
    shelf, answers = _Shelf(seconds=400), iter([True, True, False])
    rules = HouseRules(batches_s=100.0, rollups_s={}, chunk_count=40)

    report = keep_house(shelf, now_unix_s=_NOW, rules=rules, go_on=lambda: next(answers))

    assert (report.dropped_count, report.is_done) == (80, False)


def test_history_that_cannot_be_written_keeps_batches_and_nothing_else() -> None:
    shelf = _Shelf(seconds=400)

    def broken(_: GoOn) -> Archived:
        raise OutsideWorldError("the folder is gone")

    with pytest.raises(OutsideWorldError, match="the folder is gone"):
        keep_house(shelf, now_unix_s=_NOW, rules=_RULES, archive=broken)

    assert len(shelf.batches) == 400
    assert min(shelf.rollups[10]) == _NOW - 200
    assert min(shelf.rollups[60]) == _NOW - 300


def test_by_default_batches_stay_half_an_hour_and_rollups_two_and_ninety_days() -> None:
    assert HouseRules().batches_s == 30 * 60
    assert HouseRules().rollups_s == {10: 2 * 24 * 3600, 60: 90 * 24 * 3600}


def test_by_default_requests_stay_a_week_and_agents_ninety_days_after_they_were_seen() -> None:
    asked: list[Retention] = []

    class Source(_Shelf):
        def prune(self, retention: Retention, *, limit: int) -> int:
            asked.append(retention)
            return 0

    keep_house(Source(seconds=1), now_unix_s=_NOW)

    assert asked[0].requests_unix_s == _NOW - 7 * 24 * 3600
    assert asked[0].agents_unix_s == _NOW - 90 * 24 * 3600
