"""`python -m lab` as people call it."""

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lab.enclave import CannotIsolateError, check_rights
from tests.lab.laboratory_command import COMMAND, ROOT, left_behind, require_rights, run_lab

NAMES = ["asp-2-medium", "bsp-2-small", "ring-2-small"]


@pytest.mark.timeout(400)
def test_three_scenarios_are_predicted_run_and_told(tmp_path: Path) -> None:
    require_rights()

    done = run_lab(*NAMES, "--seconds", "6", "--out", str(tmp_path))

    assert done.returncode == 0, done.stderr
    predicted = json.loads((tmp_path / "predictions.json").read_text())
    with (tmp_path / "scenarios.csv").open() as file:
        measured = {row["scenario"]: float(row["measured_s"]) for row in csv.DictReader(file)}
    assert sorted(predicted) == sorted(measured) == sorted(NAMES)
    for name, seconds in measured.items():  # others may use the machine: far off is still wrong
        assert 0.5 < predicted[name]["iteration_s"]["mid"] / seconds < 2, (name, seconds)
    [heard] = [line for line in done.stdout.splitlines() if "steps at the daemon" in line]
    assert "| met" in heard
    assert (tmp_path / "scenarios.png").stat().st_size > 10_000
    assert left_behind() == []


@pytest.mark.timeout(200)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_it_nothing_is_left(tmp_path: Path, number: signal.Signals) -> None:
    require_rights()
    before = {path.name for path in Path("/proc").glob("[0-9]*")}

    with subprocess.Popen(
        [*COMMAND, "asp-2-medium", "--out", str(tmp_path)],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("profile 1"):
                break
        if number is signal.SIGINT:  # as a terminal sends it
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        process.stderr.read()
        code = process.wait(60)

    assert code == (130 if number is signal.SIGINT else -signal.SIGKILL)
    end_s = time.monotonic() + 30
    while _ours_since(before) and time.monotonic() < end_s:
        time.sleep(0.1)
    assert _ours_since(before) == []
    if number is signal.SIGINT:
        assert left_behind() == []
    else:  # nobody was there to remove its groups: the next one does
        assert run_lab("asp-1-small", "--seconds", "1", "--out", str(tmp_path)).returncode == 0
        assert left_behind() == []


def _ours_since(before: set[str]) -> list[str]:
    """Return processes of a laboratory that were not there before."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if path.name not in before and b"lab.inside" in words:
            found.append(path.name)
    return found


def test_what_nobody_knows_is_bad_usage() -> None:
    done = run_lab("asp-99")

    assert done.returncode == 2
    assert "there is no scenario 'asp-99'" in done.stderr


def test_the_list_has_every_scenario_and_experiment() -> None:
    done = run_lab("--list")

    assert done.returncode == 0
    assert "asp-8-small" in done.stdout
    assert "throughput" in done.stdout


def test_without_root_it_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(CannotIsolateError, match="sudo make lab"):
        check_rights()


def test_without_the_tools_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(CannotIsolateError, match="apt-get install iproute2 util-linux"):
        check_rights()
