"""`spotwright-agent check` on this host, whatever it has."""

import json
import os
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from spotwright_agent import main as agent
from spotwright_agent.check.command import within
from tests.agent.nvml_stub import GPU_IS_LOST, NOT_SUPPORTED, StubGpus
from tests.cli.command import SPOTWRIGHT
from tests.daemon_process import running_daemon
from tests.fakes.metadata_server import metadata_server
from tests.outside_tools import require, require_tool
from tests.ports import stable_port

AGENT = Path(sys.executable).with_name("spotwright-agent")


def run_agent(
    *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    # Nobody asks a cloud, unless a test says which.
    told = os.environ | {"SPOTWRIGHT_AGENT_CLOUD": "none"} | (environment or {})
    return subprocess.run(
        [AGENT, *arguments], capture_output=True, text=True, check=False, env=told, timeout=100
    )


def checked(*flags: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    done = run_agent("check", "--json", *flags, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


@pytest.fixture
def no_gpu_here() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this host has an NVIDIA driver")


@pytest.mark.usefixtures("no_gpu_here")
def test_without_a_driver_the_json_says_why_there_are_no_gpus() -> None:
    done = run_agent("check", "--json")

    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert found["gpus"] == []
    assert "NVML" in found["gpu_problem"]


@pytest.mark.usefixtures("no_gpu_here")
def test_without_a_driver_the_text_says_why() -> None:
    done = run_agent("check")

    assert done.returncode == 0
    assert "GPU   not readable: NVML" in done.stdout


def test_interfaces_are_those_that_sysfs_backs_with_a_device() -> None:
    root = Path("/sys/class/net")
    require(root.is_dir(), "this host has no /sys/class/net")
    expected = sorted(path.name for path in root.iterdir() if (path / "device").exists())

    found = json.loads(run_agent("check", "--json").stdout)["interfaces"]

    assert [interface["name"] for interface in found] == expected
    assert "lo" not in expected


def test_text_and_json_name_the_same_interfaces() -> None:
    found = json.loads(run_agent("check", "--json").stdout)["interfaces"]

    lines = [line for line in run_agent("check").stdout.splitlines() if line.startswith("NIC")]

    assert [line.split()[1] for line in lines] == [interface["name"] for interface in found]


def test_the_version_is_that_of_the_distribution() -> None:
    assert run_agent("--version").stdout.strip() == version("spotwright")


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["check", "--frobnicate"]])
def test_bad_usage_is_exit_2_and_said_on_stderr(arguments: list[str]) -> None:
    done = run_agent(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: spotwright-agent" in done.stderr


def test_the_agent_needs_nothing_of_the_planner() -> None:
    code = "import sys, spotwright_agent.main; print(*sys.modules)"

    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)

    names = {name.split(".")[0] for name in loaded.split()}
    assert names & {"numpy", "pydantic", "yaml", "typer", "rich", "ortools", "boto3"} == set()


def test_it_can_be_called_from_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert agent.main(["check", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) >= {"gpus", "gpu_problem", "interfaces"}


@pytest.fixture
def gpus(tmp_path: Path) -> StubGpus:
    require_tool("cc")
    return StubGpus(tmp_path, count=2)


def test_each_gpu_tells_which_figures_it_has(gpus: StubGpus) -> None:
    gpus.set(gpu=1, **{"error.nvmlDeviceGetPowerUsage": NOT_SUPPORTED})

    first, second = checked(environment=gpus.environment)["gpu_figures"]

    assert "power_w" in first["readable"]
    assert "power_w" in second["not_readable"]
    assert (first["pcie_source"], second["pcie_source"]) == ("counter", "counter")


def test_gpus_without_counters_are_known_to_be_sampled(tmp_path: Path) -> None:
    require_tool("cc")
    gpus = StubGpus(tmp_path, count=8)
    gpus.set(**{"error.197": NOT_SUPPORTED, "error.198": NOT_SUPPORTED})

    found = checked(environment=gpus.environment)["gpu_figures"]

    assert [gpu["pcie_source"] for gpu in found] == ["sampled"] * 8


def test_a_gpu_that_is_lost_does_not_hide_the_other(gpus: StubGpus) -> None:
    gpus.set(gpu=1, error=GPU_IS_LOST)

    found = checked(environment=gpus.environment)
    text = run_agent("check", environment=gpus.environment).stdout

    assert [gpu["problem"] is None for gpu in found["gpus"]] == [True, False]
    assert "GPU 0  NVIDIA A100-SXM4-40GB  40.0 GiB  PCIe 4.0 x16" in text.splitlines()
    assert "GPU 1" in found["faults"]["gpu"]


def test_the_cloud_and_its_notice_are_told() -> None:
    with metadata_server("aws") as server:
        quiet = checked("--cloud", "aws", "--metadata-url", server.url)["cloud"]
        server.interrupt(seconds=120)
        warned = checked("--cloud", "aws", "--metadata-url", server.url)["cloud"]

    assert (quiet["name"], quiet["problem"], quiet["notice"]) == ("aws", None, None)
    assert quiet["instance_type"]
    assert warned["notice"]["kind"] == "interruption"


def test_a_metadata_server_that_is_absent_is_told() -> None:
    url = f"http://127.0.0.1:{stable_port()}"

    cloud = checked("--cloud", "gcp", "--metadata-url", url)["cloud"]

    assert cloud["name"] == "gcp"
    assert cloud["problem"]


def test_a_daemon_that_listens_is_told_from_one_that_does_not(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon:
        assert checked("--daemon", daemon.address)["daemon"]["problem"] is None
    away = checked("--daemon", f"127.0.0.1:{stable_port()}")["daemon"]
    assert "cannot be reached" in away["problem"]


def test_a_daemon_elsewhere_without_tls_is_refused_without_asking_it() -> None:
    found = checked("--daemon", "192.0.2.1:7443")["daemon"]

    assert "tls_dir" in found["problem"]


def test_over_tls_the_certificate_is_shown_and_its_days_are_told(tmp_path: Path) -> None:
    tls = tmp_path / "tls"
    for words in (["init", "--host", "localhost"], ["issue", "agent", "gpu-7"]):
        command = [str(SPOTWRIGHT), "certs", words[0], "--dir", str(tls), *words[1:]]
        subprocess.run(command, check=True, capture_output=True)
    with running_daemon(tmp_path / "data", "--tls-dir", str(tls)) as daemon:
        address = f"localhost:{daemon.address.rpartition(':')[2]}"
        flags = ["--daemon", address, "--tls-dir", str(tls), "--agent-id"]
        found = checked(*flags, "gpu-7")
        other = checked(*flags, "gpu-8")
        plain = checked("--daemon", address)["daemon"]

    assert found["daemon"]["problem"] is None
    assert found["certificate"]["days_left"] == pytest.approx(90, abs=1.1)
    assert "gpu-8.crt" in other["certificate"]["problem"]
    assert "gpu-8.crt" in other["daemon"]["problem"]
    assert "TLS on one side only" in plain["problem"]


def test_folders_and_the_spool_are_told(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "spool.db").write_bytes(b"x" * 1000)
    flags = ["--state-dir", str(tmp_path / "state"), "--runtime-dir", str(tmp_path / "none")]

    found = checked(*flags, "--spool-keep-free-mib", "1e12")

    assert found["folders"][str(tmp_path / "state")] is None
    assert "not there" in found["folders"][str(tmp_path / "none")]
    assert found["spool"]["used_bytes"] == 1000
    assert "nothing is spooled" in found["spool"]["problem"]


def test_rdma_ports_come_from_the_sysfs_that_is_named() -> None:
    with TemporaryDirectory() as folder:
        port = Path(folder) / "class/infiniband/rdmap0s31/ports/1/hw_counters"
        port.mkdir(parents=True)
        for name in ("tx_bytes", "rx_bytes"):
            (port / name).write_text("5\n")
        found = checked("--sysfs", folder)

    assert found["rdma_ports"] == ["rdmap0s31/ports/1"]
    assert {"rdma_rx_mbps", "rdma_tx_mbps"} <= set(found["host_figures"])


def test_settings_that_cannot_be_used_are_bad_usage() -> None:
    done = run_agent("check", "--cloud", "moon")

    assert (done.returncode, done.stdout) == (2, "")
    assert "cloud must be one of" in done.stderr


def hardware(gpus: StubGpus) -> tuple[int, dict[str, Any]]:
    done = run_agent(
        "check", "--json", "--hardware", "--seconds", "2", environment=gpus.environment
    )
    return done.returncode, json.loads(done.stdout)["hardware"]


def test_plausible_hardware_passes(gpus: StubGpus) -> None:
    code, found = hardware(gpus)

    assert (code, found["problems"]) == (0, [])
    assert found["sample_count"] == 3
    assert all("20 ms call" in note for note in found["notes"])
    assert len(found["notes"]) == 2


def test_a_pcie_counter_that_stands_still_is_found_out(gpus: StubGpus) -> None:
    gpus.set(gpu=1, pcie_rx_bytes=5, pcie_tx_bytes=5)  # while the 20 ms call sees traffic

    code, found = hardware(gpus)

    assert code == 1
    assert ["GPU 1: two ways to measure disagree" in told for told in found["problems"]] == [True]


def test_more_traffic_than_any_bus_has_is_found_out(gpus: StubGpus) -> None:
    gpus.set(gpu=0, pcie_rx_mbps=2_000_000)

    code, found = hardware(gpus)

    assert code == 1
    assert any("more than the bus has" in told for told in found["problems"])


def test_a_driver_that_is_slow_is_found_out(gpus: StubGpus) -> None:
    gpus.host(**{"delay_ms.nvmlDeviceGetUtilizationRates": 400})  # for each of two GPUs

    code, found = hardware(gpus)

    assert (code, ["the driver is slow" in told for told in found["problems"]]) == (1, [True])


@pytest.mark.usefixtures("no_gpu_here")
def test_without_gpus_the_hardware_test_fails_and_says_why() -> None:
    done = run_agent("check", "--hardware", "--seconds", "2")

    assert done.returncode == 1
    assert "PROBLEM: GPUs cannot be watched: NVML" in done.stdout


def test_a_driver_that_hangs_is_not_waited_for() -> None:
    released = threading.Event()
    try:
        with pytest.raises(TimeoutError, match="no answer within"):
            within(0.1, released.wait)
    finally:
        released.set()
    assert within(60.0, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(60.0, lambda: 1 / 0)
