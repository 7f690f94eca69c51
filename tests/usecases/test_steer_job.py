import math
from dataclasses import replace

import pytest

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


def test_at_the_last_moment_it_buys_on_demand() -> None:
    # 5 h of work, a restart of 0.2 h and a margin of a minute are left.
    late_s = 12 * HOUR - 5 * HOUR - 0.2 * HOUR - RULES.margin_s
    now = standing(staying={}, time_s=late_s, done_fraction=0.5, down=BOTH_DOWN)

    found = steered(now)

    assert found.move is Move.CHANGE
    assert [pool.market for pool in found.workers] == [Market.ON_DEMAND]
    without = steered(now, rules=replace(RULES, safety_net=False, pace=True))
    assert without.move in (Move.WAIT, Move.CHANGE)


def test_just_before_the_last_moment_spot_that_is_there_is_still_used() -> None:
    early_s = 12 * HOUR - 5 * HOUR - 0.2 * HOUR - RULES.margin_s - 0.05 * HOUR
    found = steered(standing(time_s=early_s, done_fraction=0.5))
    assert found.move is Move.KEEP
    assert found.workers == {SPOT: 1}


def test_on_demand_is_given_back_when_spot_returns_with_time_to_spare() -> None:
    on_demand = standing(staying={ON_DEMAND: 1}, time_s=2 * HOUR, done_fraction=0.15)
    found = steered(on_demand)
    assert found.move is Move.CHANGE
    assert [pool.market for pool in found.workers] == [Market.SPOT]
    kept = steered(on_demand, rules=replace(RULES, give_back=False))
    assert kept.workers == {ON_DEMAND: 1}


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


def test_a_spent_budget_rents_nothing_more() -> None:
    job = steered_job()
    job = replace(job, goal=replace(job.goal, budget_usd=5.0))
    found = steered(standing(spent_usd=5.0, time_s=HOUR, done_fraction=0.1), job)
    assert found.move is Move.GIVE_UP
    assert found.workers == {}


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


def test_ceilings_hold_in_every_decision() -> None:
    job = steered_job(max_nodes=4)
    for done, hours in ((0.0, 0.0), (0.3, 6.0), (0.5, 9.0), (0.7, 11.9)):
        for down in (frozenset[Pool](), frozenset({SPOT}), BOTH_DOWN):
            now = standing(staying={}, time_s=hours * HOUR, done_fraction=done, down=down)
            found = steered(now, job)
            assert sum(found.workers.values()) <= 4
            if found.move is not Move.WAIT:
                assert not down & found.workers.keys()


def test_a_pool_that_loses_nodes_often_is_left_for_one_that_does_not() -> None:
    stormy = {SPOT: Weather(up_hours=2.0, losses=6), OTHER_SPOT: Weather(up_hours=10.0)}
    found = steered(standing(staying={}, time_s=HOUR, done_fraction=0.05, weather=stormy))
    assert found.workers == {OTHER_SPOT: 1}


def test_a_small_saving_changes_nothing_that_works() -> None:
    begun = steered(standing(staying={}))
    (pool,) = begun.workers
    (other,) = {SPOT, OTHER_SPOT} - {pool}
    prices = {pool: 0.300, other: 0.296}
    now = standing(staying={pool: 1}, time_s=HOUR, done_fraction=0.1, prices_usd_per_hour=prices)
    assert steered(now, forced=False).move is Move.KEEP
    half = replace(now, prices_usd_per_hour={pool: 0.300, other: 0.150})
    assert steered(half, forced=False).workers == {other: 1}


def test_a_job_without_a_deadline_waits_for_at_most_twice_its_plan() -> None:
    job = steered_job()
    job = replace(job, goal=replace(job.goal, deadline_s=None))
    early = standing(staying={}, time_s=HOUR, done_fraction=0.1, down=BOTH_DOWN)
    assert steered(early, job).move is Move.WAIT
    late = replace(early, time_s=15 * HOUR, done_fraction=0.5)
    assert steered(late, job).move is not Move.GIVE_UP
    assert math.isfinite(steered(early, job).holds_s)


def test_slower_steps_than_planned_bring_on_demand_sooner() -> None:
    patient = steered_job(deadline="20h")
    now = standing(staying={}, time_s=8 * HOUR, done_fraction=0.2, down=BOTH_DOWN)
    as_planned, slow = steered(now, patient), steered(replace(now, pace_factor=0.68), patient)
    assert as_planned.move is Move.WAIT
    assert slow.move in (Move.CHANGE, Move.GIVE_UP)
