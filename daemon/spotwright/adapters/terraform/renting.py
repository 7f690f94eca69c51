"""The steps of renting what variables say, the same for people and for the daemon."""

from pathlib import Path

from spotwright.adapters.terraform.driver import Terraform
from spotwright.adapters.terraform.fleet_folder import FleetFolder, Work
from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.adapters.terraform.variables import under_plan_in_force
from spotwright.domain.errors import TerraformRefusedError
from spotwright.domain.rental import WantedFleet


def stage(variables: str, work: Work) -> WantedFleet:
    """Write what Terraform plans with, and return what it asks for."""
    work.variables_file.write_text(variables, encoding="utf-8")
    return read_wanted_fleet(work.variables_file)


def keep_plan_id(work: Work, in_force: Path) -> str | None:
    """Leave nodes that do not change their tag, though another plan asks for them now.

    Returns the id that they keep; None where nodes change.
    """
    fresh = work.variables_file.read_text(encoding="utf-8")
    kept = under_plan_in_force(fresh, in_force=in_force.read_text(encoding="utf-8"))
    return stage(kept, work).plan_id if kept != fresh else None


def apply_planned(
    terraform: Terraform, folder: FleetFolder, work: Work, *, is_changed: bool
) -> None:
    """Apply the plan; the folder's variables are those of what it has begun to be."""
    put_back = folder.take_variables(work.variables_file.read_text(encoding="utf-8"))
    try:
        with folder.changing():
            if is_changed:
                terraform.apply(work.plan_file)
    except TerraformRefusedError:
        put_back()
        raise
