"""What a cut-off apply has left: taken into the state, or told, so that nothing is rented twice."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spotwright.adapters.terraform.held_state import HeldState, free_address
from spotwright.cli.terminal import note
from spotwright.domain.errors import (
    OutsideWorldError,
    TerraformError,
    TerraformInterruptedError,
    TerraformRefusedError,
)
from spotwright.domain.rental import GrantedFleet, UnheldRental, WantedFleet
from spotwright.usecases.find_unheld import find_unheld, still_rented

if TYPE_CHECKING:
    from spotwright.adapters.terraform.driver import Terraform
    from spotwright.adapters.terraform.fleet_folder import FleetFolder


def take_in_unheld(folder: FleetFolder, terraform: Terraform, wanted: WantedFleet | None) -> None:
    """Have the state hold what a cut-off apply made; nothing is done where none was cut off.

    Args:
        folder: where it may have been cut off.
        terraform: initialised there.
        wanted: what the folder's variables ask for: those that it was cut off with.

    Raises:
        OutsideWorldError: something is left that the state cannot hold, or AWS cannot be asked.
    """
    if wanted is None or not folder.is_cut_off:
        return
    try:
        granted = _granted(wanted)
    except OutsideWorldError as error:
        raise OutsideWorldError(
            f"an apply was cut off in {folder.path}, and what it left is not known: {error}. If "
            f"you are sure that all that runs of fleet {wanted.name!r} is in the state, remove "
            f"{folder.cut_off_file}"
        ) from error
    left = _not_taken_in(terraform, granted, wanted)
    if left:
        raise OutsideWorldError(
            f"an apply was cut off in {folder.path}, and its state cannot take in "
            f"{_told(left)}: paid for, and it would be rented twice. {_removal(left, wanted)}, "
            "then run the command again"
        )


def take_in_for_destroy(
    folder: FleetFolder, terraform: Terraform, wanted: WantedFleet | None
) -> None:
    """Have the state hold what a cut-off apply made, as far as it can.

    What it cannot hold is no reason to keep the rest: it is told now, and again at the end.
    """
    if wanted is None or not folder.is_cut_off:
        return
    try:
        left = _not_taken_in(terraform, _granted(wanted), wanted)
    except TerraformError:
        raise
    except OutsideWorldError as error:
        note(f"what an apply that was cut off here has left is not known: {error}")
        return
    if left:
        note(f"the state cannot take in {_told(left)}. {_removal(left, wanted)}")


@contextmanager
def refusing_unheld(
    folder: FleetFolder, terraform: Terraform, wanted: WantedFleet
) -> Iterator[None]:
    """Ask AWS, beside whatever is done meanwhile, for what the state does not hold.

    Raises:
        OutsideWorldError: there is something, and an apply might rent it twice.
    """
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(_unheld_of, terraform, wanted)
        yield
        found, state = asked.result()
    if found:
        raise OutsideWorldError(
            f"{_told(found)} under the name of fleet {wanted.name!r}, and the state of "
            f"{folder.path} does not hold it: this apply might rent it twice. "
            f"{_import(found, state, wanted)}{_removal(found, wanted)}; if it was rented from "
            "another folder, work there"
        )


def check_all_is_given_up(folder: FleetFolder, gone: WantedFleet) -> None:
    """Look once more, after a destroy, for what runs under the fleet's name.

    Raises:
        OutsideWorldError: something does, or that is not known after an apply was cut off.
    """
    try:
        left = still_rented(_granted(gone))
    except OutsideWorldError as error:
        if folder.is_cut_off:
            raise
        note(f"what the state held is given up; not known whether more of it runs: {error}")
        return
    if left:
        again = "Run the command again to take it in, now that its place in the state is free. "
        raise OutsideWorldError(
            f"what the state held is given up, but under the name of fleet {gone.name!r} there "
            f"still is {_told(left)}, and it is paid for. {again if folder.is_cut_off else ''}"
            f"{_removal(left, gone)}"
        )


def _granted(fleet: WantedFleet) -> GrantedFleet:
    from spotwright.adapters.aws.rented_fleets import AwsRentedFleets  # noqa: PLC0415 boto3

    rented = AwsRentedFleets(fleet.region, clock=lambda: datetime.now(UTC))
    return rented.granted(fleet.name)


def _unheld_of(
    terraform: Terraform, wanted: WantedFleet
) -> tuple[Sequence[UnheldRental], HeldState]:
    """Return what a state does not hold, as far as the credentials of here may ask."""
    state = terraform.state()
    try:
        granted = _granted(wanted)
    except OutsideWorldError as error:
        note(f"not known whether more of fleet {wanted.name!r} runs than the state holds: {error}")
        return (), state
    return find_unheld(granted, held_ids=state.ids, wanted=wanted), state


def _not_taken_in(
    terraform: Terraform, granted: GrantedFleet, wanted: WantedFleet
) -> list[UnheldRental]:
    """Import what there is a place for; return the rest."""
    left = []
    for rental in find_unheld(granted, held_ids=terraform.state().ids, wanted=wanted):
        address = free_address(rental, terraform.state(), wanted=wanted)
        if address is None or not _is_imported(terraform, rental, address):
            left.append(rental)
    return left


def _is_imported(terraform: Terraform, rental: UnheldRental, address: str) -> bool:
    note(f"an apply was cut off here and left {rental}; the state takes it in ...")
    try:
        terraform.take_in(address, rental.rental_id)
    except (TerraformInterruptedError, TerraformRefusedError):
        raise
    except TerraformError as error:
        note(f"it cannot be taken in: {error}")
        return False
    return True


def _told(rentals: Iterable[UnheldRental]) -> str:
    return ", ".join(map(str, rentals))


def _removal(rentals: Iterable[UnheldRental], wanted: WantedFleet) -> str:
    commands = " && ".join(rental.removal_command(wanted.region) for rental in rentals)
    return f"To be rid of it: `{commands}`"


def _import(rentals: Iterable[UnheldRental], state: HeldState, wanted: WantedFleet) -> str:
    """Return how to keep what the folder's own Terraform made, where there is a place for it."""
    for rental in rentals:
        address = free_address(rental, state, wanted=wanted)
        if address is not None:
            command = shlex.join(["terraform", "import", address, rental.rental_id])
            return f"If a `terraform apply` of this folder was cut off, keep it: `{command}`. "
    return ""
