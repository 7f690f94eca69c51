from pathlib import Path

import pytest

from spotwright.adapters.terraform.program import Program, find_program
from spotwright.domain.errors import TerraformError


def program(folder: Path, name: str, *, says: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def version(number: str) -> str:
    return f"""echo '{{"terraform_version": "{number}", "platform": "linux_amd64"}}'"""


def test_terraform_comes_before_tofu(tmp_path: Path) -> None:
    path = program(tmp_path, "terraform", says=version("1.11.4"))
    program(tmp_path, "tofu", says=version("1.10.0"))

    found = find_program(None, environment={"PATH": str(tmp_path)})

    assert found == Program(str(path), "terraform", (1, 11, 4))


def test_tofu_is_found_where_there_is_no_terraform(tmp_path: Path) -> None:
    path = program(tmp_path, "tofu", says=version("1.10.0-rc1"))

    found = find_program(None, environment={"PATH": str(tmp_path)})

    assert found == Program(str(path), "tofu", (1, 10, 0))


def test_a_named_program_is_taken_though_the_path_has_others(tmp_path: Path) -> None:
    program(tmp_path, "terraform", says=version("1.11.4"))
    named = program(tmp_path, "my terraform", says=version("1.9.8"))

    found = find_program(str(named), environment={"PATH": str(tmp_path)})

    assert found == Program(str(named), "terraform", (1, 9, 8))


def test_without_a_program_the_error_says_where_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(TerraformError, match=r"neither terraform nor tofu .*opentofu\.org"):
        find_program(None, environment={"PATH": str(tmp_path)})


def test_a_program_that_is_too_old_is_refused_with_its_version(tmp_path: Path) -> None:
    program(tmp_path, "terraform", says=version("1.8.5"))

    with pytest.raises(TerraformError, match=r"is terraform 1\.8\.5, and the module needs 1\.9"):
        find_program(None, environment={"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    "says",
    ["echo hello", "exit 3", "echo '[]'", """echo '{"terraform_version": "new"}'""", "kill -9 $$"],
)
def test_what_is_not_terraform_is_refused(tmp_path: Path, says: str) -> None:
    named = program(tmp_path, "terraform", says=says)

    with pytest.raises(TerraformError, match=str(named)):
        find_program(str(named), environment={"PATH": "/usr/bin:/bin"})


def test_a_file_that_cannot_be_run_is_refused(tmp_path: Path) -> None:
    named = tmp_path / "terraform"
    named.write_bytes(b"\x7fELF nonsense")
    named.chmod(0o755)

    with pytest.raises(TerraformError, match=r"cannot run .*terraform: Exec format error"):
        find_program(str(named), environment={})
