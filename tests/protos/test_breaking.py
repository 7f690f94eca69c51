"""The gate that keeps a release's callers working, against a repository made for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    shutil.copytree(PROJECT / "protos", tmp_path / "protos")
    shutil.copy(PROJECT / "buf.yaml", tmp_path)
    _git(tmp_path, "init", "-q")
    _commit(tmp_path)
    return tmp_path


def test_without_a_release_there_is_nothing_to_break(repository: Path) -> None:
    checked = _check(repository)

    assert checked.returncode == 0
    assert "no release tag yet" in checked.stdout


def test_the_contract_of_the_last_release_still_holds(repository: Path) -> None:
    _git(repository, "tag", "v0.1.0")

    assert _check(repository).returncode == 0


def test_a_field_taken_away_since_the_last_release_is_named(repository: Path) -> None:
    _git(repository, "tag", "v0.1.0")
    file = repository / "protos" / "spotwright" / "v1" / "job.proto"
    file.write_text(file.read_text().replace("  string plan_id = 3;\n", ""))

    checked = _check(repository)

    assert checked.returncode != 0
    assert '"plan_id"' in checked.stdout + checked.stderr


def _check(repository: Path) -> subprocess.CompletedProcess[str]:
    buf = Path(sys.executable).with_name("buf")
    return subprocess.run(
        ["sh", "protos/breaking.sh"],
        check=False, cwd=repository, env=os.environ | {"BUF": str(buf)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def _commit(repository: Path) -> None:
    _git(repository, "add", ".")
    _git(
        repository,
        *("-c", "user.name=t", "-c", "user.email=t@example.org"),
        *("commit", "-qm", "protos"),
    )


def _git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repository, check=True, timeout=30)
