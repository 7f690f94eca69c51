"""Which nodes end when a job goes on with others: told to whoever rents, and kept until done."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spotwright.domain.job_run import Steer
from spotwright.domain.steering import Move
from spotwright.domain.steering_question import SteeringAnswer, SteeringQuestion
from spotwright.usecases.steering_notes import notes_of
from tests.usecases.steered_cluster import JOB, Replica, SteeredCluster
from tests.usecases.steered_story import folder, lose_one, play
from tests.usecases.test_steering_loses_nothing import commit_fails_once, logs

__all__ = ["folder"]  # a fixture, used by its name

NODE = "i-agent-1"


async def see_one_fall_silent(cluster: SteeredCluster) -> None:
    replica = cluster.replica("a")
    await cluster.let_pass(60, replica)
    cluster.change("agent-2", session_id="")
    await cluster.let_pass(60, replica)


def test_a_node_with_a_notice_goes_before_those_that_stay(folder: Path) -> None:
    cluster = play(SteeredCluster(folder), lose_one)

    assert cluster.cloud.going == [(), ("i-agent-0",)]
    assert cluster.events("applied")[-1].facts["ended"] == "i-agent-0"


@pytest.mark.parametrize(
    ("stops_as_one", "applied"),
    [(True, [(30, 1), (45, 2)]), (False, [(5, 2), (30, 2)])],
)
def test_nodes_of_a_synchronous_job_end_once_training_had_time_to_save(
    folder: Path, *, stops_as_one: bool, applied: list[tuple[float, int]]
) -> None:
    counts = []

    async def story(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        replica.decider.decide = saving(  # type: ignore[method-assign]
            replica.decider.decide, checkpoint_s=40.0, stops_as_one=stops_as_one
        )
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0")
        passed_s = 0.0
        for until_s, _ in applied:
            await cluster.let_pass(until_s - passed_s, replica)
            passed_s = until_s
            counts.append((until_s, len(cluster.cloud.applied)))

    play(SteeredCluster(folder), story)

    assert counts == applied


def saving(
    decide: Callable[[SteeringQuestion], Coroutine[Any, Any, SteeringAnswer]],
    *,
    checkpoint_s: float,
    stops_as_one: bool,
) -> Any:
    """Have a job whose state takes so long to save, on all hosts at once or on one."""

    async def decided(question: SteeringQuestion) -> SteeringAnswer:
        answer = await decide(question)
        facts = replace(answer.facts, checkpoint_s=checkpoint_s, stops_as_one=stops_as_one)
        return replace(answer, facts=facts)

    return decided


def test_a_lost_node_goes_before_one_that_still_trains(folder: Path) -> None:
    cluster = play(SteeredCluster(folder), see_one_fall_silent)

    assert cluster.cloud.going == [(), ("i-agent-2",)]


def test_where_no_node_can_be_ended_by_name_the_log_says_why(folder: Path) -> None:
    cluster = SteeredCluster(folder)
    cluster.cloud.refusal = "allow the IAM action"
    play(cluster, lose_one)

    last = cluster.events("applied")[-1]
    assert "ended" not in last.facts
    assert last.facts["problem"] == "allow the IAM action"
    assert last.facts["plan_id"] == cluster.store.job(JOB).plan_id
    assert "left to the cloud" in last.text


def given_up(decide: Callable[[SteeringQuestion], Coroutine[Any, Any, SteeringAnswer]]) -> Any:
    """Have decisions replace a node by an equal of its pool."""

    async def decided(question: SteeringQuestion) -> SteeringAnswer:
        answer = await decide(question)
        equal = replace(
            answer.steering,
            move=Move.CHANGE,
            workers=question.now.asked,
            servers=question.now.servers,
            leaves=(NODE,),
        )
        return replace(answer, steering=equal)

    return decided


async def replacing(cluster: SteeredCluster) -> Replica:
    """Have a fleet that was applied have one of its nodes replaced with the next look."""
    replica = cluster.replica("a")
    await cluster.let_pass(60, replica)
    replica.decider.decide = given_up(replica.decider.decide)  # type: ignore[method-assign]
    cluster.notice("agent-0")
    return replica


async def replace_one(cluster: SteeredCluster) -> None:
    await cluster.let_pass(60, await replacing(cluster))


def test_a_node_that_is_replaced_by_its_equal_is_ended_once(folder: Path) -> None:
    cluster = play(SteeredCluster(folder), replace_one)

    assert cluster.events("node-replaced")
    assert cluster.cloud.applied == ["variables of plan-1"]
    assert cluster.cloud.replaced == [NODE]
    [ended] = cluster.events("nodes-ended")
    assert (ended.facts["ended"], ended.facts["gone"]) == (NODE, "")
    assert notes_of(cluster.store.job(JOB).course.notes).carried.given_up == ()


@pytest.mark.parametrize("steer", [Steer.ANNOUNCE, Steer.WRITE])
def test_who_only_asks_for_decisions_has_no_node_ended(folder: Path, steer: Steer) -> None:
    cluster = play(SteeredCluster(folder, steer=steer), replace_one)

    assert cluster.events("node-replaced")
    assert not cluster.cloud.replaced
    assert not cluster.events("nodes-ended")


def test_what_the_cloud_refuses_is_told_and_tried_again(folder: Path) -> None:
    async def refused(cluster: SteeredCluster) -> None:
        replica = await replacing(cluster)
        cluster.cloud.refusal = "allow the IAM action"
        await cluster.let_pass(10, replica)
        cluster.cloud.refusal = ""
        await cluster.let_pass(60, replica)

    cluster = play(SteeredCluster(folder), refused)

    [failed] = cluster.events("replace-failed")
    assert failed.facts["problem"] == "allow the IAM action"
    assert failed.text.startswith(f"{NODE} may still run, next try in 10 s")
    assert cluster.cloud.replaced == [NODE]


def test_a_replica_that_died_after_it_ended_a_node_has_no_other_one_ended(folder: Path) -> None:
    async def died(cluster: SteeredCluster) -> None:
        lost = commit_fails_once(cluster, logs("nodes-ended"))
        dies, follows = await replacing(cluster), cluster.replica("b")
        await cluster.let_pass(5, dies)
        assert lost
        await cluster.let_pass(60, follows)

    cluster = play(SteeredCluster(folder), died)

    assert cluster.cloud.replaced == [NODE]
    [ended] = cluster.events("nodes-ended")
    assert (ended.facts["ended"], ended.facts["gone"]) == ("", NODE)
