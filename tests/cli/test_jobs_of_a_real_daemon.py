"""The commands about jobs against `spotwright serve` itself, killed and started again."""

import json
from pathlib import Path
from typing import Any

from spotwright.adapters.store.sql_store import open_store
from spotwright.client import Client
from spotwright.domain.job_run import Progress
from tests.adapters.grpc.planning.example_plan import kept_plan
from tests.cli.command import printed_json, spotwright
from tests.cli.live_command import running, wait_for
from tests.daemon_process import DaemonProcess, running_daemon


def keep_plan(daemon: DaemonProcess) -> None:
    """Put a plan where the daemon finds it; to make one takes longer."""
    store = open_store(daemon.store_url)
    store.add_plan(kept_plan())
    store.close()


def test_a_job_is_followed_through_a_crash_to_its_goal(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon, Client(daemon.address) as client:
        where = ("--daemon", daemon.address)
        keep_plan(daemon)
        job_id = spotwright("jobs", "start", "plan-1", *where).stdout.strip()
        client.report_progress(job_id, Progress(samples=25_000.0))
        with running("watch", job_id, *where) as watch:
            wait_for(watch.stdout, "job-started")
            daemon.kill()
            wait_for(watch.stderr, "lost the daemon")
            daemon.start()
            wait_for(watch.stderr, "answers again")
            client.report_progress(job_id, Progress(samples=100_000.0))
            out, told = watch.communicate()

        assert (watch.returncode, told) == (0, "")
        assert "goal-reached" in out
        assert "job-started" not in out  # told before the crash, and once
        status = printed_json("status", *where)
        assert set(status["services"].values()) == {"serving"}
        assert status["jobs"] == []
        assert figures(job_id, where)["progress_fraction"]["measured"] == 1.0
        events = printed_json("jobs", "events", job_id, *where)["events"]
        kinds = [event["kind"] for event in events if event["kind"] != "controller-changed"]
        assert kinds == ["job-created", "job-started", "goal-reached"]


def figures(job_id: str, where: tuple[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(spotwright("report", job_id, "--json", *where).stdout)
    return dict(found["figures"])
