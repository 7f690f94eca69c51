"""A node that becomes less in mid-run: from what its agent tells to what the controller does."""

from pathlib import Path

import pytest

from spotwright.domain.telemetry import RollupPart, Statistic
from tests.usecases.example_job_run import START
from tests.usecases.steered_cluster import JOB, SteeredCluster
from tests.usecases.steered_story import folder, play, train

__all__ = ["folder"]  # a fixture, used by its name

SHRINKS_S, STEPS = 200, 20


def tell(cluster: SteeredCluster, agent_id: str, *, cpus: float, compute_s: float) -> None:
    """Have an agent tell of 2 CPUs and steps of 0.2 s, and of less from some moment on."""
    parts = []
    for start_s in range(0, 1200, 10):
        whole = start_s < SHRINKS_S
        has, takes_s = (2.0, 0.2) if whole else (cpus, compute_s)
        parts.append(
            RollupPart(
                start_unix_s=int(START.timestamp()) + start_s,
                host_sample_count=10,
                step_count=STEPS,
                statistics={
                    "cpu_limit_count": Statistic(10, 10 * has, has),
                    "step_s": Statistic(STEPS, STEPS * takes_s, takes_s),
                    "compute_s": Statistic(STEPS, STEPS * takes_s, takes_s),
                },
            )
        )
    cluster.store.rollup_parts[agent_id] = parts


def test_a_node_that_makes_the_job_late_is_named_and_replaced_and_its_end_is_no_loss(
    folder: Path,
) -> None:
    async def shrinks(cluster: SteeredCluster) -> None:
        tell(cluster, "agent-0", cpus=2.0, compute_s=0.2)
        tell(cluster, "agent-1", cpus=1.0, compute_s=0.4)
        replica = cluster.replica("a")
        await train(cluster, replica, for_s=SHRINKS_S, pace=1.0)
        assert not cluster.events("host-shrunk")
        await train(cluster, replica, for_s=100, pace=0.5)
        cluster.store.agent_records.pop("agent-1")
        await train(cluster, replica, for_s=60, pace=0.7)

    cluster = play(SteeredCluster(folder), shrinks)

    (found,) = cluster.events("host-shrunk")
    assert found.facts["agent_id"] == "agent-1"
    assert (found.facts["before"], found.facts["now"], found.facts["slowed"]) == ("2", "1", "2")
    (decided,) = cluster.events("replanned")
    assert decided.facts["shrunk"] == decided.facts["leaves"] == "i-agent-1"
    assert "node-resized" in decided.facts["triggers"]
    assert float(decided.facts["speed_share"]) == pytest.approx(0.5, abs=0.02)
    assert cluster.planned.of(cluster.store.job(JOB).plan_id).workers.get(cluster.pool, 0) <= 2
    assert not cluster.events("node-lost")


def test_a_job_that_nobody_steers_is_told_of_it_once(folder: Path) -> None:
    async def shrinks(cluster: SteeredCluster) -> None:
        tell(cluster, "agent-1", cpus=1.0, compute_s=0.4)
        await train(cluster, cluster.replica("a"), for_s=400, pace=1.0)
        await train(cluster, cluster.replica("b"), for_s=100, pace=1.0)

    cluster = play(SteeredCluster(folder), shrinks)

    assert len(cluster.events("host-shrunk")) == 1
