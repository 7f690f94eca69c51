"""Terraform for a command: which program, which environment, and its output on stderr."""

import os
from collections.abc import Callable
from pathlib import Path

from spotwright.adapters.terraform.driver import Terraform, data_folder
from spotwright.adapters.terraform.environment import terraform_environment
from spotwright.adapters.terraform.program import find_program
from spotwright.cli.terminal import note


def is_initialised(folder: Path) -> bool:
    """Tell whether `init` was run in a folder, by whomever."""
    return data_folder(folder, os.environ).is_dir()


def open_terraform(
    folder: Path, *, program: str | None, config_file: Path, say: Callable[[str], None] = note
) -> Terraform:
    """Return Terraform in a folder, or raise TerraformError: there is none to run."""
    environment = terraform_environment(os.environ, config_file=config_file)
    found = find_program(program, environment=environment)
    return Terraform(folder, found, environment=environment, say=say)
