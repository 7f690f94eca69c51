"""What a job's log tells of each trigger and move, with the real planner in the loop."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spotwright.domain.job_run import Event
from tests.usecases.steered_cluster import SteeredCluster
from tests.usecases.steered_story import folder, play, train

__all__ = ["folder"]  # a fixture, used by its name


def only(cluster: SteeredCluster, kind: str) -> Event:
    (event,) = cluster.events(kind)
    return event


def test_a_rebalance_hint_is_decided_about_and_moves_nothing_that_works(folder: Path) -> None:
    async def hinted(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0", kind="hint")
        await cluster.let_pass(60, replica)
        assert len(replica.decider.asked) == 2
        assert replica.decider.asked[-1].now.staying == {cluster.pool: 3}
        assert not replica.decider.asked[-1].forced

    cluster = play(SteeredCluster(folder), hinted)

    assert not cluster.events("replanned")
    assert not cluster.told.saved


@pytest.mark.parametrize("facts", [{"instance_type": ""}, {"job_id": ""}], ids=["where", "job"])
def test_a_fleet_that_trains_and_was_never_seen_is_told_and_left_alone(
    folder: Path, facts: dict[str, Any]
) -> None:
    async def unseen(cluster: SteeredCluster) -> None:
        for number in range(3):
            known = cluster.store.agent_records[f"agent-{number}"]
            cluster.change(f"agent-{number}", facts=replace(known.facts, **facts))
        replica = cluster.replica("a")
        await train(cluster, replica, for_s=3 * 3600, pace=1.0)
        assert not replica.decider.asked
        cluster.add_agent("agent-0")  # one of three
        await cluster.let_pass(400, replica)
        assert replica.decider.asked

    cluster = play(SteeredCluster(folder), unseen)

    assert "run agents with --job-id" in only(cluster, "fleet-unseen").text
    assert cluster.events("fleet-unseen")[0].sequence < cluster.events("short-grant")[0].sequence


@pytest.mark.parametrize(("pace", "told"), [(0.95, False), (1.4, True)])
def test_drift_is_told_and_the_decision_knows_the_pace(
    folder: Path, pace: float, told: bool
) -> None:
    async def trains(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await train(cluster, replica, for_s=1200, pace=pace)
        if told:
            assert replica.decider.asked[-1].now.pace_factor == pytest.approx(pace, rel=0.05)

    assert bool(play(SteeredCluster(folder), trains).events("drift")) is told


@pytest.mark.parametrize(("for_s", "told"), [(1500, False), (2400, True)])
def test_drift_is_told_though_only_one_host_tells_its_steps(
    folder: Path, for_s: int, told: bool
) -> None:
    async def trains(cluster: SteeredCluster) -> None:
        cluster.change("agent-0", latest_step=b"a step")
        await train(cluster, cluster.replica("a"), for_s=for_s, pace=1.4)

    assert bool(play(SteeredCluster(folder), trains).events("drift")) is told


@pytest.mark.parametrize(("pace", "told"), [(0.98, False), (0.8, True)])  # of 55 h for 60 h
def test_a_deadline_at_risk_is_told_and_a_faster_fleet_is_planned(
    folder: Path, pace: float, told: bool
) -> None:
    async def trains(cluster: SteeredCluster) -> None:
        await train(cluster, cluster.replica("a"), for_s=600, pace=pace)

    cluster = play(SteeredCluster(folder), trains)

    assert bool(cluster.events("deadline-at-risk")) is told
    assert bool(cluster.events("replanned")) is told
    if told:
        event = cluster.events("replanned")[0]
        assert "deadline-at-risk" in event.facts["triggers"]
        faster = cluster.planned.of(event.facts["plan_id"])
        assert faster.samples_per_s > cluster.planned.of("plan-1").samples_per_s


@pytest.mark.parametrize(("budget", "told"), [("70", False), ("60", True)])  # of $59.55
def test_a_budget_that_will_not_do_is_told(folder: Path, budget: str, told: bool) -> None:
    async def trains(cluster: SteeredCluster) -> None:
        await train(cluster, cluster.replica("a"), for_s=600, pace=0.95)

    cluster = play(SteeredCluster(folder, goal=f"budget: {budget} USD"), trains)

    assert bool(cluster.events("ceiling-reached")) is told


def test_a_node_that_does_not_come_after_a_change_is_a_short_grant(folder: Path) -> None:
    async def never_comes(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0")
        await cluster.let_pass(400, replica)

    event = play(SteeredCluster(folder), never_comes).events("short-grant")[0]

    assert int(event.facts["node_count"]) < int(event.facts["asked"])


def test_waiting_is_told_once_and_so_is_that_what_is_there_will_do(folder: Path) -> None:
    async def away_and_back(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        for number in range(3):
            cluster.change(f"agent-{number}", session_id="")
        await cluster.let_pass(1200, replica)
        assert cluster.events("waiting")
        workers = cluster.planned.of(cluster.store.job("job-0").plan_id).workers
        for pool, count in workers.items():
            for number in range(count):
                cluster.add_agent(f"{pool.instance_type}-{number}", pool=pool)
        await cluster.let_pass(3 * 3600, replica)

    cluster = play(SteeredCluster(folder), away_and_back)

    for kind in ("waiting", "kept"):
        event = cluster.events(kind)[0]
        assert event.text == event.facts["reason"]
        assert event.facts["triggers"]


def test_a_goal_out_of_reach_is_told_once_with_the_best_that_can_be_had(folder: Path) -> None:
    async def too_late(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.now_s = 57 * 3600.0  # of 60, and nothing is done
        await cluster.let_pass(1800, replica)

    cluster = play(SteeredCluster(folder), too_late)

    event = only(cluster, "goal-out-of-reach")
    assert event.facts["move"] == "give-up"
    assert event.facts["fleet"]
    assert "late" in event.facts["reason"]
    assert float(event.facts["finish_s"]) > 60 * 3600.0
