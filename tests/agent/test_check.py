"""`spotwright-agent check` on this host, whatever it has."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from spotwright_agent import main as agent
from tests.outside_tools import require

AGENT = Path(sys.executable).with_name("spotwright-agent")


def run_agent(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([AGENT, *arguments], capture_output=True, text=True, check=False)


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
