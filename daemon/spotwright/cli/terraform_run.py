"""Terraform for a command: which program, which environment, and its output on stderr."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spotwright.adapters.terraform.driver import Terraform, data_folder
from spotwright.adapters.terraform.environment import terraform_environment
from spotwright.adapters.terraform.program import find_program
from spotwright.cli.terminal import note
from spotwright.domain.errors import (
    TerraformError,
    TerraformInterruptedError,
    TerraformRefusedError,
)

_HALF_WAY = (
    "What was done before that stays, and nodes that run are paid for: run the command again to go "
    "on from there, or `spotwright destroy` to give up all of it"
)


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


@contextmanager
def telling_what_stays() -> Iterator[None]:
    """Have an apply that fails half-way say what becomes of the half that was done."""
    try:
        yield
    except (TerraformInterruptedError, TerraformRefusedError):  # these say it themselves
        raise
    except TerraformError as error:
        raise TerraformError(f"{error}\n{_HALF_WAY}") from error
