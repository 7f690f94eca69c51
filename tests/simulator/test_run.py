"""Runs whose cost and finish can be worked out by hand: ten hours of work, 0.2 h to restart."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from spotwright.domain.offer import Pool
from spotwright.domain.steering import JobView
from spotwright.simulator.conditions import Conditions, Squeeze
from spotwright.simulator.market import MarketTrace
from spotwright.simulator.policies.policy import Wish
from spotwright.simulator.run import simulate
from tests.simulator.small_market import HOUR_S, SERVER, hours, job_of, market_of, on_demand, spot
from tests.simulator.steered import scene_of, steered

FREE = Conditions(notice_s=0.0, checkpoint_every_s=1.0)


@dataclass
class Always:
    """Wants the same workers all the time."""

    workers: Mapping[Pool, int]
    watches: frozenset[Pool] = frozenset()

    def decide(self, _view: JobView) -> Wish:
        return Wish(self.workers)


@dataclass
class InTurn:
    """Wants one fleet after another, each from an hour on."""

    turns: Mapping[float, Mapping[Pool, int]]
    watches: frozenset[Pool] = frozenset()

    def decide(self, view: JobView) -> Wish:
        hour = max(h for h in self.turns if h * HOUR_S <= view.time_s)
        later = [h * HOUR_S for h in self.turns if h > hour]
        return Wish(self.turns[hour], min(later, default=float("inf")))


def test_on_demand_costs_its_work_and_one_start() -> None:
    scene = scene_of(job_of(), market_of(), MarketTrace())

    run = simulate(scene, Always({on_demand(): 1}))

    assert run.finish_s == pytest.approx(10.2 * HOUR_S)
    assert run.cost_usd == pytest.approx(3 * 10.2)


def test_a_loss_costs_a_restart_and_the_time_without_capacity_is_free() -> None:
    market = MarketTrace(capacity={spot(): hours((0, 1), (4, 0), (5, 1))})
    scene = scene_of(job_of(), market_of(), market, conditions=FREE)

    run = simulate(scene, Always({spot(): 1}))

    assert run.finish_s == pytest.approx((10 + 0.2 + 1 + 0.2) * HOUR_S, rel=1e-4)
    assert run.cost_usd == pytest.approx(10.4, rel=1e-4)
    assert (run.losses, run.interruptions, run.grants) == (1, 1, 2)


def test_without_a_notice_the_work_since_the_last_checkpoint_is_lost() -> None:
    market = MarketTrace(capacity={spot(): hours((0, 1), (4, 0), (5, 1))})
    hourly = Conditions(notice_s=0.0, checkpoint_every_s=HOUR_S)
    scene = scene_of(job_of(), market_of(), market, conditions=hourly)

    run = simulate(scene, Always({spot(): 1}))

    assert run.finish_s == pytest.approx((11.4 + 0.8) * HOUR_S, rel=1e-4)  # 3.8 h done, 3 saved


@pytest.mark.parametrize("squeeze", [None, *Squeeze])
def test_a_notice_leaves_only_what_it_takes_to_save(squeeze: Squeeze | None) -> None:
    market = MarketTrace(capacity={spot(): hours((0, 1), (4, 0), (5, 1))})
    noticed = Conditions(notice_s=120.0, checkpoint_every_s=1e9, squeeze=squeeze)
    scene = scene_of(job_of(checkpoint_s=36.0), market_of(), market, conditions=noticed)

    run = simulate(scene, Always({spot(): 1}))

    assert run.finish_s == pytest.approx((11.4 + 0.01) * HOUR_S, rel=1e-4)


def test_asynchronous_workers_add_up_while_others_start() -> None:
    source, server = market_of(server=True), Pool(SERVER, "zone-a", on_demand().market)
    market = MarketTrace(capacity={spot(): hours((0, 2), (3, 1), (6, 2))})
    scene = scene_of(
        job_of(nodes=2, asynchronous=True), source, market, servers={server: 1}, conditions=FREE
    )
    both = scene.speeds.of({spot(): 2}, {server: 1}).goal_per_s * HOUR_S
    one = scene.speeds.of({spot(): 1}, {server: 1}).goal_per_s * HOUR_S

    run = simulate(scene, Always({spot(): 2}))

    done = 2.8 * both + 3.2 * one  # by 6.2 h
    assert run.finish_s == pytest.approx((6.2 + (1 - done) / both) * HOUR_S)


def test_paid_node_seconds_are_those_of_the_nodes_that_were_there() -> None:
    drawn = random.Random(5)
    points = [(0.0, 2.0), *((drawn.uniform(0.1, 14), float(drawn.randrange(4))) for _ in range(20))]
    market = MarketTrace(capacity={spot(): hours(*sorted(points))})
    scene = scene_of(job_of(nodes=3, deadline_hours=40), market_of(), market, conditions=FREE)

    run = simulate(scene, Always({spot(): 3}))

    there_s = sum(
        (after.time_s - now.time_s) * (sum(now.training.values()) + sum(now.starting.values()))
        for now, after in pairwise(run.moments)
    )
    assert sum(run.node_s_by_pool.values()) == pytest.approx(there_s)
    assert run.cost_usd == pytest.approx(there_s / HOUR_S)


def test_the_node_maximum_holds_while_a_job_moves() -> None:
    market = MarketTrace(capacity={spot("a"): hours((0, 1)), spot("b"): hours((0, 1))})
    scene = scene_of(job_of(), market_of("ab"), market, conditions=FREE)
    turns = {0.0: {spot("a"): 1}, 3.0: {spot("b"): 1}, 6.0: {on_demand("a"): 1}}

    run = simulate(scene, InTurn(turns))

    nodes = [sum(m.training.values()) + sum(m.starting.values()) for m in run.moments]
    assert max(nodes) == 1
    assert run.finish_s == pytest.approx(10.6 * HOUR_S, rel=1e-4)
    assert run.cost_usd == pytest.approx(6 * 1 + 4.6 * 3, rel=1e-4)


def test_a_checkpoint_that_moves_to_another_zone_is_paid() -> None:
    market = MarketTrace(capacity={spot("a"): hours((0, 1)), spot("b"): hours((0, 1))})
    moving = replace(FREE, checkpoint_gb=20.0, move_usd_per_gb=0.02)
    scene = scene_of(job_of(), market_of("ab"), market, conditions=moving)

    run = simulate(scene, InTurn({0.0: {spot("a"): 1}, 3.0: {spot("b"): 1}}))

    assert run.moved_usd == pytest.approx(0.4)


def test_prices_are_paid_as_they_change() -> None:
    prices = {on_demand(): hours((0, 3), (4, 1))}
    scene = scene_of(job_of(), market_of(), MarketTrace(prices=prices))

    run = simulate(scene, Always({on_demand(): 1}))

    assert run.cost_usd == pytest.approx(4 * 3 + 6.2 * 1)


@pytest.mark.parametrize("rule", list(Squeeze))
def test_a_synchronous_job_goes_on_at_the_smallest_share(rule: Squeeze) -> None:
    market = MarketTrace(capacity={spot(): hours((0, 2), (5, 1.5))})
    squeezed = replace(FREE, squeeze=rule)
    scene = scene_of(job_of(nodes=2, deadline_hours=40), market_of(), market, conditions=squeezed)
    speed = scene.speeds.of({spot(): 2}, {}).goal_per_s * HOUR_S
    smallest = {"proportional": 0.75, "priority": 1 - 0.5 * 2 / 3, "deterministic": 0.5}[rule]

    run = simulate(scene, Always({spot(): 2}))

    expected = 5 + (1 - 4.8 * speed) / (speed * smallest)
    assert run.finish_s == pytest.approx(expected * HOUR_S, rel=1e-4)
    assert run.losses == 0


def test_asynchronous_shares_add_up() -> None:
    source, server = market_of(server=True), Pool(SERVER, "zone-a", on_demand().market)
    market = MarketTrace(capacity={spot(): hours((0, 2), (5, 1))})
    scene = scene_of(
        job_of(nodes=2, asynchronous=True, deadline_hours=40),
        source,
        market,
        servers={server: 1},
        conditions=replace(FREE, squeeze=Squeeze.PROPORTIONAL),
    )
    speed = scene.speeds.of({spot(): 2}, {server: 1}).goal_per_s * HOUR_S

    run = simulate(scene, Always({spot(): 2}))

    assert run.finish_s == pytest.approx((5 + (1 - 4.8 * speed) / (speed / 2)) * HOUR_S)


def test_a_job_that_is_slower_than_predicted_waits_no_longer_than_it_can() -> None:
    market = MarketTrace(capacity={spot(): hours((0, 1), (3, 0))})
    slow = replace(FREE, speed_factor=0.8)
    scene = scene_of(job_of(deadline_hours=15), market_of(), market, conditions=slow)

    run = steered(scene, market_of())

    assert on_demand() in run.node_s_by_pool
    assert not run.is_late
