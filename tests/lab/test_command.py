"""`python -m lab` as people call it."""

import os
from pathlib import Path

import pytest

from lab.enclave import CannotIsolateError, check_rights
from tests.lab.laboratory_command import run_lab


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
