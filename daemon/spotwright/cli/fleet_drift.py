"""What Terraform would change in a fleet folder, asked without touching the folder's own files."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spotwright.adapters.terraform.changes import ResourceChange
from spotwright.cli.terraform_run import open_terraform
from spotwright.domain.errors import TerraformError, TerraformInterruptedError


@dataclass(frozen=True, slots=True)
class Drift:
    """What a plan would change, or why that is not known."""

    changes: Sequence[ResourceChange] | None
    problem: str | None = None


NOT_ASKED = Drift(None)


def fleet_drift(folder: Path, *, program: str | None) -> Drift:
    """Plan in a folder; why Terraform cannot is part of the answer.

    The plan is saved elsewhere: the one that somebody is about to apply stays.
    """
    data_folder = folder / os.environ.get("TF_DATA_DIR", ".terraform")
    if not data_folder.is_dir():
        return Drift(None, f"{folder} is not initialised (`terraform init`, or `spotwright apply`)")
    with tempfile.TemporaryDirectory(prefix="spotwright-") as scratch:
        try:
            return Drift(_planned(folder.absolute(), Path(scratch), program))
        except TerraformInterruptedError:
            raise
        except TerraformError as error:
            return Drift(None, str(error))


def _planned(folder: Path, scratch: Path, program: str | None) -> Sequence[ResourceChange]:
    terraform = open_terraform(
        folder, program=program, config_file=scratch / "terraform.rc", say=lambda _: None
    )
    return terraform.plan(scratch / "plan.tfplan").changes
