"""How plans of a steered job are applied: after failures, late, and while a daemon stops."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.usecases.steered_cluster import JOB, TIMES, Replica, SteeredCluster

_PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steered")


async def begun(cluster: SteeredCluster) -> None:
    """Wait until an apply has begun."""
    assert await asyncio.to_thread(cluster.cloud.begun.wait, _PATIENCE_S)


async def renewed(cluster: SteeredCluster) -> None:
    """Wait until somebody has renewed leases since now."""
    before = cluster.store.lease_round_count
    async with asyncio.timeout(_PATIENCE_S):
        while cluster.store.lease_round_count == before:
            await asyncio.sleep(0.005)


async def plan_that_cannot_be_applied(cluster: SteeredCluster, replica: Replica) -> None:
    """Have the fleet of the first plan lose a node, and the next plan fail for an hour."""
    await cluster.let_pass(60, replica)
    cluster.cloud.failures_left = 10_000
    cluster.notice("agent-0")
    await cluster.let_pass(3600, replica)


def take_another_plan(cluster: SteeredCluster) -> None:
    """Have the job run a plan that nobody has tried yet."""
    cluster.store.add_plan(replace(cluster.store.plan("plan-1"), plan_id="plan-2"))
    cluster.store.change_job(JOB, lambda job: (replace(job, plan_id="plan-2"), ()))


def test_a_new_plan_does_not_wait_for_the_pause_of_another(folder: Path) -> None:
    async def story() -> SteeredCluster:
        cluster = SteeredCluster(folder)
        replica = cluster.replica("a")
        await plan_that_cannot_be_applied(cluster, replica)
        cluster.cloud.failures_left = 0
        take_another_plan(cluster)
        await cluster.let_pass(5, replica)
        return cluster

    cluster = asyncio.run(story())

    assert cluster.events("apply-failed")[-1].facts["retry_in_s"] == "1800"
    assert cluster.events("applied")[-1].facts["plan_id"] == "plan-2"
    assert cluster.cloud.applied[-1] == "variables of plan-2"


def test_the_pauses_of_another_plan_begin_anew(folder: Path) -> None:
    async def story() -> SteeredCluster:
        cluster = SteeredCluster(folder)
        replica = cluster.replica("a")
        await plan_that_cannot_be_applied(cluster, replica)
        take_another_plan(cluster)
        await cluster.let_pass(5, replica)
        return cluster

    cluster = asyncio.run(story())

    failed = cluster.events("apply-failed")[-1].facts
    assert (failed["plan_id"], failed["retry_in_s"]) == ("plan-2", "10")


def test_a_pool_is_short_of_nodes_only_once_it_was_asked_for_them(folder: Path) -> None:
    async def story() -> None:
        cluster = SteeredCluster(folder)
        replica = cluster.replica("a")
        await plan_that_cannot_be_applied(cluster, replica)
        assert not cluster.events("short-grant")
        cluster.cloud.failures_left = 0
        await cluster.let_pass(1800, replica)
        assert cluster.events("applied")[-1].facts["plan_id"] != "plan-1"
        assert cluster.events("short-grant")

    asyncio.run(story())


def test_an_apply_that_comes_too_late_does_not_undo_that_of_a_later_plan(folder: Path) -> None:
    async def story() -> SteeredCluster:
        cluster = SteeredCluster(folder)
        sleeps, follows = cluster.replica("a"), cluster.replica("b")
        sleeps.decider.held.clear()
        cluster.cloud.hangs = True
        await cluster.let_pass(5, sleeps)
        await begun(cluster)
        await cluster.let_pass(60, follows)
        cluster.notice("agent-0")
        await cluster.let_pass(30, follows)
        cluster.cloud.released.set()
        sleeps.decider.held.set()
        await sleeps.steering.wait()
        return cluster

    cluster = asyncio.run(story())

    plan_id = cluster.store.job(JOB).plan_id
    assert cluster.cloud.applied == ["variables of plan-1", f"variables of {plan_id}"]
    assert [event.facts["plan_id"] for event in cluster.events("applied")] == ["plan-1", plan_id]
    assert not cluster.events("apply-dropped")  # a replica that lost the job logs nothing


def test_an_apply_that_a_later_plan_overtakes_is_dropped_and_told(folder: Path) -> None:
    async def story() -> SteeredCluster:
        cluster = SteeredCluster(folder)
        replica = cluster.replica("a")
        cluster.cloud.hangs = True
        looking = asyncio.create_task(cluster.let_pass(5, replica))
        await begun(cluster)
        take_another_plan(cluster)
        cluster.cloud.released.set()
        await looking
        return cluster

    cluster = asyncio.run(story())

    assert cluster.cloud.applied == []
    assert [event.facts["plan_id"] for event in cluster.events("apply-dropped")] == ["plan-1"]


def test_a_daemon_that_stops_keeps_a_job_until_its_apply_has_ended(folder: Path) -> None:
    async def story() -> SteeredCluster:
        cluster = SteeredCluster(folder)
        stops = cluster.replica("a", replace(TIMES, period_s=0.01))
        follows = cluster.replica("b")
        cluster.cloud.hangs = True
        stopping = asyncio.Event()
        running = asyncio.create_task(stops.control.run(stopping))
        await begun(cluster)
        stopping.set()
        for _ in range(12):
            cluster.now_s += TIMES.period_s
            await renewed(cluster)
            assert cluster.store.job(JOB).controller == "a"
        await follows.look()
        assert not follows.control.controlled_jobs
        cluster.cloud.released.set()
        await running
        await cluster.let_pass(30, follows)
        return cluster

    cluster = asyncio.run(story())

    assert cluster.store.job(JOB).controller == "b"
    assert cluster.cloud.applied == ["variables of plan-1"]
    assert not cluster.events("apply-resumed")
