"""Replicas that steer, in processes of their own on one store: one dies amid what it does."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spotwright.adapters.store.sql_store import SqlStore, open_store
from spotwright.domain.job_run import Event, JobCourse, JobState, PlanRecord, Progress, Steer
from spotwright.domain.telemetry import AgentFacts, AgentNotice, BatchKey, ReceivedBatch
from tests.postgres_server import postgres_server
from tests.usecases.example_job_run import job_run
from tests.usecases.steered_cluster import JOB, SteeredCluster
from tests.usecases.test_controller_failover import store_url

__all__ = ["postgres_server", "store_url"]  # fixtures, used by their names

PATIENCE_S = 60.0
EVERYBODY = "agent-0 agent-1 agent-2"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> SteeredCluster:
    """Return a plan of three spot nodes, and the agents on them."""
    return SteeredCluster(tmp_path_factory.mktemp("plan"))


@pytest.fixture
def store(store_url: str, cluster: SteeredCluster) -> Iterator[SqlStore]:
    store, now = open_store(store_url), datetime.now(UTC)
    plan: PlanRecord = cluster.store.plan("plan-1")
    store.add_plan(plan)
    course = JobCourse(steer=Steer.APPLY, is_told=True)
    run = job_run(JOB, state=JobState.RUNNING)
    run = replace(run, create_time=now, update_time=now, start_time=now, course=course)
    store.add_job(replace(run, progress=Progress(steps=0.0), progress_fraction=0.0), [])
    for record in cluster.store.agent_records.values():
        store.open_session(record.facts, session_id=f"of {record.facts.agent_id}", replica="a")
        hear(store, record.facts, sequence=1)
    yield store
    store.close()


def hear(
    store: SqlStore, facts: AgentFacts, *, sequence: int, notice: AgentNotice | None = None
) -> None:
    """Have an agent send a batch."""
    now_ms = time.time_ns() // 1_000_000
    batch = ReceivedBatch(
        key=BatchKey(facts.agent_id, facts.boot_id, sequence),
        job_id=JOB,
        receive_unix_ms=now_ms,
        first_unix_ms=now_ms,
        last_unix_ms=now_ms,
        clock_skew_s=0.0,
        document=b"",
        parts=(),
        notices=() if notice is None else (notice,),
    )
    store.commit_batches([batch])


def interruption() -> AgentNotice:
    now = datetime.now(UTC)
    return AgentNotice(
        kind="interruption",
        time=now,
        deadline=now + timedelta(seconds=120),
        source="aws",
        detail="terminate",
    )


@contextmanager
def replica(store_url: str, name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    module = "tests.usecases.steering_process"
    command = [sys.executable, "-m", module, store_url, name, str(folder)]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def told(folder: Path) -> list[str]:
    file = folder / "told.txt"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def until(is_so: Callable[[], object]) -> None:
    start_s = time.monotonic()
    while not is_so():
        assert time.monotonic() - start_s < PATIENCE_S
        time.sleep(0.02)


def events(store: SqlStore, kind: str) -> list[Event]:
    return [event for event in store.events(JOB, limit=1000) if event.kind == kind]


@pytest.mark.parametrize("doing", ["decides", "applies"])
def test_a_successor_goes_on_with_the_notes_and_nothing_is_decided_or_told_twice(
    store: SqlStore, store_url: str, cluster: SteeredCluster, tmp_path: Path, doing: str
) -> None:
    with replica(store_url, "a", tmp_path) as dies:
        until(lambda: events(store, "checkpoint-advice") and events(store, "applied"))
        (tmp_path / f"a-{doing}").touch()
        before = len(told(tmp_path))
        hear(store, cluster.store.agent_records["agent-0"].facts, sequence=2, notice=interruption())
        until(lambda: any(line.startswith(f"a {doing}") for line in told(tmp_path)[before:]))
        dies.kill()
        dies.wait()
        at_death = told(tmp_path)

        with replica(store_url, "b", tmp_path):
            until(lambda: len(events(store, "applied")) == 2)
            controlled = store.job(JOB)
            time.sleep(3.0)  # six rounds more, in which it could repeat itself

    lines, job = told(tmp_path), store.job(JOB)
    (replanned,) = events(store, "replanned")
    assert replanned.facts["triggers"] == "interruption-notice"
    assert job.plan_id == controlled.plan_id == replanned.facts["plan_id"] != "plan-1"
    counts = Counter(line.partition(" ")[2] for line in lines)
    assert counts["announced replanned"] == 1
    assert counts[f"save {EVERYBODY}"] == 1
    assert counts["applies plan-1"] == 1
    assert counts[f"interval {EVERYBODY}"] == len(events(store, "checkpoint-advice"))
    of_b = [line for line in lines[len(at_death) :] if line.startswith("b decides")]
    assert of_b == (["b decides 2"] if doing == "decides" else [])
    resumed = [event.facts["plan_id"] for event in events(store, "apply-resumed")]
    assert resumed == ([] if doing == "decides" else [job.plan_id])
