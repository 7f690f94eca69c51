from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.job import Goal, Target, TargetKind
from spotwright.domain.steering import JobView, Move, NodeState, NodeView, Steering, Trigger
from spotwright.usecases.steering_memory import SteeringMemory, counted_from_later, decided
from spotwright.usecases.watch_fleet import Watched, is_too_early, watch_fleet
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

GOAL = Goal(
    target=Target(kind=TargetKind.SAMPLES, value=1e6), deadline_s=12 * HOUR, budget_usd=100.0
)


def nodes(count: int, pool: Any = SPOT, state: NodeState = NodeState.TRAINING) -> list[NodeView]:
    return [NodeView(node_id=f"{pool}-{i}", pool=pool, state=state) for i in range(count)]


def view(seen: Sequence[NodeView], *, time_s: float = 0.0, **changes: Any) -> JobView:
    standing = JobView(
        time_s=time_s,
        done_fraction=time_s / (10 * HOUR),
        spent_usd=time_s / HOUR,
        nodes=tuple(seen),
        asked={SPOT: 4},
    )
    return replace(standing, **changes)


def looked(seen: JobView, memory: SteeringMemory | None = None, *, rules: Any = RULES) -> Watched:
    return watch_fleet(
        seen,
        memory or SteeringMemory(),
        goal=GOAL,
        rules=rules,
        spot_pools=frozenset({SPOT, OTHER_SPOT}),
    )


def running(time_s: float = 0.0) -> SteeringMemory:
    """Return the memory of a job that keeps four spot nodes."""
    first = looked(view(nodes(4), time_s=time_s))
    keeps = Steering(
        move=Move.KEEP,
        workers={SPOT: 4},
        servers={},
        reason="",
        holds_s=1e9,
        goal_per_hour=0.1,
        usd_per_hour=1.0,
    )
    return decided(first.memory, keeps, view(nodes(4), time_s=time_s))


def test_the_first_look_asks_for_a_decision() -> None:
    assert looked(view(nodes(0))).triggers == (Trigger.STARTED,)


def test_a_fleet_that_goes_on_as_it_should_asks_for_nothing() -> None:
    assert looked(view(nodes(4), time_s=60.0), running()).triggers == ()


def test_a_notice_is_told_once_and_its_node_counts_as_gone() -> None:
    leaving = [*nodes(3), replace(nodes(4)[3], state=NodeState.LEAVING)]
    first = looked(view(leaving, time_s=60.0), running())
    assert first.triggers == (Trigger.INTERRUPTION_NOTICE,)
    assert first.forced
    assert first.now.staying == {SPOT: 3}
    assert SPOT in first.now.down
    again = looked(view(leaving, time_s=65.0), first.memory)
    assert again.triggers == ()


def test_a_node_that_goes_after_its_notice_is_not_a_second_failure_of_its_pool() -> None:
    leaving = [*nodes(3), replace(nodes(4)[3], state=NodeState.LEAVING)]
    noticed = looked(view(leaving, time_s=60.0), running())
    gone = looked(view(nodes(3), time_s=180.0), noticed.memory)
    assert Trigger.NODE_LOST in gone.triggers
    assert gone.memory.failures[SPOT][0] == 1
    assert gone.memory.weather[SPOT].losses == 1


def test_a_notice_that_is_withdrawn_leaves_the_node_where_it_was() -> None:
    leaving = [*nodes(3), replace(nodes(4)[3], state=NodeState.LEAVING)]
    noticed = looked(view(leaving, time_s=60.0), running())
    back = looked(view(nodes(4), time_s=70.0), noticed.memory)
    assert back.now.staying == {SPOT: 4}
    assert Trigger.NODE_LOST not in back.triggers


def test_a_hint_forces_nothing() -> None:
    hinted = [*nodes(3), replace(nodes(4)[3], state=NodeState.HINTED)]
    found = looked(view(hinted, time_s=60.0), running())
    assert found.triggers == (Trigger.REBALANCE_HINT,)
    assert not found.forced
    assert found.now.staying == {SPOT: 4}


def test_nodes_that_were_given_back_are_not_lost() -> None:
    found = looked(view(nodes(2), time_s=60.0, asked={SPOT: 2}), running())
    assert found.triggers == ()


def test_nodes_that_do_not_come_count_after_a_while_and_their_pool_cools_down() -> None:
    begun = looked(view(nodes(4)))
    short = looked(view(nodes(4), time_s=60.0, asked={SPOT: 6}), begun.memory)
    assert Trigger.SHORT_GRANT not in short.triggers
    late_s = 60.0 + RULES.grant_timeout_s
    late = looked(view(nodes(4), time_s=late_s, asked={SPOT: 6}), short.memory)
    assert Trigger.SHORT_GRANT in late.triggers
    assert late.now.down == {SPOT}


def test_a_pool_cools_down_for_longer_each_time_and_is_told_when_it_may_be_asked_again() -> None:
    memory, time_s, pauses = running(), 0.0, []
    for _ in range(3):
        time_s += 60.0
        lost = looked(view(nodes(3), time_s=time_s), memory)
        pauses.append(lost.memory.cooling[SPOT] - time_s)
        time_s = lost.memory.cooling[SPOT] + 1.0
        back = looked(view(nodes(4), time_s=time_s), lost.memory)
        assert Trigger.CAPACITY_BACK in back.triggers
        memory = back.memory
    assert pauses == [600.0, 1200.0, 2400.0]


def test_what_is_probed_needs_no_cool_down() -> None:
    lost = looked(view(nodes(3), time_s=60.0, is_probed=True), running())
    assert lost.now.down == frozenset()
    away = looked(
        view(nodes(0), time_s=60.0, is_probed=True, unavailable=frozenset({SPOT})), running()
    )
    assert away.now.down == {SPOT}


def test_drift_counts_after_ten_minutes_outside_the_interval() -> None:
    slow = looked(view(nodes(4), time_s=100.0, pace_factor=1.2), running())
    assert slow.triggers == ()
    well = looked(view(nodes(4), time_s=400.0, pace_factor=1.1), slow.memory)
    again = looked(view(nodes(4), time_s=500.0, pace_factor=1.2), well.memory)
    still = looked(view(nodes(4), time_s=900.0, pace_factor=1.2), again.memory)
    assert Trigger.DRIFT not in still.triggers
    late = looked(view(nodes(4), time_s=1101.0, pace_factor=1.2), still.memory)
    assert Trigger.DRIFT in late.triggers
    assert late.now.pace_factor == 1.2


def test_drift_that_was_decided_on_is_the_new_measure() -> None:
    memory = replace(running(), pace_factor=1.2)
    found = looked(view(nodes(4), time_s=100.0, pace_factor=1.2), memory)
    assert found.memory.drift_since_s is None


def test_training_that_stands_still_has_drifted_and_its_decision_is_no_new_risk() -> None:
    stands = looked(view(nodes(4), time_s=100.0, pace_factor=0.0), running())
    late = looked(view(nodes(4), time_s=701.0, pace_factor=0.0, done_fraction=0.5), stands.memory)
    assert late.triggers == (Trigger.DRIFT,)
    assert late.now.pace_factor == 0.0
    again = replace(late.memory, pace_factor=0.0, drift_since_s=None)
    still = looked(view(nodes(4), time_s=800.0, pace_factor=0.0, done_fraction=0.5), again)
    assert still.memory.drift_since_s is None
    back = looked(view(nodes(4), time_s=900.0, pace_factor=1.0, done_fraction=0.5), again)
    assert back.memory.drift_since_s == 900.0


@pytest.mark.parametrize(
    ("pace", "deadline", "passed_s", "is_late"),
    [(0.7, "17h", 5.0, False), (1.3, "8.5h", 5.0, False), (1.3, "8.5h", HOUR, True)],
)
def test_a_pace_that_was_decided_on_counts_once(
    pace: float, deadline: str, passed_s: float, is_late: bool
) -> None:
    job = steered_job(deadline=deadline)
    now = standing(time_s=HOUR, done_fraction=0.08, pace_factor=pace)
    decision = steered(now, job, forced=False)
    assert decision.move is Move.KEEP
    seen = view(nodes(1), time_s=HOUR, done_fraction=0.08, pace_factor=pace, asked={SPOT: 1})
    memory = decided(SteeringMemory(time_s=0.0), decision, seen)

    later = replace(seen, time_s=HOUR + passed_s)
    found = watch_fleet(later, memory, goal=job.goal, rules=RULES, spot_pools={SPOT})

    ends_s = later.time_s + 0.92 * 10 * HOUR / pace
    assert (ends_s > (job.goal.deadline_s or 0.0)) is is_late
    assert (Trigger.DEADLINE_AT_RISK in found.triggers) is is_late


@pytest.mark.parametrize(("measured", "known"), [(0.8, 0.8), (1.3, 1.3), (0.0, 1.0)])
def test_a_pace_that_was_decided_on_holds_while_none_is_measured(
    measured: float, known: float
) -> None:
    found = looked(view((), time_s=60.0), replace(running(), pace_factor=measured))

    assert found.now.pace_factor == known


@pytest.mark.parametrize(("after", "told"), [(0.32, False), (0.329, False), (0.34, True)])
def test_a_price_counts_when_it_has_moved_by_a_tenth(after: float, told: bool) -> None:
    memory = replace(running(), prices={SPOT: 0.30})
    found = looked(view(nodes(4), time_s=60.0, prices_usd_per_hour={SPOT: after}), memory)
    assert (Trigger.PRICE_CHANGE in found.triggers) is told


def test_a_deadline_at_risk_is_told_once_until_it_has_clearly_receded() -> None:
    late = view(nodes(4), time_s=5 * HOUR, done_fraction=0.25)
    first = looked(late, running())
    assert Trigger.DEADLINE_AT_RISK in first.triggers
    again = looked(replace(late, time_s=5 * HOUR + 60), first.memory)
    assert Trigger.DEADLINE_AT_RISK not in again.triggers
    near = looked(view(nodes(4), time_s=6 * HOUR, done_fraction=0.41), again.memory)
    assert Trigger.DEADLINE_AT_RISK in near.memory.standing
    gone = looked(view(nodes(4), time_s=6 * HOUR + 60, done_fraction=0.45), near.memory)
    assert gone.memory.standing == frozenset()


def test_a_ceiling_is_told_before_it_is_reached() -> None:
    dear = view(nodes(4), time_s=5 * HOUR, done_fraction=0.5, spent_usd=96.0)
    assert Trigger.CEILING_REACHED in looked(dear, running()).triggers
    fine = view(nodes(4), time_s=5 * HOUR, done_fraction=0.5, spent_usd=90.0)
    assert looked(fine, running()).triggers == ()


@pytest.mark.parametrize(("spent_usd", "told"), [(99.94, False), (99.96, True), (100.5, True)])
def test_a_budget_is_spent_while_there_is_enough_to_give_the_fleet_back(
    spent_usd: float, told: bool
) -> None:
    # Three minutes at $1 an hour are 5 cents.
    seen = view(nodes(4), time_s=5 * HOUR, done_fraction=0.5, spent_usd=spent_usd)
    found = looked(seen, replace(running(), standing=frozenset({Trigger.CEILING_REACHED})))
    assert (Trigger.BUDGET_SPENT in found.triggers) is told
    assert found.now.is_spent is told
    if told:
        assert found.forced
        again = looked(replace(seen, time_s=5 * HOUR + 5), found.memory)
        assert again.triggers == ()


def test_the_last_minute_of_training_is_paid_from_what_is_left_of_a_budget() -> None:
    almost = view(nodes(4), time_s=9.99 * HOUR, done_fraction=0.999, spent_usd=99.98)
    assert looked(almost, running()).triggers == ()


def test_a_decision_is_looked_at_again_when_its_time_is_over() -> None:
    memory = replace(running(), check_s=500.0)
    assert looked(view(nodes(4), time_s=499.0), memory).triggers == ()
    assert looked(view(nodes(4), time_s=500.0), memory).triggers == (Trigger.CHECK_DUE,)


def test_what_nothing_forces_waits_for_a_quarter_of_an_hour_after_a_change() -> None:
    memory = replace(running(), change_s=0.0, prices={SPOT: 0.3})
    moved = {"prices_usd_per_hour": {SPOT: 0.5}}
    early = looked(view(nodes(4), time_s=600.0, **moved), memory)
    late = looked(view(nodes(4), time_s=1000.0, **moved), memory)
    assert is_too_early(early, RULES)
    assert not is_too_early(late, RULES)
    lost = looked(view(nodes(3), time_s=600.0), memory)
    assert not is_too_early(lost, RULES)


MIXED = view([*nodes(2), *nodes(2, ON_DEMAND)], time_s=60.0, asked={SPOT: 2, ON_DEMAND: 2})


def keeps(seen: JobView, memory: SteeringMemory, **changes: Any) -> SteeringMemory:
    """Return the memory after a decision for what is there."""
    workers = {SPOT: 2, ON_DEMAND: 2}
    decision = Steering(move=Move.KEEP, workers=workers, servers={}, reason="", holds_s=1e9)
    return decided(memory, replace(decision, **changes), seen)


def test_nodes_that_stand_in_for_others_are_always_looked_at_in_earnest() -> None:
    only_spot = view(nodes(4), time_s=50.0)
    memory = keeps(only_spot, running(), move=Move.CHANGE, stands_in=True)
    assert looked(MIXED, memory).forced
    again = keeps(MIXED, memory, stands_in=True)
    assert looked(MIXED, again).forced


@pytest.mark.parametrize("stands_in", [False, True])  # of the plan, whatever spot would be
def test_on_demand_nodes_of_the_plan_are_changed_only_where_that_pays(stands_in: bool) -> None:
    moved = replace(MIXED, prices_usd_per_hour={SPOT: 0.5})
    memory = keeps(MIXED, replace(running(), change_s=0.0), stands_in=stands_in)
    found = looked(moved, replace(memory, prices={SPOT: 0.3}))
    assert found.triggers == (Trigger.PRICE_CHANGE,)
    assert not found.forced
    assert is_too_early(found, RULES)


def test_time_that_is_counted_from_later_changes_nothing_that_lies_ahead() -> None:
    lost = looked(view(nodes(3), time_s=600.0, asked={SPOT: 6}), running()).memory
    later = counted_from_later(replace(lost, change_s=500.0, check_s=900.0), 600.0)
    assert later.time_s == 0.0
    assert later.cooling == {SPOT: 600.0}
    assert later.failures == {SPOT: (1, 0.0)}
    assert later.short_since == {SPOT: 0.0}
    assert (later.change_s, later.check_s) == (-100.0, 300.0)
    assert counted_from_later(later, -600.0).cooling == lost.cooling


def test_losses_and_returns_of_all_capacity_are_counted() -> None:
    both = frozenset({SPOT, OTHER_SPOT})
    up = looked(view(nodes(4), is_probed=True))
    away = looked(view(nodes(0), time_s=HOUR, is_probed=True, unavailable=both), up.memory)
    back = looked(view(nodes(0), time_s=3 * HOUR, is_probed=True), away.memory)
    capacity = back.memory.capacity
    assert (capacity.up_hours, capacity.down_hours) == (1.0, 2.0)
    assert (capacity.losses, capacity.returns) == (1, 1)
