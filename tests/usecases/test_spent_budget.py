"""What becomes of a job whose budget is spent."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from spotwright.domain.job_run import Steer
from spotwright.domain.steering import Trigger
from spotwright.usecases.carry_out import SAVING_S
from tests.usecases.steered_cluster import JOB, SteeredCluster

BUDGET_USD = 5.0


def spent_cluster(folder: Path, steer: Steer, *, failures: int = 0) -> SteeredCluster:
    """Steer a job that has little of its budget left, until some time after it is spent."""
    cluster = SteeredCluster(folder, steer=steer)
    text = cluster.document.text.replace("goal:", f"goal:\n  budget: ${BUDGET_USD}")
    record = replace(cluster.store.plan("plan-1"), plan_id="plan-2", job_text=text)
    cluster.store.add_plan(record)
    cluster.store.change_job(JOB, lambda job: (replace(job, plan_id="plan-2"), ()))

    async def story() -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.cloud.failures_left = failures
        cluster.store.change_job(
            JOB,
            lambda job: (
                replace(job, course=replace(job.course, spent_usd=BUDGET_USD - 0.1)),
                (),
            ),
        )
        for _ in range(240):
            await cluster.let_pass(5, replica)
            if cluster.cloud.given_back:
                for agent_id in cluster.store.agent_records:
                    cluster.change(agent_id, session_id="")

    asyncio.run(story())
    return cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spent")


@pytest.mark.parametrize("failures", [0, 1])
def test_an_applied_fleet_is_given_back_once_training_had_time_to_save(
    folder: Path, failures: int
) -> None:
    cluster = spent_cluster(folder, Steer.APPLY, failures=failures)

    assert cluster.cloud.given_back == [JOB]
    (told,) = cluster.events(Trigger.BUDGET_SPENT)
    (gone,) = cluster.events("fleet-given-back")
    assert (gone.time - told.time).total_seconds() >= SAVING_S
    assert len(cluster.events("give-back-failed")) == failures
    assert (("agent-0", "agent-1", "agent-2"), SAVING_S) in cluster.told.saved
    spent_usd = cluster.store.job(JOB).course.spent_usd
    assert spent_usd is not None
    assert spent_usd <= BUDGET_USD
    assert len(cluster.cloud.applied) == len({*cluster.cloud.applied})


def test_a_fleet_that_others_apply_is_only_told(folder: Path) -> None:
    cluster = spent_cluster(folder, Steer.ANNOUNCE)

    assert cluster.cloud.given_back == []
    assert len(cluster.events(Trigger.BUDGET_SPENT)) == 1
    assert "budget" in cluster.events("goal-out-of-reach")[-1].text
