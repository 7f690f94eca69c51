"""Terraform as a command opens it, and as `reconcile` looks through it."""

from pathlib import Path

import pytest

from spotwright.cli.fleet_drift import fleet_drift
from spotwright.cli.terraform_run import open_terraform

# Says its version only if it need not ask whether there is a newer one, and notes what it is told.
STUB = """#!/bin/sh
[ "$CHECKPOINT_DISABLE" = 1 ] || exit 1
[ "$1" = version ] && echo '{"terraform_version": "1.11.4"}' && exit
echo "$@" >> "$PWD/told"
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "terraform"
    path.write_text(STUB, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_program_is_asked_for_its_version_in_the_quiet_environment(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHECKPOINT_DISABLE", raising=False)

    terraform = open_terraform(tmp_path, program=program, config_file=tmp_path / "rc")

    assert terraform.show_command(tmp_path / "plan").startswith(program)


def test_drift_is_asked_for_without_the_lock_of_the_state(tmp_path: Path, program: str) -> None:
    folder = tmp_path / "fleet"
    (folder / ".terraform").mkdir(parents=True)

    drift = fleet_drift(folder, program=program)

    assert (drift.changes, drift.problem) == ((), None)
    assert "-lock=false" in (folder / "told").read_text().split()


@pytest.mark.parametrize("data_folder", [None, "elsewhere"])
def test_a_folder_is_initialised_where_terraform_keeps_its_data(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch, data_folder: str | None
) -> None:
    monkeypatch.delenv("TF_DATA_DIR", raising=False)
    if data_folder is not None:
        monkeypatch.setenv("TF_DATA_DIR", data_folder)
        (tmp_path / ".terraform").mkdir()
    before = fleet_drift(tmp_path, program=program)
    (tmp_path / (data_folder or ".terraform")).mkdir()

    after = fleet_drift(tmp_path, program=program)

    assert before.problem is not None
    assert "is not initialised" in before.problem
    assert after.problem is None
