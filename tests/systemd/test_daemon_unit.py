"""The daemon's systemd unit, judged by systemd itself."""

import re
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cli.command import SPOTWRIGHT
from tests.outside_tools import require_tool

UNIT = Path(__file__).parents[2] / "daemon" / "systemd" / "spotwright.service"
INSTALLED = "/opt/spotwright/bin/spotwright"


def analyze(*arguments: str | Path) -> CompletedProcess[str]:
    tool = require_tool("systemd-analyze")
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Write the unit with a program that is there, which `verify` looks for."""
    text = UNIT.read_text(encoding="utf-8")
    assert text.count(INSTALLED) == 1
    copied = tmp_path / UNIT.name
    copied.write_text(text.replace(INSTALLED, str(SPOTWRIGHT)), encoding="utf-8")
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


def test_the_flags_of_the_unit_are_flags_of_serve() -> None:
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    example = next(line for line in lines if line.startswith("#   SERVE_FLAGS="))
    flags = re.findall(r"--[a-z-]+", example)
    told = subprocess.run(
        [SPOTWRIGHT, "serve", "--help"], capture_output=True, text=True, check=True
    )

    assert flags == ["--listen", "--tls-dir"]
    assert [flag for flag in flags if flag not in told.stdout] == []
