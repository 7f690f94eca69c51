"""Who is asked first, where one process decides for many jobs."""

import asyncio
from collections import Counter
from pathlib import Path

from tests.usecases.example_job_run import after
from tests.usecases.steered_cluster import Replica, SteeredCluster
from tests.usecases.steered_story import folder, play

__all__ = ["folder"]  # a fixture, used by its name

_STEP_S = 10.0


def add_jobs(cluster: SteeredCluster, count: int) -> None:
    for number in range(1, count + 1):
        cluster.add_job(f"job-{number}", f"of-{number}")


async def pass_prices(cluster: SteeredCluster, replica: Replica, *, for_s: float) -> None:
    """Let time pass while nobody answers what pools cost."""
    for _ in range(int(for_s / _STEP_S)):
        cluster.now_s += _STEP_S
        for agent_id in cluster.store.agent_records:
            cluster.change(agent_id, last_seen=after(cluster.now_s))
        await replica.control.look()
        await asyncio.sleep(0.01)


def test_prices_are_asked_for_once_in_ten_minutes_and_not_for_all_jobs_at_once(
    folder: Path,
) -> None:
    async def two_rounds(cluster: SteeredCluster) -> None:
        add_jobs(cluster, 15)
        replica = cluster.replica("a")
        for rounds in (1, 2):
            await pass_prices(cluster, replica, for_s=600)
            await replica.steering.wait()
            assert len(replica.decider.priced) == rounds * 16
        at_once = Counter(replica.decider.priced)
        assert max(at_once.values()) <= 4  # of 60 looks in ten minutes

    play(SteeredCluster(folder), two_rounds)


def test_a_notice_is_decided_about_while_prices_are_asked_for_one_job(folder: Path) -> None:
    async def slow_prices(cluster: SteeredCluster) -> None:
        add_jobs(cluster, 4)
        replica = cluster.replica("a")
        await cluster.let_pass(30, replica)
        replica.decider.prices_held.clear()
        begun = len(replica.decider.priced)
        await pass_prices(cluster, replica, for_s=600)
        assert len(replica.decider.priced) == begun + 1  # the others wait for it
        cluster.notice("agent-0")
        await pass_prices(cluster, replica, for_s=10)
        assert replica.decider.asked[-1].now.staying == {cluster.pool: 2}
        replica.decider.prices_held.set()
        await replica.steering.wait()

    play(SteeredCluster(folder), slow_prices)


def test_nobody_begins_to_ask_for_prices_while_a_decision_is_under_way(folder: Path) -> None:
    async def slow_decision(cluster: SteeredCluster) -> None:
        add_jobs(cluster, 4)
        replica = cluster.replica("a")
        await cluster.let_pass(30, replica)
        begun = len(replica.decider.priced)
        replica.decider.held.clear()
        cluster.notice("agent-0")
        await pass_prices(cluster, replica, for_s=600)
        assert len(replica.decider.priced) == begun
        replica.decider.held.set()
        await replica.steering.wait()
        assert len(replica.decider.priced) > begun

    play(SteeredCluster(folder), slow_decision)


def test_how_long_a_decision_took_counts_the_time_in_line(folder: Path) -> None:
    async def many_notices(cluster: SteeredCluster) -> None:
        add_jobs(cluster, 17)
        replica = cluster.replica("a")
        await cluster.let_pass(30, replica)
        before = len(replica.decider.asked)
        replica.decider.held.clear()
        cluster.notice("agent-0")
        for number in range(1, 18):
            cluster.notice(f"of-{number}-0")
        await pass_prices(cluster, replica, for_s=_STEP_S)
        while len(replica.decider.asked) - before < 16:
            await asyncio.sleep(0.01)
        cluster.now_s += 4.0  # less than a lease holds
        assert len(replica.decider.asked) - before == 16  # two wait for a place in the line
        replica.decider.held.set()
        await replica.steering.wait()

        took_s = [
            float(event.facts["decision_s"])
            for job in cluster.store.jobs(limit=100)
            for event in cluster.store.events(job.job_id, limit=100)
            if event.kind == "replanned"
        ]
        assert took_s == [4.0] * 18

    play(SteeredCluster(folder), many_notices)
