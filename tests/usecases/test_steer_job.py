from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Pool
from spotwright.domain.steering import Move, Weather
from tests.usecases.steered_job import (
    HOUR,
    ON_DEMAND,
    OTHER_SPOT,
    RULES,
    SPOT,
    standing,
    steered,
    steered_job,
)

BOTH_DOWN = frozenset({SPOT, OTHER_SPOT})


def test_a_new_job_begins_on_the_cheapest_spot_node() -> None:
    found = steered(standing(staying={}))
    assert found.move is Move.CHANGE
    assert [pool.market for pool in found.workers] == [Market.SPOT]


def test_what_runs_and_is_cheapest_is_kept() -> None:
    cheapest = steered(standing(staying={})).workers
    found = steered(standing(staying=cheapest, time_s=HOUR, done_fraction=0.1), forced=False)
    assert found.move is Move.KEEP
    assert found.workers == cheapest


def test_a_lost_node_is_replaced_in_another_zone_that_has_spot() -> None:
    found = steered(standing(staying={}, time_s=HOUR, done_fraction=0.1, down=frozenset({SPOT})))
    assert found.move is Move.CHANGE
    assert found.workers == {OTHER_SPOT: 1}


def test_with_time_to_spare_it_waits_for_spot_and_says_for_how_long() -> None:
    patient = steered_job(deadline="20h")
    found = steered(standing(staying={}, time_s=HOUR, done_fraction=0.1, down=BOTH_DOWN), patient)
    assert found.move is Move.WAIT
    assert 0 < found.holds_s <= 10 * HOUR


@pytest.mark.parametrize("strategy", ["allreduce", "asp-ps"])
def test_survivors_train_on_while_other_pools_are_waited_for(strategy: str) -> None:
    job = steered_job(deadline="30h", max_nodes=4, strategy=strategy)
    cheap = {OTHER_SPOT: 0.02, SPOT: 0.4}
    now = standing(
        staying={SPOT: 2},
        asked={SPOT: 4},
        time_s=2 * HOUR,
        done_fraction=0.15,
        down=BOTH_DOWN,
        prices_usd_per_hour=cheap,
    )

    found = steered(now, job)
    alone = steered(replace(now, staying={}), job)

    assert (found.move, found.workers) == (Move.WAIT, {SPOT: 4})
    assert alone.move is Move.WAIT
    assert {*alone.workers} == {OTHER_SPOT}  # nobody is left who would go for it


def test_at_the_last_moment_it_buys_on_demand() -> None:
    # 5 h of work, a restart of 0.2 h and a margin of a minute are left.
    late_s = 12 * HOUR - 5 * HOUR - 0.2 * HOUR - RULES.margin_s
    now = standing(staying={}, time_s=late_s, done_fraction=0.5, down=BOTH_DOWN)

    found = steered(now)

    assert found.move is Move.CHANGE
    assert [pool.market for pool in found.workers] == [Market.ON_DEMAND]
    assert found.holds_s == RULES.look_around_s


def test_without_a_net_the_last_moment_passes() -> None:
    now = standing(staying={}, time_s=6.5 * HOUR, done_fraction=0.5, is_probed=True)
    assert [pool.market for pool in steered(now).workers] == [Market.SPOT]
    late = replace(now, time_s=6.8 * HOUR)
    assert [pool.market for pool in steered(late).workers] == [Market.ON_DEMAND]
    without = steered(late, rules=replace(RULES, safety_net=False, pace=False))
    assert [pool.market for pool in without.workers] == [Market.SPOT]


def test_just_before_the_last_moment_spot_that_is_there_is_still_used() -> None:
    early_s = 12 * HOUR - 5 * HOUR - 0.2 * HOUR - RULES.margin_s - 0.05 * HOUR
    found = steered(standing(time_s=early_s, done_fraction=0.5))
    assert found.move is Move.KEEP
    assert found.workers == {SPOT: 1}


def test_what_runs_is_kept_where_entering_another_spot_pool_takes_time_that_the_net_needs() -> None:
    stormy = {SPOT: Weather(up_hours=2.0, losses=12), OTHER_SPOT: Weather(up_hours=10.0)}
    needed_s = 5.2 * HOUR + RULES.margin_s  # of the sure fleet, entered at the last moment
    roomy = standing(time_s=11 * HOUR - needed_s, done_fraction=0.5, weather=stormy)
    assert steered(roomy, forced=False).workers == {OTHER_SPOT: 1}
    tight = replace(roomy, time_s=12 * HOUR - needed_s - 0.15 * HOUR)
    for forced in (False, True):
        found = steered(tight, forced=forced)
        assert (found.move, found.workers) == (Move.KEEP, {SPOT: 1})
        assert found.holds_s <= 0.15 * HOUR
    without = steered(tight, rules=replace(RULES, safety_net=False), forced=False)
    assert without.workers == {OTHER_SPOT: 1}


def test_on_demand_is_given_back_when_spot_returns_with_time_to_spare() -> None:
    on_demand = standing(staying={ON_DEMAND: 1}, time_s=2 * HOUR, done_fraction=0.15)
    found = steered(on_demand)
    assert found.move is Move.CHANGE
    assert [pool.market for pool in found.workers] == [Market.SPOT]
    kept = steered(on_demand, rules=replace(RULES, give_back=False))
    assert kept.workers == {ON_DEMAND: 1}


@pytest.mark.parametrize(
    ("is_probed", "spare_h", "move"),
    # A restart to leave and one to come back; where nobody knows whether nodes come, 5 min more.
    [
        (True, 0.39, Move.KEEP),
        (True, 0.41, Move.CHANGE),
        (False, 0.47, Move.KEEP),
        (False, 0.49, Move.CHANGE),
    ],
)
def test_on_demand_is_left_only_with_the_time_to_come_back(
    is_probed: bool, spare_h: float, move: Move
) -> None:
    last_s = 12 * HOUR - 5 * HOUR - RULES.margin_s - 10.0  # of work, and of a checkpoint
    now = standing(
        staying={ON_DEMAND: 1},
        asked={ON_DEMAND: 1},
        time_s=last_s - spare_h * HOUR,
        done_fraction=0.5,
        is_probed=is_probed,
    )

    assert steered(now).move is move


def test_on_demand_is_kept_where_there_is_no_time_to_come_back() -> None:
    now = standing(staying={ON_DEMAND: 1}, time_s=6.8 * HOUR, done_fraction=0.5)
    assert steered(now).move is Move.KEEP


def test_a_goal_out_of_reach_is_told_at_once_with_the_best_that_can_be_had() -> None:
    found = steered(standing(staying={}, time_s=10 * HOUR, done_fraction=0.5, down=BOTH_DOWN))
    assert found.move is Move.GIVE_UP
    assert "late" in found.reason
    assert [pool.market for pool in found.workers] == [Market.ON_DEMAND]
    assert found.finish_s is not None
    assert found.finish_s > 12 * HOUR


def with_budget(usd: float, **asked: Any) -> JobSpec:
    job = steered_job(**asked)
    return replace(job, goal=replace(job.goal, budget_usd=usd))


def test_a_spent_budget_rents_nothing_more_and_gives_back_what_runs() -> None:
    now = standing(time_s=HOUR, done_fraction=0.1, servers={ON_DEMAND: 1}, spent_usd=49.0)
    for spent in (replace(now, spent_usd=50.0), replace(now, is_spent=True)):
        found = steered(spent, with_budget(50.0))
        assert (found.move, found.workers, found.servers) == (Move.GIVE_UP, {}, {})
        assert found.gives_back
    assert not steered(now, with_budget(50.0)).gives_back


@pytest.mark.parametrize("pace", [0.5, 0.7, 1.0, 1.4])
def test_a_budget_pays_for_what_is_left_at_the_pace_that_was_measured(pace: float) -> None:
    # Ten hours at $0.3145, and what interruptions cost: $12.60 for four times the work.
    budget_usd = 12.60 / pace
    now = standing(staying={}, pace_factor=pace)
    found = steered(now, with_budget(budget_usd * 1.05, deadline="120h", max_nodes=4))
    assert found.move is Move.CHANGE
    assert found.cost_usd == pytest.approx(budget_usd, rel=0.01)
    short = steered(now, with_budget(budget_usd * 0.95, deadline="120h", max_nodes=4))
    assert (short.move, short.workers) == (Move.GIVE_UP, {})
    assert short.reason.startswith("the budget cannot be kept")


def test_a_goal_that_the_budget_does_not_pay_for_is_told_with_what_is_missing() -> None:
    job = with_budget(10.0, deadline="60h", max_nodes=4)
    found = steered(standing(), job)
    assert (found.move, found.workers) == (Move.GIVE_UP, {SPOT: 1})
    assert found.cost_usd == pytest.approx(12.60, abs=0.01)
    assert found.reason.startswith("the budget cannot be kept: the best fleet needs $2.60 more")


def test_a_deadline_that_the_budget_has_no_fleet_for_is_told_with_the_fastest_that_it_pays() -> (
    None
):
    job = with_budget(13.0, deadline="30h", max_nodes=4)
    now = standing(staying={}, time_s=20 * HOUR)
    found = steered(now, job)
    assert found.move is Move.GIVE_UP
    assert found.reason.startswith("the deadline cannot be kept: the best fleet is ")
    assert " ms " not in found.reason
    assert found.workers
    assert found.cost_usd is not None
    assert found.cost_usd <= 13.0


def test_spot_nodes_that_are_in_time_are_kept_where_on_demand_nodes_would_be_late() -> None:
    # The budget pays for spot nodes only; on-demand ones that it pays for are too few.
    job = with_budget(16.0, deadline="60h", max_nodes=4)
    begun = steered(standing(staying={}), job)
    now = standing(staying=begun.workers, time_s=10 * HOUR, done_fraction=0.2, spent_usd=3.2)
    found = steered(now, job)
    assert found.move is Move.KEEP
    assert found.workers == begun.workers


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_survivors_are_kept_beside_what_replaces_the_lost(lost: int) -> None:
    job = steered_job(max_nodes=4)
    begun = steered(standing(staying={}), job)
    (pool,) = begun.workers
    count = begun.workers[pool]
    staying = {pool: count - lost} if count > lost else {}

    found = steered(standing(staying=staying, time_s=4 * HOUR, done_fraction=0.35), job)

    assert found.workers.get(pool, 0) >= count - lost
    assert sum(found.workers.values()) <= 4


@pytest.mark.parametrize("budget_usd", [8.0, 14.0, 25.0, 60.0])
@pytest.mark.parametrize("pace", [0.6, 1.0, 1.3])
def test_ceilings_hold_in_every_decision(budget_usd: float, pace: float) -> None:
    job = with_budget(budget_usd, deadline="24h", max_nodes=4)
    moves = set()
    for done, hours in ((0.0, 0.0), (0.3, 6.0), (0.5, 9.0), (0.7, 23.9)):
        for down in (frozenset[Pool](), frozenset({SPOT}), BOTH_DOWN):
            now = standing(staying={}, time_s=hours * HOUR, done_fraction=done, down=down)
            found = steered(replace(now, spent_usd=10 * done, pace_factor=pace), job)
            moves.add(found.move)
            assert sum(found.workers.values()) <= 4
            if found.workers:
                assert found.cost_usd is not None
                assert found.cost_usd <= budget_usd
            if found.move is not Move.WAIT:
                assert not down & found.workers.keys()
    assert moves - {Move.GIVE_UP} or budget_usd < 25


def test_a_pool_that_loses_nodes_often_is_left_for_one_that_does_not() -> None:
    stormy = {SPOT: Weather(up_hours=2.0, losses=6), OTHER_SPOT: Weather(up_hours=10.0)}
    found = steered(standing(staying={}, time_s=HOUR, done_fraction=0.05, weather=stormy))
    assert found.workers == {OTHER_SPOT: 1}


@pytest.mark.parametrize("spare_h", [0.02, 0.1, 0.25])
def test_spot_nodes_that_do_are_not_left_for_others_that_may_come_too_late(spare_h: float) -> None:
    # A restart of 0.2 h, and five minutes until it is known that nodes do not come.
    stormy = {SPOT: Weather(up_hours=10.0, losses=20)}
    last_s = 12 * HOUR - 5 * HOUR - 0.2 * HOUR - RULES.margin_s - 10.0
    now = standing(done_fraction=0.5, weather=stormy, time_s=last_s - spare_h * HOUR)

    stuck = steered(now)

    assert (stuck.move, stuck.workers) == (Move.KEEP, {SPOT: 1})
    assert stuck.holds_s <= spare_h * HOUR + 1  # saving its state often slows it down
    early = steered(replace(now, time_s=now.time_s - HOUR))
    assert (early.move, early.workers) == (Move.CHANGE, {OTHER_SPOT: 1})
    assert steered(now, rules=replace(RULES, safety_net=False)).workers == {OTHER_SPOT: 1}


def test_a_small_saving_changes_nothing_that_works() -> None:
    begun = steered(standing(staying={}))
    (pool,) = begun.workers
    (other,) = {SPOT, OTHER_SPOT} - {pool}
    prices = {pool: 0.300, other: 0.296}
    now = standing(staying={pool: 1}, time_s=HOUR, done_fraction=0.1, prices_usd_per_hour=prices)
    assert steered(now, forced=False).move is Move.KEEP
    half = replace(now, prices_usd_per_hour={pool: 0.300, other: 0.150})
    assert steered(half, forced=False).workers == {other: 1}


def without_deadline(**asked: Any) -> JobSpec:
    job = steered_job(**asked)
    return replace(job, goal=replace(job.goal, deadline_s=None))


@pytest.mark.parametrize(
    ("hours", "done", "waits_h"),
    # Twice the ten hours that were planned, less what is left and a restart.
    [(1.0, 0.1, 20 - 1 - 9 - 0.2), (14.0, 0.5, 20 - 14 - 5 - 0.2), (15.0, 0.5, None)],
)
def test_a_job_without_a_deadline_waits_for_at_most_twice_its_plan(
    hours: float, done: float, waits_h: float | None
) -> None:
    now = standing(staying={}, time_s=hours * HOUR, done_fraction=done, down=BOTH_DOWN)
    found = steered(now, without_deadline())
    if waits_h is None:
        assert found.move is Move.CHANGE
        assert found.workers == {ON_DEMAND: 1}
    else:
        assert found.move is Move.WAIT
        assert found.holds_s == pytest.approx(waits_h * HOUR)


@pytest.mark.parametrize("down", [frozenset[Pool](), BOTH_DOWN])
@pytest.mark.parametrize(("hours", "done"), [(18.0, 0.5), (25.0, 0.5), (25.0, 0.9), (99.0, 0.999)])
def test_a_job_without_a_deadline_is_never_in_a_hurry(
    hours: float, done: float, down: frozenset[Pool]
) -> None:
    job = without_deadline(max_nodes=4)
    begun = steered(standing(staying={}), job)
    now = standing(staying={}, time_s=hours * HOUR, done_fraction=done, down=down)
    found = steered(now, job)
    assert found.move is Move.CHANGE
    assert [*found.workers.values()] == [*begun.workers.values()]
    assert {pool.market for pool in found.workers} == {Market.ON_DEMAND if down else Market.SPOT}


def test_a_job_without_a_deadline_leaves_on_demand_nodes_when_spot_is_back() -> None:
    now = standing(staying={ON_DEMAND: 1}, time_s=30 * HOUR, done_fraction=0.3)
    assert steered(now, without_deadline()).workers.keys() <= {SPOT, OTHER_SPOT}


def test_slower_steps_than_planned_bring_on_demand_sooner() -> None:
    patient = steered_job(deadline="20h")
    now = standing(staying={}, time_s=8 * HOUR, done_fraction=0.2, down=BOTH_DOWN)
    as_planned, slow = steered(now, patient), steered(replace(now, pace_factor=0.68), patient)
    assert as_planned.move is Move.WAIT
    assert slow.move is Move.CHANGE
    assert slow.workers == {ON_DEMAND: 1}


def test_what_stands_still_counts_with_the_least_pace() -> None:
    patient = steered_job(deadline="80h")
    now = standing(time_s=HOUR, done_fraction=0.08, pace_factor=0.0)
    still = steered(now, patient)
    assert still == steered(replace(now, pace_factor=RULES.least_pace), patient)
    assert still.move is Move.KEEP
