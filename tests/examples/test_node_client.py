"""The Node example: built with npm as its README says, and run as a user runs it."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import grpc
import pytest

from spotwright.adapters.grpc.errors import make_status
from tests.cli.command import spotwright_here
from tests.cli.small_job import small_job, told_plan
from tests.daemon_process import running_daemon
from tests.examples.canned_daemon import CannedDaemon, infeasible, planned, serving
from tests.outside_tools import require_tool

ROOT = Path(__file__).parents[2]
NODE_CLIENT = ROOT / "examples" / "clients" / "node"
JOB = ROOT / "examples" / "resnet50.yaml"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the example out of the tree and build it there."""
    npm = require_tool("npm")
    require_tool("node")
    root = tmp_path_factory.mktemp("node")
    shutil.copytree(ROOT / "protos", root / "protos")
    folder = root / "examples" / "clients" / "node"
    left_out = shutil.ignore_patterns("node_modules", "dist", "generated")
    shutil.copytree(NODE_CLIENT, folder, ignore=left_out)
    for command in (["ci", "--prefer-offline"], ["run", "build"]):
        done = subprocess.run(
            [npm, *command], cwd=folder, capture_output=True, text=True, check=False, timeout=100
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(
    built: Path, program: str, *arguments: str | Path, token: str = ""
) -> CompletedProcess[str]:
    environment = {**os.environ, "SPOTWRIGHT_TOKEN": token}
    return subprocess.run(
        [require_tool("node"), built / "dist" / program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
    )


@pytest.fixture(scope="module")
def real_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon.address


def test_a_real_daemon_gives_the_plan_that_the_command_line_makes(
    built: Path, real_address: str, tmp_path: Path
) -> None:
    job = small_job(tmp_path)

    done = run(built, "plan.js", job, "--daemon", real_address, "--json")

    assert (done.returncode, done.stderr) == (0, "")
    told, expected = json.loads(done.stdout), told_plan(job)
    assert len(told) >= 8
    assert told == {key: expected[key] for key in told}


def test_a_real_daemon_says_what_would_make_a_plan_possible(
    built: Path, real_address: str, tmp_path: Path
) -> None:
    job = small_job(tmp_path)
    hurried = job.read_text(encoding="utf-8").replace("deadline: 60h", "deadline: 1h")
    job.write_text(hurried, encoding="utf-8")

    done = run(built, "plan.js", job, "--daemon", real_address, "--json")

    in_process = spotwright_here("plan", job, "--json")
    expected = json.loads(in_process.stdout)
    told = json.loads(done.stdout)
    assert (done.returncode, in_process.returncode) == (3, 3)
    assert told == {key: expected[key] for key in told}
    changes = [line for line in in_process.stderr.splitlines() if line.startswith("  change ")]
    assert changes
    assert [line for line in changes if line not in done.stderr.splitlines()] == []


def test_a_real_daemon_with_tls_plans_for_those_whose_token_allows_it(
    built: Path, tmp_path: Path
) -> None:
    tls_dir, job = tmp_path / "tls", small_job(tmp_path)
    assert spotwright_here("certs", "init", "--dir", tls_dir).returncode == 0
    with running_daemon(tmp_path / "daemon", "--tls-dir", str(tls_dir)) as daemon:
        tokens = {
            role: spotwright_here(
                "tokens", "create", "ada", "--role", role, "--store", daemon.store_url
            ).stdout.strip()
            for role in ("planner", "viewer")
        }
        address = daemon.address.replace("127.0.0.1", "localhost")
        flags = ("--daemon", address, "--tls-dir", tls_dir)
        planner, viewer, nobody = (
            run(built, "plan.js", job, *flags, token=token) for token in (*tokens.values(), "")
        )

    assert (planner.returncode, planner.stderr) == (0, "")
    assert (viewer.returncode, nobody.returncode) == (1, 1)
    assert "status PERMISSION_DENIED, reason NOT_ALLOWED" in viewer.stderr
    assert "status UNAUTHENTICATED, reason NOT_ALLOWED" in nobody.stderr


def test_a_real_daemon_complains_about_the_line_of_a_job_file(
    built: Path, real_address: str, tmp_path: Path
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: x\nworklaod: {}\n", encoding="utf-8")

    done = run(built, "plan.js", job, "--daemon", real_address)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{job}:2:" in done.stderr
    assert "status INVALID_ARGUMENT, reason JOB_FILE" in done.stderr


@pytest.fixture
def daemon() -> CannedDaemon:
    return CannedDaemon()


@pytest.fixture
def address(daemon: CannedDaemon) -> Iterator[str]:
    with serving(daemon) as where:
        yield where


def test_the_plan_is_printed_for_people(built: Path, address: str) -> None:
    done = run(built, "plan.js", JOB, "--daemon", address)

    assert (done.returncode, done.stderr) == (0, "")
    headline, *lines = done.stdout.splitlines()
    assert headline == (
        "resnet50: optimal, proved: no fleet that meets the goal costs less than $9.99"
    )
    figures = {line.split("  ")[0]: re.split(r" {2,}", line)[1:] for line in lines}
    assert figures["cost"] == ["$10.00", "$9.00 to $11.00"]
    assert figures["no fleet costs less than"] == ["$9.99", "gap 0.05 %"]
    assert figures["duration"] == ["11.00 h", "10.00 h to 12.00 h"]
    assert figures["P(deadline met)"] == ["97.00 %", "of interruptions alone"]
    assert figures["worker"] == ["3", "g5.xlarge", "use1-az4", "spot", "0.4021"]
    assert figures["ps"] == ["1", "m5.xlarge", "use1-az4", "on-demand", "0.1920"]
    assert "why: the deadline binds" in lines
    assert "bottleneck: ps service" in lines


def test_the_json_has_every_digit_of_what_was_told(built: Path, address: str) -> None:
    done = run(built, "plan.js", JOB, "--daemon", address, "--json")

    assert (done.returncode, done.stderr) == (0, "")
    plan = planned().plan
    told = json.loads(done.stdout)
    assert told["status"] == "optimal"
    assert told["objective"] == "cost"
    assert told["cost_usd"] == plan.cost_usd
    assert told["lower_bound_usd"] == plan.lower_bound_usd
    assert told["gap_fraction"] == 1 - plan.lower_bound_usd / plan.cost_usd
    assert told["duration_s"] == plan.prediction.duration_s.mid
    assert told["fleet"][0] == {
        "role": "worker",
        "instance_type": "g5.xlarge",
        "zone": "use1-az4",
        "market": "spot",
        "node_count": 3,
        "price_usd_per_hour": 0.4021,
    }


def test_the_daemon_gets_the_text_of_the_job_file_and_a_name_of_the_request(
    built: Path, daemon: CannedDaemon, address: str
) -> None:
    run(built, "plan.js", JOB, "--daemon", address, "--model", "large")

    (request,) = daemon.requests
    assert request.job.text == JOB.read_text(encoding="utf-8")
    assert (request.job.name, request.job.model) == (str(JOB), "large")
    assert len(request.request_id) == 36


def test_no_feasible_fleet_is_exit_3_with_the_changes_that_help(
    built: Path, daemon: CannedDaemon, address: str
) -> None:
    daemon.answer = infeasible()

    done = run(built, "plan.js", JOB, "--daemon", address, "--json")

    changes = json.loads(done.stdout)["infeasible"]["changes"]
    assert done.returncode == 3
    assert "  change goal.deadline from 1 h to 2 h\n" in done.stderr
    assert [(change["now"], change["needed"]) for change in changes] == [(3_600, 7_200), (None, 8)]


@pytest.mark.parametrize(
    ("code", "reason", "retry_after_s", "exit_code"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "JOB_FILE", None, 2),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "BUSY", 2.5, 1),
        (grpc.StatusCode.PERMISSION_DENIED, "NOT_ALLOWED", None, 1),
    ],
)
def test_an_error_is_told_with_its_reason(
    built: Path,
    daemon: CannedDaemon,
    address: str,
    code: grpc.StatusCode,
    reason: str,
    retry_after_s: float | None,
    exit_code: int,
) -> None:
    daemon.answer = make_status(code, "job.yaml:3: no", reason=reason, retry_after_s=retry_after_s)

    done = run(built, "plan.js", JOB, "--daemon", address)

    assert (done.returncode, done.stdout) == (exit_code, "")
    assert done.stderr.splitlines()[:2] == [
        "error: job.yaml:3: no",
        f"status {code.name}, reason {reason}",
    ]
    assert ("try again in 2.5 s" in done.stderr) == (retry_after_s is not None)


@pytest.mark.parametrize("arguments", [[], ["a.yaml", "b.yaml"], ["--nonsense"], ["missing.yaml"]])
def test_a_command_line_that_cannot_be_used_is_exit_2(built: Path, arguments: list[str]) -> None:
    done = run(built, "plan.js", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_nobody_at_the_address_is_exit_1(built: Path) -> None:
    done = run(built, "plan.js", JOB, "--daemon", "127.0.0.1:1")

    assert done.returncode == 1
    assert "status UNAVAILABLE" in done.stderr


def test_over_tls_the_certificate_and_the_token_are_shown(
    built: Path, daemon: CannedDaemon, tmp_path: Path
) -> None:
    made = spotwright_here("certs", "init", "--dir", tmp_path, "--host", "localhost")
    assert made.returncode == 0, made.stderr
    ca, key, certificate = (
        (tmp_path / name).read_bytes() for name in ("ca.crt", "server.key", "server.crt")
    )
    credentials = grpc.ssl_server_credentials(
        [(key, certificate)], root_certificates=ca, require_client_auth=True
    )

    with serving(daemon, credentials) as address:
        by_name = address.replace("127.0.0.1", "localhost")  # Node warns of TLS to bare addresses
        flags = ("--daemon", by_name, "--tls-dir", tmp_path)
        done = run(built, "plan.js", JOB, *flags, token="swt-secret")
        refused = run(built, "plan.js", JOB, "--daemon", address)

    assert (done.returncode, done.stderr) == (0, "")
    assert daemon.authorizations == ["Bearer swt-secret"]
    assert refused.returncode == 1


def test_agents_and_events_of_a_job_are_watched(built: Path, address: str) -> None:
    done = run(built, "watch.js", "--job", "job-1", "--daemon", address)

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        "agent gpu-7, connected, g5.xlarge, GPU 75 %, step 0.250 s, NOTICE terminate",
        "event 3 interruption-notice: gpu-7 goes in 2 min",
        "job job-1, running, 50.0 %",
    ]


def test_the_lock_file_names_no_registry_and_pins_every_package() -> None:
    lock = json.loads((NODE_CLIENT / "package-lock.json").read_text(encoding="utf-8"))
    packages = [package for name, package in lock["packages"].items() if name]

    assert packages
    assert all("resolved" not in package for package in packages)
    assert all(package["integrity"].startswith("sha512-") for package in packages)
