"""The agent's systemd unit and what belongs to it, judged by systemd itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.outside_tools import require, require_tool

FOLDER = Path(__file__).parents[2] / "agent" / "systemd"
UNIT = FOLDER / "spotwright-agent.service"
DROP_IN = FOLDER / "signal-training.conf"
INSTALLED = "/opt/spotwright/bin/spotwright-agent"
AGENT = Path(sys.executable).with_name("spotwright-agent")


def analyze(*arguments: str | Path) -> CompletedProcess[str]:
    tool = require_tool("systemd-analyze")
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(params=["as shipped", "with signals to training"])
def unit(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Write the unit with a program that is there, which `verify` looks for."""
    text = UNIT.read_text(encoding="utf-8")
    assert text.count(INSTALLED) == 1
    copied = tmp_path / UNIT.name
    copied.write_text(text.replace(INSTALLED, str(AGENT)), encoding="utf-8")
    if request.param != "as shipped":
        drop_ins = tmp_path / f"{UNIT.name}.d"
        drop_ins.mkdir()
        (drop_ins / DROP_IN.name).write_text(DROP_IN.read_text(encoding="utf-8"), encoding="utf-8")
    return copied


def test_systemd_has_nothing_to_say_against_the_unit(unit: Path) -> None:
    done = analyze("verify", unit)

    # An unknown key is only a line of output, with exit code 0.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_key_that_systemd_does_not_know_would_be_noticed(unit: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    unit.write_text(text.replace("[Service]\n", "[Service]\nNonsense=yes\n"), encoding="utf-8")

    assert "Nonsense" in analyze("verify", unit).stderr


def test_the_unit_is_exposed_to_little(unit: Path) -> None:
    done = analyze("security", "--offline=true", "--threshold=20", unit)

    assert done.returncode == 0, done.stdout


def test_signals_to_training_need_the_drop_in(unit: Path) -> None:
    told = analyze("security", "--offline=true", "--no-pager", unit).stdout
    line = next(line for line in told.splitlines() if "CapabilityBoundingSet=~CAP_KILL" in line)

    has_drop_in = (unit.parent / f"{unit.name}.d").exists()
    assert line.startswith("✗" if has_drop_in else "✓")


def _settings() -> Iterator[tuple[str, str]]:
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            yield name, value


def test_the_agent_keeps_what_it_must_see() -> None:
    unit = list(_settings())

    # Hides the GPUs; hides /proc/stat, meminfo and diskstats; hides the network.
    hiding = {("PrivateDevices", "yes"), ("ProcSubset", "pid"), ("PrivateNetwork", "yes")}
    assert hiding.isdisjoint(unit)
    # Either hides the training socket from other users or deletes it under containers.
    assert {"RuntimeDirectory", "RuntimeDirectoryPreserve"}.isdisjoint(name for name, _ in unit)


def test_the_user_and_the_folder_of_the_unit_are_made(tmp_path: Path) -> None:
    require(os.geteuid() == 0, "only root may give files away")
    (tmp_path / "etc").mkdir()
    for tool, kind in (("systemd-sysusers", "sysusers"), ("systemd-tmpfiles", "tmpfiles")):
        create = ["--create"] if kind == "tmpfiles" else []
        subprocess.run(
            [require_tool(tool), f"--root={tmp_path}", *create, FOLDER / f"{kind}.conf"],
            check=True, capture_output=True,
        )  # fmt: skip

    user, _, uid, *_ = (tmp_path / "etc/passwd").read_text(encoding="ascii").split(":")
    folder = (tmp_path / "run/spotwright-agent").stat()
    assert user == dict(_settings())["User"]
    assert (folder.st_uid, folder.st_mode & 0o777) == (int(uid), 0o755)
