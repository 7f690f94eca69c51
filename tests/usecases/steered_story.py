"""What happens to a steered job, told step by step."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from spotwright.domain.job_run import Progress
from spotwright.usecases.report_progress import ProgressLog
from tests.usecases.example_job_run import after
from tests.usecases.steered_cluster import JOB, TIMES, Replica, SteeredCluster

Play = Callable[[SteeredCluster], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steered")


def play(cluster: SteeredCluster, story: Play) -> SteeredCluster:
    asyncio.run(story(cluster))
    return cluster


async def lose_one(cluster: SteeredCluster) -> None:
    """Have a node noticed after a minute."""
    replica = cluster.replica("a")
    await cluster.let_pass(60, replica)
    cluster.notice("agent-0")
    await cluster.let_pass(30, replica)  # training saves, then it is applied


async def train(cluster: SteeredCluster, replica: Replica, *, for_s: float, pace: float) -> None:
    """Train at a multiple of the speed that the first plan promises."""
    log, first = ProgressLog(cluster.store, cluster.planned), cluster.planned.of("plan-1")
    steps_per_s = pace * cluster.steps * first.samples_per_s / first.samples_to_goal
    for _ in range(int(for_s / TIMES.period_s)):
        done = cluster.store.job(JOB).progress.steps or 0.0
        told = Progress(steps=done + steps_per_s * TIMES.period_s)
        log.report(JOB, told, request_id="", now=after(cluster.now_s))
        await cluster.let_pass(TIMES.period_s, replica)
