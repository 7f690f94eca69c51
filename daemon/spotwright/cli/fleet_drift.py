"""What Terraform would change in a fleet folder: a plan that is looked at and thrown away."""

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from spotwright.adapters.terraform.changes import ResourceChange
from spotwright.cli.terraform_run import is_initialised, open_terraform
from spotwright.domain.errors import TerraformError, TerraformInterruptedError


@dataclass(frozen=True, slots=True)
class Drift:
    """What a plan would change, or why that is not known."""

    changes: Sequence[ResourceChange] | None
    problem: str | None = None
    held_ids: Collection[str] | None = None  # of what the state holds; None: not known


NOT_ASKED = Drift(None)


def fleet_drift(folder: Path, *, program: str | None) -> Drift:
    """Plan in a folder; why Terraform cannot is part of the answer.

    Nothing is to be applied, so the state is not locked: an apply that begins meanwhile is not
    kept waiting, and one at work does not keep this one from looking. The plan is saved elsewhere.
    """
    if not is_initialised(folder):
        return Drift(None, f"{folder} is not initialised (`terraform init`, or `spotwright apply`)")
    with tempfile.TemporaryDirectory(prefix="spotwright-") as scratch:
        try:
            return _drift(folder, Path(scratch), program)
        except TerraformInterruptedError:
            raise
        except TerraformError as error:
            return Drift(None, str(error))


def _drift(folder: Path, scratch: Path, program: str | None) -> Drift:
    terraform = open_terraform(
        folder.absolute(), program=program, config_file=scratch / "terraform.rc", say=lambda _: None
    )
    held_ids = terraform.state().ids
    planned = terraform.plan(scratch / "plan.tfplan", lock=False)
    return Drift(planned.changes, held_ids=held_ids)
