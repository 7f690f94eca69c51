"""`spotwright jobs`, against a daemon on loopback."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.job_run import Forecast, JobState, Progress
from spotwright.domain.prediction import Interval
from spotwright.domain.units import format_duration
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.report_progress import ProgressLog
from tests.cli.command import spotwright, spotwright_here
from tests.cli.small_daemon import SmallDaemon
from tests.usecases.example_job_run import after, planned_run


@pytest.fixture(scope="module")
def daemon() -> Iterator[SmallDaemon]:
    with SmallDaemon() as daemon:
        yield daemon


def jobs(daemon: SmallDaemon, *arguments: str) -> str:
    done = spotwright_here("jobs", *arguments, "--daemon", daemon.address)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def jobs_json(daemon: SmallDaemon, *arguments: str) -> Any:
    return json.loads(jobs(daemon, *arguments, "--json"))


def advance(daemon: SmallDaemon, job_id: str, **progress: float) -> None:
    log = ProgressLog(daemon.store, PlannedRuns(daemon.store, lambda _: planned_run()))
    log.report(job_id, Progress(**progress), request_id="", now=after(60))


def test_start_prints_the_id_and_nothing_else(daemon: SmallDaemon) -> None:
    job_id = jobs(daemon, "start", "plan-1").strip()

    assert daemon.store.job(job_id).state is JobState.PENDING


def test_a_steered_job_shows_what_is_spent_and_expected(daemon: SmallDaemon) -> None:
    job_id = jobs(daemon, "start", "plan-1", "--steer", "announce").strip()
    expected = Forecast(duration_s=Interval(3600, 7200, 9000), cost_usd=Interval(3, 4, 5))
    daemon.store.change_job(
        job_id,
        lambda job: (
            replace(job, course=replace(job.course, spent_usd=1.25, forecast=expected)),
            (),
        ),
    )

    shown, told = jobs(daemon, "show", job_id), jobs_json(daemon, "show", job_id)

    low, mid, high = (format_duration(seconds) for seconds in (3600, 7200, 9000))
    for text in ("announce", f"{mid} ({low} to {high})", "$4.00 ($3.00 to $5.00)", "$1.25"):
        assert text in shown
    assert (told["steer"], told["spent_usd"], told["first_plan_id"]) == ("announce", 1.25, "plan-1")
    assert told["forecast"]["cost_usd"] == {"low": 3.0, "mid": 4.0, "high": 5.0}
    assert mid in jobs(daemon, "list")


def test_a_job_is_shown_listed_and_stopped(daemon: SmallDaemon) -> None:
    job_id = jobs_json(daemon, "start", "plan-1")["job_id"]
    advance(daemon, job_id, samples=25_000.0, loss=0.75)

    shown = jobs(daemon, "show", job_id)
    assert "running" in shown
    assert "25.0%" in shown
    assert "25,000" in shown
    assert "0.75" in shown
    listed = jobs_json(daemon, "list", "--state", "running")
    assert [job["job_id"] for job in listed["jobs"]] == [job_id]
    assert jobs(daemon, "stop", job_id, "--reason", "too slow") == f"{job_id} stopped\n"
    assert jobs_json(daemon, "list", "--state", "running")["jobs"] == []
    assert "too slow" in jobs(daemon, "events", job_id)


def test_what_is_not_known_is_a_dash_and_null_and_never_zero(daemon: SmallDaemon) -> None:
    job_id = jobs_json(daemon, "start", "plan-1")["job_id"]

    found = jobs_json(daemon, "show", job_id)
    assert (found["progress_fraction"], found["start_time"]) == (None, None)
    assert found["progress"] == {"samples": None, "steps": None, "loss": None}
    rows = [line.split() for line in jobs(daemon, "show", job_id).splitlines()]
    values = {row[0]: row[-1] for row in rows if row}
    assert {values[name] for name in ("progress", "samples", "steps", "loss", "ended")} == {"-"}


def test_the_list_says_when_there_is_more(daemon: SmallDaemon) -> None:
    for _ in range(3):
        jobs(daemon, "start", "plan-1")

    done = spotwright_here("jobs", "list", "--limit", "2", "--daemon", daemon.address)

    assert done.stderr == "only the 2 newest are listed; --limit shows more\n"
    assert jobs_json(daemon, "list", "--limit", "2")["more"] is True
    assert jobs_json(daemon, "list", "--limit", "5000")["more"] is False


def test_events_come_oldest_first(daemon: SmallDaemon) -> None:
    job_id = jobs_json(daemon, "start", "plan-1")["job_id"]
    advance(daemon, job_id, samples=1e5)

    found = jobs_json(daemon, "events", job_id)["events"]

    assert [(event["sequence"], event["kind"]) for event in found] == [
        (1, "job-created"),
        (2, "job-started"),
        (3, "goal-reached"),
    ]


def test_followed_events_end_with_the_job(daemon: SmallDaemon) -> None:
    job_id = jobs_json(daemon, "start", "plan-1")["job_id"]
    advance(daemon, job_id, samples=1e5)

    done = spotwright("jobs", "events", job_id, "--follow", "--json", "--daemon", daemon.address)

    assert (done.returncode, done.stderr) == (0, "")
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert kinds == ["job-created", "job-started", "goal-reached"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["start", "plan-9"], "no plan 'plan-9'"),
        (["show", "job-9"], "no job 'job-9'"),
        (["stop", "job-9"], "no job 'job-9'"),
        (["events", "job-9"], "no job 'job-9'"),
    ],
)
def test_what_is_not_there_is_bad_input(
    daemon: SmallDaemon, arguments: list[str], problem: str
) -> None:
    done = spotwright_here("jobs", *arguments, "--daemon", daemon.address)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {problem}\n"


def test_a_job_ends_once(daemon: SmallDaemon) -> None:
    job_id = jobs(daemon, "start", "plan-1").strip()
    jobs(daemon, "stop", job_id)

    done = spotwright_here("jobs", "stop", job_id, "--daemon", daemon.address)

    assert done.returncode == 2
    assert f"job {job_id} has ended (stopped)" in done.stderr


def test_no_daemon_is_told_with_its_address(daemon: SmallDaemon) -> None:
    done = spotwright_here("jobs", "list", "--daemon", "127.0.0.1:1")

    assert (done.returncode, done.stdout) == (1, "")
    assert "no daemon answers at 127.0.0.1:1 " in done.stderr


def test_the_daemon_may_be_named_by_the_environment(daemon: SmallDaemon) -> None:
    done = spotwright("jobs", "list", environment={"SPOTWRIGHT_DAEMON": daemon.address})

    assert (done.returncode, done.stderr) == (0, "")


def test_a_report_sets_the_plan_beside_what_was_measured(daemon: SmallDaemon) -> None:
    job_id = jobs_json(daemon, "start", "plan-1")["job_id"]

    unmeasured = spotwright_here("report", job_id, "--daemon", daemon.address).stdout
    assert "60.0 min" in unmeasured
    assert "$3.60" in unmeasured
    rows = [line.split() for line in unmeasured.splitlines()[2:]]
    assert {row[-1] for row in rows} == {"-"}
    advance(daemon, job_id, samples=50_000.0)
    done = spotwright_here("report", job_id, "--json", "--daemon", daemon.address)
    found = json.loads(done.stdout)
    assert found["figures"]["progress_fraction"]["measured"] == 0.5
    assert found["figures"]["duration_s"]["planned"] == 3600.0
    assert found["figures"]["elapsed_s"]["planned"] is None
    assert found["job"]["job_id"] == job_id
