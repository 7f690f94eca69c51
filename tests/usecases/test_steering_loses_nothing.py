"""What comes while a decision is made, or cannot be kept at once, is not lost."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from spotwright.domain.errors import StoreUnavailableError
from spotwright.domain.job_run import JobRun, NewEvent
from spotwright.domain.steering import NodeState
from spotwright.usecases.control_jobs import ControlTimes, JobControl
from spotwright.usecases.known_job import Change
from spotwright.usecases.steering_notes import notes_of
from tests.usecases.example_job_run import after
from tests.usecases.steered_cluster import JOB, SteeredCluster
from tests.usecases.steered_story import folder, lose_one, play

__all__ = ["folder"]  # a fixture, used by its name

Changed = tuple[JobRun, Sequence[NewEvent]]


def commit_fails_once(cluster: SteeredCluster, fails: Callable[[Changed], bool]) -> list[Changed]:
    """Have the store fail at the first commit of a kind; return what it did not keep."""
    change_job = cluster.store.change_job
    lost: list[Changed] = []

    def failing(job_id: str, change: Change, **how: object) -> JobRun:
        def committed(job: JobRun) -> Changed:
            changed = change(job)
            if not lost and fails(changed):
                lost.append(changed)
                raise StoreUnavailableError("the disk is full")
            return changed

        return change_job(job_id, committed, **how)  # type: ignore[arg-type]

    cluster.store.change_job = failing  # type: ignore[method-assign]
    return lost


def logs(kind: str) -> Callable[[Changed], bool]:
    return lambda changed: any(event.kind == kind for event in changed[1])


@pytest.mark.parametrize("second_s", [0, 5, 10])  # after the first one was asked about
def test_a_second_notice_during_a_decision_is_decided_about_next(
    folder: Path, second_s: float
) -> None:
    async def two_notices(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        replica.decider.held.clear()
        cluster.notice("agent-0")
        await cluster.let_pass(5 + second_s, replica)
        cluster.notice("agent-1")
        await cluster.let_pass(5, replica)
        replica.decider.held.set()
        await cluster.let_pass(10, replica)
        _, first, second = replica.decider.asked
        assert second.now.time_s > first.now.time_s + second_s
        assert second.forced
        await cluster.let_pass(60, replica)
        assert len(replica.decider.asked) == 3

    cluster = play(SteeredCluster(folder), two_notices)

    assert notes_of(cluster.store.job(JOB).course.notes).pending == {}


def test_what_came_during_a_decision_is_looked_at_without_waiting_for_the_next_round(
    folder: Path,
) -> None:
    async def two_notices(cluster: SteeredCluster) -> None:
        replica, stopping = cluster.replica("a"), asyncio.Event()
        asked, seldom = replica.decider.asked, ControlTimes(period_s=1000.0)
        control = JobControl(
            cluster.store,
            cluster.planned,
            replica="a",
            clock=lambda: after(0),
            times=seldom,
            steering=replica.steering,
        )
        running = asyncio.create_task(control.run(stopping))
        await until(lambda: len(asked) == 1)
        await replica.steering.wait()
        replica.decider.held.clear()
        for number in range(2):
            cluster.notice(f"agent-{number}")
            control.wake(JOB)
            await until(lambda: leaving_count(cluster.store.job(JOB)) > number)  # noqa: B023
        assert len(asked) == 2
        replica.decider.held.set()
        await until(lambda: len(asked) == 3)
        stopping.set()
        await running

    play(SteeredCluster(folder), two_notices)


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something; the test has a time limit."""
    while not is_so():
        await asyncio.sleep(0.01)


def leaving_count(job: JobRun) -> int:
    nodes = notes_of(job.course.notes).memory.nodes.values()
    return sum(state is NodeState.LEAVING for _, state in nodes)


def test_a_notice_that_could_not_be_kept_is_seen_again_and_training_saves(folder: Path) -> None:
    async def failing(cluster: SteeredCluster) -> None:
        lost = commit_fails_once(cluster, lambda changed: leaving_count(changed[0]) == 1)
        await lose_one(cluster)
        assert lost

    cluster = play(SteeredCluster(folder), failing)

    ((agents, _),) = cluster.told.saved
    assert agents == ("agent-0", "agent-1", "agent-2")
    assert len(cluster.events("replanned")) == 1


def test_an_event_that_could_not_be_kept_is_logged_with_the_next_look(folder: Path) -> None:
    async def failing(cluster: SteeredCluster) -> None:
        lost = commit_fails_once(cluster, logs("node-lost"))
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.change("agent-1", session_id="")
        await cluster.let_pass(60, replica)
        assert lost

    assert len(play(SteeredCluster(folder), failing).events("node-lost")) == 1


def test_a_decision_that_could_not_be_kept_is_made_again(folder: Path) -> None:
    async def failing(cluster: SteeredCluster) -> None:
        lost = commit_fails_once(cluster, logs("replanned"))
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0")
        await cluster.let_pass(30, replica)
        ((job, _),) = lost
        assert cluster.store.job(JOB).plan_id != job.plan_id

    cluster = play(SteeredCluster(folder), failing)

    (event,) = cluster.events("replanned")
    assert event.facts["triggers"] == "interruption-notice"
    assert cluster.store.job(JOB).plan_id == event.facts["plan_id"]


def test_an_apply_whose_end_could_not_be_kept_is_not_taken_for_done(folder: Path) -> None:
    async def failing(cluster: SteeredCluster) -> None:
        lost = commit_fails_once(cluster, logs("applied"))
        await cluster.let_pass(30, cluster.replica("a"))
        assert lost

    cluster = play(SteeredCluster(folder), failing)

    assert len(cluster.events("applied")) == 1
    assert len(cluster.events("apply-resumed")) == 1


def test_advice_that_cannot_be_queued_is_told_later_with_what_time_is_left(folder: Path) -> None:
    async def failing(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0")
        cluster.told.failures_left = 2
        await cluster.let_pass(20, replica)

    ((_, seconds_left),) = play(SteeredCluster(folder), failing).told.saved

    assert seconds_left == 105.0  # of 120, at the third look


def test_notices_and_hints_are_told_others_by_node_as_they_are_seen(folder: Path) -> None:
    async def told(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.add_agent("twin", instance_id="i-agent-0")
        cluster.notice("agent-0")
        cluster.notice("agent-1", kind="hint")
        await cluster.let_pass(30, replica)

    cluster = play(SteeredCluster(folder), told)

    facts = {event.kind: event.facts for event in cluster.told.posted}
    kinds = [event.kind for event in cluster.told.posted]
    assert kinds.count("interruption-notice") == kinds.count("interruption-hint") == 1
    assert facts["interruption-notice"]["agent_ids"] == "agent-0, twin"
    assert facts["interruption-notice"]["deadline"] == "2026-11-18T09:03:00+00:00"
    assert facts["interruption-hint"]["node_id"] == "i-agent-1"
    assert facts["replanned"] == cluster.events("replanned")[0].facts
    assert cluster.events("interruption-notice") == []  # logged where it came in, not twice
