"""`spotwright status`, against a daemon on loopback."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.command import spotwright_here
from tests.cli.small_daemon import SmallDaemon, busy_agent, quiet_agent
from tests.usecases.example_job_run import job_run


@pytest.fixture(scope="module")
def daemon() -> Iterator[SmallDaemon]:
    agents = [busy_agent("gpu-1", job_id="job-1"), quiet_agent("gpu-2")]
    with SmallDaemon(*agents) as daemon:
        daemon.store.add_job(job_run("job-1"), [])
        daemon.store.add_job(job_run("job-2"), [])
        yield daemon


def status_json(daemon: SmallDaemon, *arguments: str) -> Any:
    done = spotwright_here("status", *arguments, "--json", "--daemon", daemon.address)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_status_tells_services_agents_and_jobs(daemon: SmallDaemon) -> None:
    found = status_json(daemon)

    assert found["daemon"] == daemon.address
    assert found["services"] == {
        "CatalogService": "absent",
        "PlannerService": "absent",
        "JobService": "serving",
        "TelemetryService": "serving",
    }
    assert [agent["agent_id"] for agent in found["agents"]] == ["gpu-1", "gpu-2"]
    assert [job["job_id"] for job in found["jobs"]] == ["job-1", "job-2"]


def test_figures_of_a_host_are_those_of_its_gpus_taken_together(daemon: SmallDaemon) -> None:
    busy, quiet = status_json(daemon)["agents"]

    assert busy["gpu_utilization_fraction"] == pytest.approx(0.625)
    assert busy["gpu_memory_used_bytes"] == 16_000_000_000
    assert (busy["pcie_rx_mbps"], busy["pcie_tx_mbps"]) == (8000.0, 4000.0)
    assert (busy["network_rx_mbps"], busy["step_s"], busy["notice"]) == (1500.0, 0.5, "hint")
    unknown = {name: value for name, value in quiet.items() if value is None}
    assert {"gpu_utilization_fraction", "pcie_rx_mbps", "step_s", "last_seen"} <= unknown.keys()


def test_the_table_has_human_units_and_dashes_for_what_is_unknown(daemon: SmallDaemon) -> None:
    done = spotwright_here("status", "--daemon", daemon.address)

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].endswith("job serving, telemetry serving")
    (busy,) = [line for line in lines if "gpu-1" in line]
    for figure in ("62%", "16 GB", "1.00 / 0.50", "1.50 / 0.50", "500 ms", "-0.2 s", "hint"):
        assert figure in busy
    (quiet,) = [line for line in lines if line.startswith("gpu-2")]
    assert quiet.split() == ["gpu-2", "-", "-", "never", "-", "0", *"------"]


def test_status_of_one_job_tells_its_agents_only(daemon: SmallDaemon) -> None:
    found = status_json(daemon, "--job", "job-1")

    assert [agent["agent_id"] for agent in found["agents"]] == ["gpu-1"]
    assert [job["job_id"] for job in found["jobs"]] == ["job-1"]
    done = spotwright_here("status", "--job", "job-9", "--daemon", daemon.address)
    assert (done.returncode, done.stderr) == (2, "error: no job 'job-9'\n")


def test_a_daemon_without_agents_and_jobs_says_so() -> None:
    with SmallDaemon() as daemon:
        done = spotwright_here("status", "--daemon", daemon.address)

    assert "no agents" in done.stdout
    assert "no jobs under way" in done.stdout


def test_what_cannot_be_read_on_a_host_is_told_below_the_table() -> None:
    agent = quiet_agent("gpu-7")
    agent.faults.add(collector="gpu", problem="GPU 3 is lost")
    with SmallDaemon(agent) as daemon:
        done = spotwright_here("status", "--daemon", daemon.address)

    assert "gpu-7: gpu: GPU 3 is lost" in done.stdout.splitlines()


def test_a_step_that_was_the_last_for_long_has_its_age() -> None:
    agent = busy_agent("gpu-7")
    agent.latest_step.time_unix_ms = int((time.time() - 600) * 1000)
    with SmallDaemon(agent) as daemon:
        done = spotwright_here("status", "--daemon", daemon.address)

    assert "500 ms, 10.0 min ago" in done.stdout
