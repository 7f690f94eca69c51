"""Two real daemons on one PostgreSQL: the one that controls a job is killed."""

import time
from pathlib import Path
from uuid import uuid4

import pytest

from spotwright.adapters.store.sql_store import open_store
from spotwright.client import Client
from spotwright.domain.job_run import JobRun
from spotwright.usecases.control_jobs import ControlTimes
from tests.adapters.grpc.planning.example_plan import kept_plan
from tests.cli.live_command import running, wait_for
from tests.daemon_process import running_daemon
from tests.postgres_server import PostgresServer, postgres_server

__all__ = ["postgres_server"]  # a fixture, used by its name

TIMES = ControlTimes()
SLACK_S = 5.0


@pytest.mark.soak  # a lease runs out in 15 s
def test_the_other_daemon_takes_over_and_those_who_watch_it_see_that(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.url(f"daemons_{uuid4().hex}")
    store = open_store(url)
    store.add_plan(kept_plan())
    store.close()
    with running_daemon(tmp_path / "a", "--store", url, "--replica", "a") as dies:
        with Client(dies.address) as client:
            job_id = client.create_job("plan-1").job_id
            states = (job for job in client.watch_job(job_id) if isinstance(job, JobRun))
            assert next(job.controller for job in states if job.controller) == "a"
        with (
            running_daemon(tmp_path / "b", "--store", url, "--replica", "b") as stays,
            running("watch", job_id, "--daemon", stays.address) as watch,
            Client(stays.address) as client,
        ):
            wait_for(watch.stdout, "replica a took control")
            dies.kill()
            start_s = time.monotonic()
            wait_for(watch.stdout, "replica b took control from a")
            took_s = time.monotonic() - start_s
            events = client.list_job_events(job_id)

    assert took_s <= TIMES.lease_ttl_s + TIMES.period_s + SLACK_S
    assert [event.facts["to"] for event in events if event.kind == "controller-changed"] == [
        "a",
        "b",
    ]
