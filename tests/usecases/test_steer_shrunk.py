"""A node that has become less: kept or replaced."""

from dataclasses import replace

import pytest

from spotwright.domain.offer import Market, Pool
from spotwright.domain.shrunk import Shrinkage, ShrunkNode
from spotwright.domain.steering import JobNow, Move, Steering
from spotwright.usecases.fleet_choices import FleetChoices
from spotwright.usecases.steer_job import steer_job
from spotwright.usecases.steer_shrunk import steer
from tests.usecases.example_job import catalog
from tests.usecases.steered_job import (
    HOUR,
    ON_DEMAND,
    OTHER_SPOT,
    RULES,
    SPOT,
    standing,
    steered_job,
)


def shrunk(factor: float, *, node_id: str = "i-2", pool: Pool = SPOT) -> ShrunkNode:
    return ShrunkNode(
        node_id=node_id, pool=pool, shrinkage=Shrinkage(compute_factor=factor), text="1 of 2 CPUs"
    )


def decided(
    now: JobNow, *, forced: bool = False, deadline: str = "12h", strategy: str = "allreduce"
) -> Steering:
    job = steered_job(max_nodes=4, deadline=deadline, strategy=strategy)
    job = replace(job, limits=replace(job.limits, max_nodes=4 + len(now.servers)))
    return steer(
        now, FleetChoices(job, catalog()), goal=job.goal, planned_s=10 * HOUR, rules=RULES,
        forced=forced,
    )  # fmt: skip


# Nine hours of whole nodes are left; a restart takes 0.2 h. What pace is known is of whole nodes.
FOUR = standing(staying={SPOT: 4}, time_s=HOUR, done_fraction=0.1, shrunk_share=1.0)
SERVER = Pool("m5.xlarge", "use1-az5", Market.ON_DEMAND)


def test_a_node_at_half_its_speed_stops_a_ring_and_is_replaced_where_there_is_capacity() -> None:
    found = decided(replace(FOUR, shrunk=(shrunk(2.0),)))

    assert found.move is Move.CHANGE
    assert found.workers[SPOT] == 3
    assert sum(found.workers.values()) == 4
    assert found.leaves == ("i-2",)
    assert "to replace i-2 (1 of 2 CPUs), the fleet having 50% of its speed" in found.reason
    assert found.shrunk_share == 1.0


def test_a_node_that_is_a_little_slower_is_kept() -> None:
    found = decided(replace(FOUR, shrunk=(shrunk(1.04),)))

    assert (found.move, found.workers, found.leaves) == (Move.KEEP, {SPOT: 4}, ())
    assert found.reason.startswith("to keep i-2 (1 of 2 CPUs)")
    assert found.shrunk_share == pytest.approx(1 / 1.04, rel=1e-3)


def test_near_the_end_a_restart_costs_more_than_a_slow_node() -> None:
    near = replace(FOUR, time_s=9.9 * HOUR, done_fraction=0.99, shrunk=(shrunk(2.0),))

    found = decided(near, deadline="10.15h")

    assert (found.workers, found.leaves) == ({SPOT: 4}, ())
    assert "without it the job would be" in found.reason


def test_where_only_dear_nodes_can_be_had_the_deadline_decides() -> None:
    # With the slow node, 9 h * 4 / 3.5 are left; three nodes alone would need 12 h.
    dear = replace(
        FOUR,
        servers={SERVER: 1},
        shrunk=(shrunk(2.0),),
        down=frozenset({OTHER_SPOT}),
        is_probed=True,
    )
    loose = decided(dear, deadline="13h", strategy="asp-ps")
    tight = decided(dear, deadline="12h", strategy="asp-ps")

    assert (loose.move, loose.leaves) == (Move.KEEP, ())
    assert loose.shrunk_share == pytest.approx(
        3.5 / 4, rel=0.02
    )  # with less to wait for at the server
    assert "a change would cost" in loose.reason
    assert (tight.move, tight.leaves) == (Move.CHANGE, ("i-2",))
    assert tight.workers[ON_DEMAND] >= 1
    assert "with it the job would be" in tight.reason


def test_an_on_demand_node_is_replaced_by_its_equal() -> None:
    now = replace(FOUR, staying={ON_DEMAND: 4}, down=frozenset({SPOT, OTHER_SPOT}))
    found = decided(replace(now, is_probed=True, shrunk=(shrunk(2.0, pool=ON_DEMAND),)))

    assert (found.move, found.workers) == (Move.CHANGE, {ON_DEMAND: 4})
    assert found.leaves == ("i-2",)


def test_of_two_only_the_one_that_is_worth_it_is_replaced() -> None:
    nodes = (shrunk(1.03, node_id="i-3"), shrunk(2.0))

    assert decided(replace(FOUR, shrunk=nodes)).leaves == ("i-2",)


def test_a_pace_that_was_measured_with_the_slow_node_counts_once() -> None:
    before = replace(FOUR, shrunk=(shrunk(1.04),), pace_factor=0.9, shrunk_share=1.0)
    later = replace(before, pace_factor=0.9 / 1.04, shrunk_share=None)

    told, measured = (decided(now) for now in (before, later))

    assert told.pace_factor == pytest.approx(0.9 / 1.04, rel=1e-3)
    assert measured.pace_factor == pytest.approx(0.9 / 1.04, rel=1e-3)
    assert told.finish_s == pytest.approx(measured.finish_s, rel=1e-3)


def test_without_shrunk_nodes_the_decision_is_the_usual_one() -> None:
    job = steered_job(max_nodes=4)
    usual = steer_job(
        FOUR, FleetChoices(job, catalog()), goal=job.goal, planned_s=10 * HOUR, rules=RULES,
        forced=True,
    )  # fmt: skip

    assert decided(FOUR, forced=True) == replace(usual, pace_factor=1.0)


def test_no_node_is_replaced_beyond_the_budget() -> None:
    # Neither eighteen hours of four spot nodes are paid, nor nine with another one among them.
    job = steered_job(max_nodes=4)
    goal = replace(job.goal, budget_usd=5.0)
    found = steer(
        replace(FOUR, shrunk=(shrunk(2.0),)), FleetChoices(replace(job, goal=goal), catalog()),
        goal=goal, planned_s=10 * HOUR, rules=RULES, forced=False,
    )  # fmt: skip

    assert found.leaves == ()
