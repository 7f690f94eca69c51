"""A job whose agents tell their steps: what is found out about it, and calibrated from it."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spotwright.client import Client
from spotwright.domain.job_run import Progress
from spotwright.domain.questions import JobDocument, PlannedFleet
from spotwright.v1 import telemetry_pb2 as v1
from tests.cli.command import printed_json, spotwright
from tests.cli.small_job import small_job
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.step_agent import StepAgent, steps_of

PATIENCE_S = 90.0
HISTORY_S = 1_500.0


@dataclass
class Measured:
    """A daemon, and a job that it follows."""

    daemon: DaemonProcess
    planned: PlannedFleet
    job_id: str

    @property
    def where(self) -> tuple[str, str]:
        return "--daemon", self.daemon.address

    @property
    def pool(self) -> Any:
        return self.planned.plan.prediction.groups[0]

    def agent(self, name: str) -> StepAgent:
        return StepAgent(
            self.daemon.address,
            name,
            job_id=self.job_id,
            instance_type=self.pool.group.instance_type.name,
        )

    def begun_long_ago(self) -> None:
        """Have the job be as old as the steps that are sent of it."""
        created = datetime.now(UTC) - timedelta(seconds=HISTORY_S + 60)
        path = self.daemon.store_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=30)) as store, store:
            store.execute("UPDATE jobs SET create_time = ?", (int(created.timestamp() * 1e6),))


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[Measured]:
    text = small_job(tmp_path).read_text(encoding="utf-8")
    with running_daemon(tmp_path) as daemon, Client(daemon.address) as client:
        planned = client.create_plan(JobDocument(text=text, name="job.yaml"))
        assert isinstance(planned, PlannedFleet)
        assert planned.plan_id is not None
        yield Measured(daemon, planned, client.create_job(planned.plan_id).job_id)


def test_a_calibrated_job_predicts_the_steps_that_were_measured(
    measured: Measured, tmp_path: Path
) -> None:
    measured.begun_long_ago()
    now, planned_s = time.time(), measured.pool.step_s
    type_name = measured.pool.group.instance_type.name
    with ExitStack() as agents:
        hosts = [agents.enter_context(measured.agent(f"gpu-{i}")) for i in range(4)]
        for host in hosts:
            host.send_steps(
                steps_of(1.40 * planned_s, start_unix_s=now - 1_400, end_unix_s=now - 800)
            )
        for host in hosts[:2]:
            host.send_steps(
                steps_of(1.35 * planned_s, start_unix_s=now - 700, end_unix_s=now - 100)
            )
    output, rows = tmp_path / "calibrated.yaml", tmp_path / "rows.csv"

    told = printed_or_noted(
        "calibrate", "--from-daemon", measured.job_id, *measured.where,
        "--output", output, "--save-rows", rows,
    )  # fmt: skip

    assert "fitting 2 rows" in told
    lines = rows.read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == [f"{type_name}*4", f"{type_name}*2"]
    for count, factor in ((4, 1.40), (2, 1.35)):
        found = printed_json("predict", output, "--fleet", f"{type_name}*{count}")
        step_s = found["groups"][0]["step_s"]
        assert step_s == pytest.approx(factor * planned_s, rel=0.03), count
    again = spotwright("calibrate", rows, "--job", output, "--output", tmp_path / "again.yaml")
    assert again.returncode == 0, again.stderr


def test_what_is_missing_to_calibrate_is_said(measured: Measured, tmp_path: Path) -> None:
    output = ("--output", tmp_path / "calibrated.yaml")

    def complaint(*arguments: str | Path) -> str:
        done = spotwright("calibrate", *arguments, *output, *measured.where)
        assert done.returncode == 2
        return done.stderr

    assert "no job 'nobody'" in complaint("--from-daemon", "nobody")
    assert "has no agents" in complaint("--from-daemon", measured.job_id)
    assert "either MEASUREMENTS.csv or --from-daemon" in complaint()
    with measured.agent("gpu-0") as agent:
        agent.send_steps([])
        assert "have sent no steps yet" in complaint("--from-daemon", measured.job_id)
        now = time.time()
        agent.send_steps(steps_of(1.0, start_unix_s=now - 30, end_unix_s=now))
        measured.begun_long_ago()
        assert "after 60 s of warm-up" in complaint("--from-daemon", measured.job_id)
    assert not output[1].exists()


def test_a_slow_term_is_an_event_a_finding_and_a_row_of_the_report(measured: Measured) -> None:
    now, terms = time.time(), measured.pool.terms
    compute_s = 2.0 * terms.compute_s
    rest_s = measured.pool.step_s - terms.compute_s
    with measured.agent("gpu-0") as agent:
        agent.send_steps(
            steps_of(
                compute_s + rest_s,
                start_unix_s=now - 250,
                end_unix_s=now,
                compute_s=compute_s,
                data_wait_s=0.0,
                communication_s=rest_s,
            )
        )
        with Client(measured.daemon.address) as client:
            (event,) = wait_for_events(client, measured.job_id, "bottleneck-found")
        assert "compute term 2.0x predicted on" in event.text
        status = printed_json("status", *measured.where)
        assert status["jobs"][0]["findings"] == [event.text]
        shown = spotwright("status", *measured.where).stdout
        assert f"{measured.job_id}: {event.text}" in shown
        report = printed_json("report", measured.job_id, *measured.where)
        (compute,) = [term for term in report["terms"] if term["term"] == "compute"]
        assert compute["is_bottleneck"]
        assert compute["measured_s"] == pytest.approx(compute_s, rel=0.01)
        assert "compute *" in spotwright("report", measured.job_id, *measured.where).stdout


def test_a_probe_is_asked_for_and_its_result_shown(measured: Measured) -> None:
    with measured.agent("gpu-0") as agent:
        agent.send_steps([])
        agent.probe_result = v1.ProbeResult(
            sent_mbps=9_800.0, received_mbps=9_700.0, round_trip_s=0.0002
        )
        done = spotwright("probe", "gpu-0", "10.0.0.2", *measured.where)
        assert done.returncode == 0, done.stderr
        assert "9.8 Gbit/s" in done.stdout
        (status,) = printed_json("status", *measured.where)["agents"]
        assert (status["latest_probe"]["peer"], status["latest_probe"]["sent_mbps"]) == (
            "10.0.0.2",
            9_800.0,
        )

        agent.probe_result = v1.ProbeResult(problem="connection refused")
        failed = spotwright("probe", "gpu-0", "10.0.0.3", *measured.where)
        assert (failed.returncode, "connection refused" in failed.stderr) == (1, True)

    facts = {"job_id": "", "instance_type": ""}
    with StepAgent(measured.daemon.address, "idle-0", **facts) as idle:
        idle.send_steps([])
        idle.probe_result = v1.ProbeResult(problem="connection refused")
        start_s = time.monotonic()
        failed = spotwright("probe", "idle-0", "10.0.0.3", "--seconds", "0.2", *measured.where)
        assert (failed.returncode, failed.stderr.splitlines()[-1]) == (
            1,
            "error: the network from idle-0 to 10.0.0.3 was not measured: connection refused",
        )
        assert time.monotonic() - start_s < 25  # it does not wait for a result that will not come
        status = printed_json("status", *measured.where)["agents"]
        told = {agent["agent_id"]: agent["failed_probe"] for agent in status}
        assert told["idle-0"]["problem"] == "connection refused"

    nobody = spotwright("probe", "gpu-9", "10.0.0.2", *measured.where)
    assert (nobody.returncode, nobody.stderr) == (2, "error: no agent 'gpu-9'\n")


def test_the_rent_of_a_job_is_told_beside_its_plan_after_a_crash_too(
    measured: Measured, tmp_path: Path
) -> None:
    offer = measured.pool.group.offer
    place = {"instance_type": offer.instance_type.name, "zone": offer.zone}
    other = "spot" if offer.market == "on-demand" else "on-demand"
    with ExitStack() as agents:
        for name, market in (("gpu-0", str(offer.market)), ("gpu-1", other)):
            facts = place | {"market": market, "instance_id": f"i-{name}"}
            agent = StepAgent(measured.daemon.address, name, job_id=measured.job_id, **facts)
            agents.enter_context(agent).send_steps([])
        with Client(measured.daemon.address) as client:
            client.report_progress(measured.job_id, Progress(samples=1.0))
        wait_for_spans(measured, 2)
    measured.daemon.kill()
    measured.daemon.start()

    page = tmp_path / "bill.html"
    told = spotwright("report", measured.job_id, "--html", page, *measured.where)
    assert told.returncode == 0, told.stderr
    assert f"{other} where {offer.market} was planned" in told.stdout
    found = wait_for_spans(measured, 2)
    planned, granted = (
        next(pool for pool in found["pools"] if pool["market"] == market)
        for market in (str(offer.market), other)
    )
    assert planned["price_usd_per_hour"] == pytest.approx(offer.price_usd_per_hour)
    assert granted["planned_market"] == str(offer.market)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def wait_for_spans(measured: Measured, count: int) -> Any:
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        found = printed_json("report", measured.job_id, *measured.where)
        if len(found["timeline"]) >= count:
            return found
        time.sleep(0.5)
    raise AssertionError(f"fewer than {count} nodes: {found['timeline']}")


def wait_for_events(client: Client, job_id: str, kind: str) -> list[Any]:
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        found = [event for event in client.list_job_events(job_id) if event.kind == kind]
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError(f"no {kind}: {client.list_job_events(job_id)}")


def printed_or_noted(*arguments: str | Path) -> str:
    done = spotwright(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
