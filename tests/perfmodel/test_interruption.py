"""Oracles: interrupted runs simulated with a fixed seed, and closed forms by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.workload import Lifetimes, SpotBehaviour, Strategy, Workload
from spotwright.perfmodel.interruption import (
    checkpoint_s,
    hazard_per_hour,
    spot_risk,
    stopped_run_s,
    uninterrupted_probability,
    young_daly_interval_s,
)
from tests.perfmodel.example_clusters import host, offered, workload

SYNC, ASYNC = Strategy.ALLREDUCE, Strategy.ASP_PS
SERVER = host("m.server", None)


def work(strategy: Strategy, *, shock: float = 0.5, restart_s: float = 120.0) -> Workload:
    spot = SpotBehaviour(checkpoint_s=20.0, restart_s=restart_s, common_shock_fraction=shock)
    return workload(strategy, spot=spot)


def spot_nodes(count: int, per_hour: float) -> NodeGroup:
    """Return spot nodes each of which is interrupted that often."""
    return offered(host(), count, interrupted=1 - math.exp(-per_hour * 730))


def simulated_run_s(
    work_s: float, interval_s: float, save_s: float, restart_s: float, per_s: float
) -> float:
    """Average runs that fall back to their last checkpoint at each exponential interruption."""
    random, runs, total = np.random.default_rng(11), 400, 0.0
    for _ in range(runs):
        done, left_s = 0.0, random.exponential(1 / per_s)
        while done < work_s:
            segment_s = min(interval_s, work_s - done) + save_s
            if left_s >= segment_s:
                done, left_s, total = done + interval_s, left_s - segment_s, total + segment_s
            else:
                total += left_s + restart_s
                left_s = random.exponential(1 / per_s)
    return total / runs


def simulated_refill_s(work_s: float, nodes: int, per_s: float, restart_s: float) -> float:
    """Average runs of workers that disappear and come back, each on its own."""
    random, runs, total = np.random.default_rng(12), 200, 0.0
    for _ in range(runs):
        changes = []
        for _ in range(nodes):
            at = 0.0
            while at < 2 * work_s:
                at += random.exponential(1 / per_s)
                changes += [(at, -1), (at + restart_s, 1)]
                at += restart_s
        now, done, up = 0.0, 0.0, nodes
        for at, change in sorted(changes):
            if done + (at - now) * up / nodes >= work_s:
                break
            done, now, up = done + (at - now) * up / nodes, at, up + change
        total += now + (work_s - done) * nodes / up
    return total / runs


@pytest.mark.parametrize("share", [0.0, 0.025, 0.30, 0.99])
def test_the_monthly_share_is_taken_back_within_a_month(share: float) -> None:
    group = offered(host(), interrupted=share)

    assert 1 - math.exp(-hazard_per_hour(workload(SYNC), group) * 730) == pytest.approx(share)


def test_on_demand_nodes_stay_and_unknown_spot_nodes_are_taken_at_the_usual_rate() -> None:
    unknown = offered(host(), interrupted=0.1)
    assert unknown.offer is not None

    assert hazard_per_hour(workload(SYNC), offered(host())) == 0.0
    forgotten = replace(unknown, offer=replace(unknown.offer, interruption_fraction=None))
    assert hazard_per_hour(workload(SYNC), forgotten) == hazard_per_hour(workload(SYNC), unknown)


@pytest.mark.parametrize(("shock", "independent_nodes"), [(0.0, 8.0), (0.5, 4.5), (1.0, 1.0)])
def test_a_common_shock_makes_a_pool_less_than_its_nodes(
    shock: float, independent_nodes: float
) -> None:
    whole = offered(host(), 8, interrupted=0.2)
    halves = [replace(whole, node_count=5), replace(whole, node_count=3)]

    for groups in ([whole], halves):  # two terms of one pool share its shocks
        found = uninterrupted_probability(work(SYNC, shock=shock), groups, hours=100)
        assert found == pytest.approx(0.8 ** (independent_nodes * 100 / 730))


def test_measured_lifetimes_override_the_advisor() -> None:
    lived = Lifetimes(hours=(5.0, 10.0, 20.0, 20.0), revoked=(True, True, False, False))
    spot = SpotBehaviour(lifetimes={"g.small": lived})
    group = offered(host("g.small"), interrupted=0.01)

    assert hazard_per_hour(workload(SYNC, spot=spot), group) == pytest.approx(math.log(2) / 20)
    assert hazard_per_hour(workload(SYNC), group) == pytest.approx(-math.log(0.99) / 730)


def test_a_checkpoint_takes_what_the_job_says_or_longer_for_larger_models() -> None:
    light, heavy = (
        replace(m, model=replace(m.model, parameter_bytes=size))
        for m, size in ((workload(SYNC), 1e8), (workload(SYNC), 1e10))
    )

    assert checkpoint_s(work(SYNC)) == 20.0
    assert 0 < checkpoint_s(light) < checkpoint_s(heavy)


@pytest.mark.parametrize("per_hour", [0.02, 0.2, 1.0])
def test_no_other_interval_loses_less_time_than_young_and_dalys(per_hour: float) -> None:
    save_s, restart_s, per_s = 20.0, 120.0, per_hour / 3600
    intervals = np.geomspace(60, 50_000, 4000)
    stretch = (1 / per_s + restart_s) * np.expm1(per_s * (intervals + save_s)) / intervals

    chosen = young_daly_interval_s(save_s, per_hour)

    at_chosen = (1 / per_s + restart_s) * math.expm1(per_s * (chosen + save_s)) / chosen
    assert at_chosen <= stretch.min() * 1.002
    assert chosen == pytest.approx(intervals[stretch.argmin()], rel=0.1)


@pytest.mark.parametrize("per_hour", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("work_h", [0.2, 20])
def test_a_synchronous_run_takes_as_long_as_simulated_ones(per_hour: float, work_h: float) -> None:
    trained, work_s = work(SYNC, shock=0.0), work_h * 3600
    group = spot_nodes(100, per_hour / 100)

    risk = spot_risk(trained, [group], work_s=work_s)

    assert risk.events_per_hour == pytest.approx(per_hour)
    assert risk.checkpoint_interval_s is not None
    simulated = simulated_run_s(work_s, risk.checkpoint_interval_s, 20.0, 120.0, per_hour / 3600)
    assert risk.expected_s == pytest.approx(simulated, rel=0.03)


@pytest.mark.parametrize(("nodes", "per_hour"), [(1, 0.02), (8, 0.02), (8, 0.04)])
def test_an_asynchronous_run_takes_as_long_as_simulated_ones(nodes: int, per_hour: float) -> None:
    trained, work_s = work(ASYNC, shock=0.0, restart_s=6 * 3600.0), 400 * 3600.0
    server = offered(SERVER, role=Role.PS)

    risk = spot_risk(trained, [spot_nodes(nodes, per_hour), server], work_s=work_s)

    simulated = simulated_refill_s(work_s, nodes, per_hour / 3600, 6 * 3600.0)
    assert risk.expected_s == pytest.approx(simulated, rel=0.03)
    assert risk.checkpoint_interval_s is None


def test_servers_do_not_dilute_the_workers_that_are_missing() -> None:
    servers = [offered(SERVER, count, role=Role.PS) for count in (1, 9)]
    worker = offered(host(), interrupted=0.3)

    few, many = (spot_risk(work(ASYNC), [worker, s], work_s=3600.0) for s in servers)

    assert few == many


def test_a_spot_server_stops_the_run_that_spot_workers_do_not() -> None:
    worker, taken = offered(host(), 4), offered(SERVER, interrupted=0.9, role=Role.PS)

    stopped = spot_risk(work(ASYNC), [worker, taken], work_s=36_000.0)

    synchronous = spot_risk(work(SYNC), [taken], work_s=36_000.0)
    assert stopped.expected_s == pytest.approx(synchronous.expected_s)
    assert stopped.checkpoint_interval_s == synchronous.checkpoint_interval_s


def test_a_shock_to_workers_and_servers_of_one_pool_is_one_event_that_stops_the_run() -> None:
    worker = offered(host(), 4, interrupted=0.9)
    server = replace(worker, node_count=1, role=Role.PS)
    hazard = hazard_per_hour(work(ASYNC), worker)

    risk = spot_risk(work(ASYNC), [worker, server], work_s=36_000.0)

    assert risk.events_per_hour == pytest.approx(hazard * (0.5 + 0.5 * 5))
    alone = spot_risk(work(SYNC), [server], work_s=36_000.0 * (1 + hazard * 120 / 3600))
    assert risk.expected_s == pytest.approx(alone.expected_s)


def test_runs_of_many_fleets_are_the_runs_one_by_one() -> None:
    work_s, per_hour = np.array([10.0, 3600.0, 1e6, 3600.0]), np.array([0.0, 0.1, 2.0, 1e9])

    found = stopped_run_s(work_s, per_hour, save_s=20.0, restart_s=120.0)

    alone = [
        float(stopped_run_s(t, rate, save_s=20.0, restart_s=120.0))
        for t, rate in zip(work_s, per_hour, strict=True)
    ]
    assert found.tolist() == alone
    assert found[0] == 10.0
    assert 1e250 < found[3] < math.inf  # it never ends


@given(
    strategy=st.sampled_from([SYNC, ASYNC]),
    share=st.floats(0, 0.95),
    count=st.integers(1, 64),
    work_s=st.floats(60, 1e6),
)
def test_interruptions_only_ever_cost_time(
    strategy: Strategy, share: float, count: int, work_s: float
) -> None:
    group = offered(host(), count, interrupted=share)

    risk = spot_risk(work(strategy), [group], work_s=work_s)

    assert risk.expected_s >= work_s
    assert math.isfinite(risk.expected_s)
    assert risk.sd_s >= 0
    assert risk.expected_events == pytest.approx(risk.events_per_hour * risk.expected_s / 3600)


def test_nodes_that_stay_cost_nothing_extra() -> None:
    risk = spot_risk(work(SYNC), [offered(host(), 8)], work_s=1234.0)

    assert (risk.expected_s, risk.sd_s, risk.overhead_fraction) == (1234.0, 0.0, 0.0)
    assert risk.checkpoint_interval_s is None
