"""The ledger of rent, from sightings worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from spotwright.domain.errors import StoreUnavailableError
from spotwright.domain.job_run import JobState
from spotwright.domain.ledger import LedgerEntry, ProgressMark
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases.control_jobs import JobControl
from spotwright.usecases.keep_ledger import LedgerKeeper, ledger_changes, new_marks
from spotwright.usecases.planned_runs import PlannedRuns
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_fleet import PRICES, SPOT, entry, node, planned_fleet
from tests.usecases.example_job_run import after, job_run, plan_record

JOB = job_run(state=JobState.RUNNING)


def changes(agents: Sequence[AgentRecord], *known: LedgerEntry, at_s: float) -> list[LedgerEntry]:
    return ledger_changes(
        JOB.job_id,
        agents,
        known={entry.agent_id: entry for entry in known},
        prices=PRICES,
        now=after(at_s),
    )


def test_a_node_seen_for_the_first_time_begins_an_entry_at_the_plans_price() -> None:
    assert changes([node("a", seen_s=10)], at_s=12) == [entry("a", 10, 10, price=0.5)]


def test_a_node_in_a_pool_that_the_plan_does_not_have_has_no_known_price() -> None:
    (found,) = changes([node("a", seen_s=10, market="on-demand")], at_s=12)

    assert found.pool.market == "on-demand"
    assert found.price_usd_per_hour is None


def test_a_node_keeps_its_price_when_its_pool_is_no_longer_priced() -> None:
    known = replace(entry("a", 0, 10, price=0.9), pool=SPOT._replace(zone="gone"))
    seen = node("a", seen_s=40)
    seen = replace(seen, facts=replace(seen.facts, zone="gone"))

    assert changes([seen], known, at_s=41) == [replace(known, end_time=after(40))]


def test_a_price_that_comes_late_is_that_of_the_whole_time() -> None:
    unpriced = entry("a", 0, 10, price=None)

    assert changes([node("a", seen_s=40)], unpriced, at_s=41) == [entry("a", 0, 40, price=0.5)]


def test_a_node_that_is_seen_again_goes_on_and_one_that_is_not_changes_nothing() -> None:
    known = entry("a", 0, 10)

    assert changes([node("a", seen_s=40)], known, at_s=41) == [replace(known, end_time=after(40))]
    assert changes([node("a", seen_s=10)], known, at_s=41) == []


def test_an_agent_that_restarts_goes_on_with_its_entry() -> None:
    again = node("a", seen_s=40)
    again = replace(again, facts=replace(again.facts, boot_id="another", agent_version="9"))

    assert changes([again], entry("a", 0, 10), at_s=41) == [entry("a", 0, 40)]


@pytest.mark.parametrize(("silent_s", "start_s"), [(120, 0), (121, 131)])
def test_a_node_silent_for_more_than_two_minutes_begins_anew(silent_s: int, start_s: int) -> None:
    back_s = 10 + silent_s

    found = changes([node("a", seen_s=back_s)], entry("a", 0, 10), at_s=back_s)

    assert found == [entry("a", start_s, back_s)]


def test_a_name_that_another_instance_took_over_begins_anew() -> None:
    found = changes([node("a", seen_s=40, instance_id="i-new")], entry("a", 0, 10), at_s=41)

    assert [(e.start_time, e.instance_id) for e in found] == [(after(40), "i-new")]


def test_a_node_that_was_gone_before_anybody_looked_is_not_written_down() -> None:
    assert changes([node("a", seen_s=10)], at_s=131) == []
    assert changes([replace(node("a"), last_seen=None)], at_s=10) == []


def mark(at_s: float, fraction: float) -> ProgressMark:
    return ProgressMark(job_id=JOB.job_id, time=after(at_s), fraction=fraction)


def test_progress_is_marked_once_a_step_and_at_the_end_of_a_standstill() -> None:
    assert new_marks(None, None, mark(0, 0.1)) == [mark(0, 0.1)]
    assert new_marks(mark(0, 0.1), mark(0, 0.1), mark(30, 0.104)) == []
    assert new_marks(mark(0, 0.1), mark(30, 0.104), mark(60, 0.106)) == [mark(60, 0.106)]
    assert new_marks(mark(0, 0.1), mark(90, 0.1), mark(120, 0.2)) == [mark(90, 0.1), mark(120, 0.2)]


def test_a_job_is_looked_at_every_half_minute_and_only_changes_are_written() -> None:
    store = MemoryJobStore()
    keeper = LedgerKeeper(store)
    for at_s in range(0, 301, 5):
        stays = node("a", seen_s=at_s)
        gone = node("b", seen_s=min(at_s, 60))
        keeper.start_round({JOB.job_id})
        keeper.look(JOB, [stays, gone], prices=PRICES, now=after(at_s))
        keeper.write()

    assert store.written_counts == [2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    assert list(store.ledger(JOB.job_id)) == [entry("a", 0, 300), entry("b", 0, 60)]


def test_a_new_node_is_written_down_at_once() -> None:
    store = MemoryJobStore()
    keeper = LedgerKeeper(store)
    for at_s in range(0, 21, 5):
        agents = [node("a", seen_s=at_s), node("gone", seen_s=-999)]
        agents += [node("b", seen_s=at_s)] if at_s >= 10 else []
        keeper.look(JOB, agents, prices=PRICES, now=after(at_s))
        keeper.write()

    assert store.written_counts == [1, 2]
    assert list(store.ledger(JOB.job_id)) == [entry("a", 0, 10), entry("b", 10, 10)]


def test_the_next_controller_goes_on_with_the_entries() -> None:
    store = MemoryJobStore()
    for at_s in (0, 60, 150, 400):
        keeper = LedgerKeeper(store)
        keeper.look(JOB, [node("a", seen_s=at_s)], prices=PRICES, now=after(at_s + 1))
        keeper.write()

    assert list(store.ledger(JOB.job_id)) == [entry("a", 0, 150), entry("a", 400, 400)]


class _StoreThatFailsOnce(MemoryJobStore):
    fails = True

    def write_ledger(
        self, entries: Sequence[LedgerEntry], marks: Sequence[ProgressMark] = ()
    ) -> None:
        if self.fails:
            self.fails = False
            raise StoreUnavailableError("the store is away")
        super().write_ledger(entries, marks)


def test_what_could_not_be_written_is_written_later() -> None:
    store = _StoreThatFailsOnce()
    keeper = LedgerKeeper(store)
    keeper.look(JOB, [node("a", seen_s=0)], prices=PRICES, now=after(0))
    with pytest.raises(StoreUnavailableError):
        keeper.write()

    keeper.write()

    assert list(store.ledger(JOB.job_id)) == [entry("a", 0, 0)]


def test_a_controller_keeps_the_ledger_and_the_marks_of_its_jobs() -> None:
    store, now_s = MemoryJobStore(), [0.0]
    store.add_plan(plan_record())
    store.add_job(replace(JOB, progress_fraction=0.25), [])
    control = JobControl(
        store,
        PlannedRuns(store, lambda _: planned_fleet()),
        replica="a",
        clock=lambda: after(now_s[0]),
    )
    for at_s in (0.0, 35.0):
        now_s[0] = at_s
        store.agent_records["a"] = node("a", seen_s=at_s)
        control.make_round()

    assert list(store.ledger(JOB.job_id)) == [entry("a", 0, 35)]
    assert list(store.progress_marks(JOB.job_id)) == [mark(0, 0.25)]


def test_many_jobs_are_written_in_few_steps_of_bounded_size() -> None:
    store = MemoryJobStore()
    keeper = LedgerKeeper(store)
    names = [f"job-{i:03}" for i in range(300)]
    agents = [node(f"{i}", seen_s=0) for i in range(10)]
    for round_ in range(2):
        for name in names:
            keeper.look(job_run(name), agents, prices=PRICES, now=after(5 * round_))
        keeper.write()

    assert store.written_counts == [2000, 1000]
    assert all(len(store.ledger(name)) == 10 for name in names)
    assert SPOT in {e.pool for e in store.ledger(names[0])}
