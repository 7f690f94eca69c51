"""What `destroy` does: plan the end of a fleet by Terraform, ask, and apply that plan."""

from pathlib import Path

from spotwright.adapters.terraform.fleet_folder import FleetFolder
from spotwright.adapters.terraform.held_state import held_part
from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.adapters.terraform.recovering import Recovery
from spotwright.cli.apply_view import Renting, print_renting, renting_json
from spotwright.cli.approval import ask_approval
from spotwright.cli.rented import open_rented
from spotwright.cli.sources import open_catalog
from spotwright.cli.terminal import note, print_json
from spotwright.cli.terraform_run import open_terraform, telling_what_stays
from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.domain.hardware import Cloud
from spotwright.domain.rental import WantedFleet
from spotwright.usecases.rent_prices import catalog_prices


def destroy_fleet(
    path: Path,
    *,
    program: str | None,
    catalog_file: Path | None,
    auto_approve: bool,
    as_json: bool,
) -> None:
    """Give up what a folder rents, if the user wants what is shown."""
    folder = FleetFolder(path)
    if not folder.is_root:
        raise BadInputError(f"{path} is no Terraform folder; name that of the fleet with --dir")
    with folder.working() as work:
        terraform = open_terraform(folder.path, program=program, config_file=folder.config_file)
        terraform.init()
        recovery = Recovery(folder, terraform, open_rented=open_rented, say=note)
        recovery.take_in_for_destroy(_told(folder))
        before = _rented(folder, has_state=bool(terraform.resources()))
        if before is None:
            note(f"nothing is rented from {path}")
            return
        planned = terraform.plan(work.plan_file, destroy=True)
        pools = {pool.pool for pool in before.pools}
        catalog = open_catalog(Cloud.AWS, file=catalog_file)
        renting = Renting(
            before=held_part(before, {change.address for change in planned.changes}),
            after=None,
            prices=catalog_prices(pools, catalog, region=before.region),
            changes=planned.changes,
        )
        if not as_json:
            print_renting(renting)
        if not auto_approve:
            ask_approval("Give this up?")
        with telling_what_stays():
            terraform.apply(work.plan_file)
        recovery.check_all_is_given_up(before)
        folder.settle()
        folder.variables_file.unlink(missing_ok=True)
    if as_json:
        print_json(renting_json(renting))
    else:
        note(f"nothing is rented from {path} any more; {folder.variables_file.name} is gone, too")


def _told(folder: FleetFolder) -> WantedFleet | None:
    """Return what the folder's variables ask for; None: there are none."""
    if not folder.variables_file.exists():
        return None
    return read_wanted_fleet(folder.variables_file)


def _rented(folder: FleetFolder, *, has_state: bool) -> WantedFleet | None:
    """Return what a folder rents; None: nothing, and nothing is said to be."""
    told = _told(folder)
    if has_state and told is not None:
        return told
    if has_state:
        raise BadInputError(
            f"{folder.variables_file} is not there, and Terraform needs it to give up what the "
            "state holds: `spotwright plan JOB --tfvars FILE` writes one that will do"
        )
    if told is not None:
        raise OutsideWorldError(
            f"the state of {folder.path} holds nothing, so there is nothing to give up by it; if "
            "its fleet runs (`spotwright reconcile` tells), bring the state it was rented with; if "
            f"not, remove {folder.variables_file}"
        )
    return None
