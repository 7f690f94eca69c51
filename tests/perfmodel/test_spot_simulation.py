"""Oracles: the closed form of the mean, and runs followed event by event for the spread."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.workload import Lifetimes, SpotBehaviour, Strategy, Workload
from spotwright.perfmodel.interruption import spot_risk
from spotwright.perfmodel.spot_simulation import simulate_run_s
from tests.perfmodel.example_clusters import host, offered, workload

SYNC, BSP, ASYNC = Strategy.ALLREDUCE, Strategy.BSP_PS, Strategy.ASP_PS
HOURLY = Lifetimes(hours=(0.2, 0.5, 1.0, 1.0), revoked=(True, True, True, False))
STEADY_SERVER = offered(host("m.server", None), role=Role.PS)
SPOT_SERVER = offered(host("m.spot", None), 2, interrupted=0.5, role=Role.PS)
POOLS = [
    offered(host(), 6, interrupted=0.3),
    offered(host("g.taken"), 3, interrupted=0.9),
    offered(host("g.kept"), 2),
]


def work(strategy: Strategy, *, measured: bool = False, **changes: Any) -> Workload:
    lifetimes = {"g.taken": HOURLY, "m.spot": HOURLY} if measured else {}
    spot = SpotBehaviour(checkpoint_s=20.0, lifetimes=lifetimes)
    return workload(strategy, spot=replace(spot, **changes))


def spot_nodes(count: int, per_hour: float, name: str = "g.small") -> NodeGroup:
    """Return spot nodes each of which is interrupted that often."""
    return offered(host(name), count, interrupted=1 - math.exp(-per_hour * 730))


def stopped_runs_s(work_s: float, interval_s: float, *, save_s: float, per_s: float) -> list[float]:
    """Follow runs that fall back to their last checkpoint, restarting in 120 s."""
    random, durations = np.random.default_rng(3), []
    for _ in range(1500):
        now, done, event = 0.0, 0.0, random.exponential(1 / per_s)
        while done < work_s:
            end = now + min(interval_s, work_s - done) + save_s
            if end <= event:
                now, done = end, done + interval_s
            else:
                now = event + 120.0
                event = now + random.exponential(1 / per_s)
        durations.append(now)
    return durations


def refilled_runs_s(
    pools: Sequence[tuple[int, float]], work_s: float, *, shock: float, restart_s: float
) -> list[float]:
    """Follow runs whose nodes disappear one by one or pool by pool, and come back."""
    random, total = np.random.default_rng(4), sum(count for count, _ in pools)
    rates = np.array([(shock * lam, (1 - shock) * lam * count) for count, lam in pools]).ravel()

    def one_run_s() -> float:
        back, left_s, now = [np.zeros(count) for count, _ in pools], work_s, 0.0
        while True:
            wait = random.exponential(1 / rates.sum())
            going = min(wait, left_s)
            absent_s = np.clip(np.concatenate(back) - now, 0.0, going).sum() / total
            if left_s - wait + absent_s <= 0:
                return float(now + left_s + absent_s)
            now, left_s = now + wait, left_s - wait + absent_s
            kind = int(random.choice(rates.size, p=rates / rates.sum()))
            pool = back[kind // 2]
            hit = np.arange(len(pool)) if kind % 2 == 0 else random.integers(len(pool), size=1)
            pool[hit] = np.where(pool[hit] <= now, now + restart_s, pool[hit])

    return [one_run_s() for _ in range(1000)]


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("work_h", [0.3, 4.0, 40.0])
@pytest.mark.parametrize(
    ("strategy", "servers"),
    [
        (SYNC, []),
        (BSP, [STEADY_SERVER]),
        (BSP, [SPOT_SERVER]),
        (ASYNC, [STEADY_SERVER]),
        (ASYNC, [SPOT_SERVER]),
    ],
)
def test_runs_take_as_long_on_average_as_the_closed_form_says(
    strategy: Strategy, servers: list[NodeGroup], work_h: float, measured: bool
) -> None:
    trained, nodes = work(strategy, measured=measured), (*POOLS, *servers)

    found = simulate_run_s(trained, Fleet(nodes=nodes), work_s=work_h * 3600, runs=20_000)

    expected_s = spot_risk(trained, nodes, work_s=work_h * 3600).expected_s
    error_s = found.std() / math.sqrt(len(found))
    assert found.mean() == pytest.approx(expected_s, abs=4 * error_s, rel=1e-9)


@pytest.mark.parametrize("per_hour", [0.05, 0.5, 5.0])
def test_stopped_runs_spread_like_runs_followed_event_by_event(per_hour: float) -> None:
    trained, work_s = work(SYNC, common_shock_fraction=0.0), 10 * 3600.0
    fleet = Fleet(nodes=(spot_nodes(100, per_hour / 100),))
    interval_s = spot_risk(trained, fleet.nodes, work_s=work_s).checkpoint_interval_s
    assert interval_s is not None

    found = simulate_run_s(trained, fleet, work_s=work_s)

    followed = stopped_runs_s(work_s, interval_s, save_s=20.0, per_s=per_hour / 3600)
    at = [0.05, 0.25, 0.5, 0.75, 0.95]
    assert np.quantile(found, at) == pytest.approx(np.quantile(followed, at), rel=0.02)


@pytest.mark.parametrize("shock", [0.0, 0.5, 1.0])
def test_refilled_runs_spread_like_runs_followed_event_by_event(shock: float) -> None:
    restart_s, work_s = 7200.0, 200 * 3600.0
    trained = work(ASYNC, common_shock_fraction=shock, restart_s=restart_s)
    groups = (spot_nodes(6, 0.01), spot_nodes(3, 0.03, "g.taken"), STEADY_SERVER)

    found = simulate_run_s(trained, Fleet(nodes=groups), work_s=work_s)

    pools = [(6, 0.01 / 3600), (3, 0.03 / 3600)]
    followed = refilled_runs_s(pools, work_s, shock=shock, restart_s=restart_s)
    assert found.mean() - work_s == pytest.approx(np.mean(followed) - work_s, rel=0.06)
    assert found.std() == pytest.approx(np.std(followed), rel=0.15)


def test_nodes_that_stay_take_exactly_their_work() -> None:
    found = simulate_run_s(work(SYNC), Fleet(nodes=(offered(host(), 8),)), work_s=1234.0, runs=5)

    assert found.tolist() == [1234.0] * 5


def test_the_seed_decides() -> None:
    fleet = Fleet(nodes=tuple(POOLS))
    first, again, other = (
        simulate_run_s(work(SYNC, measured=True), fleet, work_s=36_000.0, seed=seed)
        for seed in (1, 1, 2)
    )

    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(("per_hour", "ends"), [(3.0, True), (60.0, False), (1e6, False)])
def test_a_run_that_never_ends_is_infinite(per_hour: float, ends: bool) -> None:
    fleet = Fleet(nodes=(offered(host("g.taken"), interrupted=0.1),))
    lives = Lifetimes(hours=(math.log(1000) / per_hour,), revoked=(True,))
    spot = SpotBehaviour(checkpoint_s=600.0, lifetimes={"g.taken": lives})

    found = simulate_run_s(workload(SYNC, spot=spot), fleet, work_s=36_000.0)

    assert np.isfinite(found).all() == ends
    assert np.isinf(found).all() != ends
