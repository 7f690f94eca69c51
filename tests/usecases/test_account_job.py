"""Accounts of a job, from ledgers worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from spotwright.domain.accounts import EventCount, JobAccounts, NodeSpan, PoolAccount
from spotwright.domain.job_run import Event, JobRun, JobState
from spotwright.domain.ledger import LedgerEntry, ProgressMark
from spotwright.usecases.account_job import Records, account_job, lost_fraction
from spotwright.usecases.rented_spans import below_fraction, rented_spans
from tests.usecases.example_fleet import ON_DEMAND, SERVER, SPOT, entry, planned_fleet
from tests.usecases.example_job_run import after, job_run, planned_run

RUNNING = replace(job_run(state=JobState.RUNNING), progress_fraction=0.25)
ENDED = replace(RUNNING, state=JobState.SUCCEEDED, end_time=after(3600), progress_fraction=1.0)


def happened(kind: str, at_s: float, **facts: str) -> Event:
    return Event(sequence=1, time=after(at_s), kind=kind, text=kind, facts=facts)


def accounts(
    job: JobRun,
    *entries: LedgerEntry,
    events: Sequence[Event] = (),
    marks: Sequence[ProgressMark] = (),
    at_s: float = 3600.0,
) -> JobAccounts:
    records = Records(entries, events, marks)
    return account_job(job, planned_fleet(), records, now=after(at_s))


def of_pool(found: JobAccounts, pool: object) -> PoolAccount:
    (account,) = [account for account in found.pools if account.pool == pool]
    return account


def times(spans: Sequence[NodeSpan]) -> list[tuple[str, float, float]]:
    start = after(0)
    return [
        (s.agent_id, (s.start_time - start).total_seconds(), (s.end_time - start).total_seconds())
        for s in spans
    ]


def test_a_pool_is_billed_by_the_hours_in_which_its_nodes_were_rented() -> None:
    # Three of the four workers: a hour, half an hour, and 20 minutes before the start until 0:10.
    found = accounts(ENDED, entry("a", 0, 3600), entry("b", 1800, 3600), entry("c", -1200, 600))

    workers = of_pool(found, SPOT)
    assert workers.granted_node_hours == pytest.approx(1 + 0.5 + 0.5)
    assert workers.actual_usd == pytest.approx(2.0 * 0.5)
    assert workers.planned_usd == pytest.approx(4 * 0.5 * 1.0)
    assert (workers.role, workers.planned_node_count) == ("worker", 4)
    assert workers.below_planned_fraction == 1.0
    server = of_pool(found, SERVER)
    assert (server.granted_node_hours, server.actual_usd) == (0.0, 0.0)
    assert server.planned_usd == pytest.approx(0.2)
    assert found.spent_usd == found.priced_usd == pytest.approx(1.0)


def test_on_demand_that_stands_where_spot_was_planned_is_told_and_has_no_price() -> None:
    found = accounts(ENDED, entry("a", 0, 3600), entry("b", 1800, 3600, pool=ON_DEMAND, price=None))

    other = of_pool(found, ON_DEMAND)
    assert (other.market, other.planned_market) == ("on-demand", "spot")
    assert (other.planned_node_count, other.planned_usd, other.role) == (0, None, "")
    assert other.granted_node_hours == pytest.approx(0.5)
    assert other.actual_usd is other.price_usd_per_hour is None
    assert found.spent_usd is None
    assert found.priced_usd == pytest.approx(0.5)
    assert found.unpriced_node_hours == pytest.approx(0.5)


def test_a_pool_that_nobody_planned_shows_the_mean_price_that_was_paid() -> None:
    elsewhere = SPOT._replace(zone="use1-az1")
    first, then = (
        entry("a", 0, 1800, pool=elsewhere, price=0.4),
        entry("a", 1800, 3600, pool=elsewhere, price=0.6),
    )

    found = of_pool(accounts(ENDED, first, then), elsewhere)

    assert found.planned_market is None
    assert found.price_usd_per_hour == pytest.approx(0.5)
    assert found.actual_usd == pytest.approx(0.5)
    assert found.below_planned_fraction is None


def test_time_below_the_planned_number_counts_from_the_first_progress() -> None:
    nodes = [entry(name, -600, 3600) for name in "abc"]

    # The fourth came 15 minutes late and went 6 minutes early: 21 minutes of an hour.
    found = accounts(ENDED, *nodes, entry("d", 900, 3240))

    assert of_pool(found, SPOT).below_planned_fraction == pytest.approx(21 / 60)


def test_below_fraction_of_no_time_is_not_known() -> None:
    assert below_fraction([], node_count=1, start=after(5), end=after(5)) is None
    assert below_fraction([], node_count=1, start=after(5), end=after(6)) == 1.0


def test_an_instance_that_is_back_was_rented_all_the_time_and_another_one_was_not() -> None:
    same = [entry("a", 0, 600), entry("a", 1200, 1800)]
    another = [entry("b", 0, 600), entry("b", 1200, 1800, instance_id="i-other")]
    nameless = [entry("c", 0, 600, instance_id=""), entry("c", 1200, 1800, instance_id="")]

    spans = rented_spans([*same, *another, *nameless], until=after(9999))

    assert times(spans) == [
        *(("a", 0, 1800), ("b", 0, 600), ("c", 0, 600)),
        *(("b", 1200, 1800), ("c", 1200, 1800)),
    ]


def test_entries_that_two_replicas_wrote_of_one_node_count_once() -> None:
    spans = rented_spans([entry("a", 0, 600), entry("a", 1, 900)], until=after(9999))

    assert times(spans) == [("a", 0, 900)]


def test_a_price_that_changed_holds_from_then_on() -> None:
    spans = rented_spans(
        [entry("a", 0, 600, price=0.5), entry("a", 630, 3630, price=1.0)], until=after(9999)
    )

    assert times(spans) == [("a", 0, 630), ("a", 630, 3630)]


def test_what_was_seen_lately_runs_until_the_end_of_the_accounts() -> None:
    found = accounts(
        RUNNING, entry("a", 0, 1800), entry("b", 0, 1790), entry("c", 0, 900), at_s=1815
    )

    assert found.until == after(1800)
    assert times(found.timeline) == [("a", 0, 1800), ("b", 0, 1800), ("c", 0, 900)]
    assert [span.is_running for span in found.timeline] == [True, True, False]


def test_a_fleet_that_is_gone_is_below_the_plan_until_now() -> None:
    found = accounts(RUNNING, *(entry(name, 0, 900) for name in "abcd"), at_s=3600)

    assert found.until == after(3600)
    assert of_pool(found, SPOT).below_planned_fraction == pytest.approx(0.75)


def test_nothing_is_rented_for_a_job_after_its_end() -> None:
    found = accounts(ENDED, entry("a", 0, 3700), entry("b", 3650, 3700), at_s=9999)

    assert times(found.timeline) == [("a", 0, 3600)]


def test_a_job_that_no_agent_was_seen_for_has_no_bill() -> None:
    found = accounts(RUNNING)

    assert found.spent_usd is None
    assert {account.actual_usd for account in found.pools} == {None}
    assert {account.below_planned_fraction for account in found.pools} == {None}


def test_a_node_is_interrupted_once_however_often_the_cloud_says_so() -> None:
    notices = [happened("interruption-notice", at_s, agent_id="a") for at_s in (600, 605)]
    again = happened("interruption-notice", 3000, agent_id="a")
    other = [
        happened("interruption-notice", 700, agent_id="b"),
        happened("notice-withdrawn", 720, agent_id="b"),
        happened("interruption-notice", 700, agent_id="nobody"),
        happened("interruption-hint", 700, agent_id="b"),
    ]
    nodes = [entry("a", 0, 700), entry("a", 1500, 3100, instance_id="i-new"), entry("b", 0, 3600)]

    found = accounts(ENDED, *nodes, events=[*notices, *other, again])

    assert of_pool(found, SPOT).interruption_count == 2
    assert EventCount(kind="interruption-notice", event_count=5) in found.event_counts


def test_events_are_counted_and_those_of_every_day_are_not_marked() -> None:
    events = [
        happened("job-created", 0),
        happened("controller-changed", 1),
        happened("agent-silent", 2),
        happened("agent-silent", 3),
    ]

    found = accounts(RUNNING, events=events)

    assert [(c.kind, c.event_count) for c in found.event_counts] == [
        ("agent-silent", 2),
        ("controller-changed", 1),
        ("job-created", 1),
    ]
    assert [mark.time for mark in found.marks] == [after(2), after(3)]


def test_progress_goes_from_the_start_over_the_marks_to_now() -> None:
    marks = [
        ProgressMark(job_id="resnet-1", time=after(at_s), fraction=fraction)
        for at_s, fraction in ((0, 0.0), (900, 0.2), (9999, 0.9))
    ]

    found = accounts(RUNNING, marks=marks, at_s=1800)

    assert [(p.time, p.fraction) for p in found.progress] == [
        (after(0), 0.0),
        (after(900), 0.2),
        (after(1800), 0.25),
    ]
    assert accounts(job_run(), marks=marks).progress == ()


def test_lost_work_is_what_was_reached_before_training_fell_back() -> None:
    events = [
        happened("progress-fell-back", 60, samples="20000", reached_samples="50000"),
        happened("progress-fell-back", 90, samples="60000", reached_samples="70000"),
    ]

    assert lost_fraction(planned_run(), events) == pytest.approx(0.4)
    assert lost_fraction(planned_run(), []) == 0.0
    assert lost_fraction(planned_run(), [happened("progress-fell-back", 1, samples="5")]) is None


def test_progress_of_an_event_is_read_by_what_the_goal_counts() -> None:
    event = happened("progress-fell-back", 60, steps="100", reached_steps="350")

    assert lost_fraction(planned_run(), [event]) == pytest.approx(0.25)
