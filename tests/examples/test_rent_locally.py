"""The example that rents from a local AWS: what it shows, and when it fails."""

import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.outside_tools import require_tool
from tests.terraform_tool import require_aws_provider

ROOT = Path(__file__).parents[2]


def rent_locally(**environment: str) -> CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "examples.rent_locally"],
        cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False,
        timeout=280,
    )  # fmt: skip


def test_without_terraform_it_says_so_and_ends_well(tmp_path: Path) -> None:
    done = rent_locally(PATH=str(tmp_path))

    assert (done.returncode, done.stderr) == (0, "")
    assert "Terraform is not on the PATH, so the demo ends here without renting" in done.stdout


def test_without_the_provider_it_says_so_and_ends_well(tmp_path: Path) -> None:
    require_tool("terraform")
    only_mirror, empty = tmp_path / "terraform.rc", tmp_path / "empty"
    empty.mkdir()
    only_mirror.write_text(f'provider_installation {{ filesystem_mirror {{ path = "{empty}" }} }}')

    done = rent_locally(TF_CLI_CONFIG_FILE=str(only_mirror))

    assert done.returncode == 0
    assert "AWS provider is not here, so the demo ends here without renting" in done.stdout
    assert "set TF_PLUGIN_DIR to a mirror" in done.stderr  # what `apply` says is shown


def test_a_terraform_that_fails_is_a_failure(tmp_path: Path) -> None:
    broken = tmp_path / "terraform"
    broken.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    broken.chmod(0o755)

    done = rent_locally(PATH=f"{tmp_path}:{os.environ['PATH']}")

    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "describe-instances" not in done.stdout


@pytest.mark.timeout(300)
def test_a_fleet_is_rented_shown_and_given_up() -> None:
    require_aws_provider()

    done = rent_locally()

    assert done.returncode == 0, done.stderr
    assert re.findall(r"^(\d+) x g\S+ in us-east-1\w$", done.stdout, re.MULTILINE) == ["11"]
    assert done.stdout.endswith("\nnone\n")
