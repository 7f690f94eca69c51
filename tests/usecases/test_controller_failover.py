"""Replicas in processes of their own on one store: one of them dies while it controls a job."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from spotwright.adapters.store.sql_store import SqlStore, open_store
from spotwright.domain.job_run import JobState
from tests.postgres_server import PostgresServer, postgres_server
from tests.usecases.controller_process import TIMES
from tests.usecases.example_job_run import job_run, plan_record

__all__ = ["postgres_server"]  # a fixture, used by its name

PATIENCE_S = 30.0
SLACK_S = 2.0  # a loaded machine
JOB_COUNT = 5


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'daemon.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.url(f"failover_{uuid4().hex}")


@pytest.fixture
def store(store_url: str) -> Iterator[SqlStore]:
    store = open_store(store_url)
    store.add_plan(plan_record())
    for i in range(JOB_COUNT):
        store.add_job(job_run(f"job-{i}", state=JobState.RUNNING), [])
    yield store
    store.close()


@contextmanager
def replica(store_url: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.usecases.controller_process", store_url, name],
        cwd=Path(__file__).parents[2],
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def controllers(store: SqlStore) -> set[str]:
    return {job.controller for job in store.jobs(limit=100)}


def seconds_until(is_so: Callable[[], bool]) -> float:
    start_s = time.monotonic()
    while not is_so():
        assert time.monotonic() - start_s < PATIENCE_S
        time.sleep(0.02)
    return time.monotonic() - start_s


def test_a_killed_controller_is_followed_by_the_other_replica_once_and_in_time(
    store: SqlStore, store_url: str
) -> None:
    with replica(store_url, "a") as first:
        seconds_until(lambda: controllers(store) == {"a"})
        with replica(store_url, "b"):
            time.sleep(
                TIMES.lease_ttl_s + TIMES.period_s
            )  # long enough to take what is not renewed
            assert controllers(store) == {"a"}
            first.kill()
            took_s = seconds_until(lambda: controllers(store) == {"b"})

    assert took_s <= TIMES.lease_ttl_s + TIMES.period_s + SLACK_S
    for i in range(JOB_COUNT):
        changes = [dict(event.facts) for event in store.events(f"job-{i}", limit=100)]
        assert changes == [{"from": "", "to": "a"}, {"from": "a", "to": "b"}]
