"""What a cut-off apply has left: taken into the state, or told, so that nothing is rented twice."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from spotwright.adapters.terraform.driver import Terraform
from spotwright.adapters.terraform.fleet_folder import FleetFolder
from spotwright.adapters.terraform.held_state import HeldState, free_address
from spotwright.domain.errors import (
    BadInputError,
    CredentialsError,
    OutsideWorldError,
    TerraformError,
    TerraformInterruptedError,
    TerraformRefusedError,
)
from spotwright.domain.rental import GrantedFleet, UnheldRental, WantedFleet
from spotwright.usecases.find_unheld import find_unheld, still_rented
from spotwright.usecases.rental_ports import OpenRentedFleets


class Recovery:
    """Holds what runs under a fleet's name against the state of its folder."""

    def __init__(
        self,
        folder: FleetFolder,
        terraform: Terraform,
        *,
        open_rented: OpenRentedFleets,
        say: Callable[[str], None],
        is_attended: bool = True,
    ) -> None:
        """Look after one folder.

        Args:
            folder: where an apply may have been cut off.
            terraform: initialised there.
            open_rented: asks the cloud.
            say: told what is found on the way.
            is_attended: somebody hears it and may go on where the cloud cannot be asked what runs;
                else nothing is rented then.
        """
        self._folder, self._terraform = folder, terraform
        self._open_rented, self._say = open_rented, say
        self._is_attended = is_attended

    def take_in_unheld(self, wanted: WantedFleet | None) -> None:
        """Have the state hold what a cut-off apply made; nothing is done where none was cut off.

        Args:
            wanted: what the folder's variables ask for: those that it was cut off with.

        Raises:
            OutsideWorldError: something is left that the state cannot hold, or AWS cannot be asked.
        """
        if wanted is None or not self._folder.is_cut_off:
            return
        where = f"an apply was cut off in {self._folder.path}"
        try:
            granted = self._granted(wanted)
        except OutsideWorldError as error:
            raise OutsideWorldError(
                f"{where}, and what it left is not known: {error}. If you are sure that all that "
                f"runs of fleet {wanted.name!r} is in the state, remove {self._folder.cut_off_file}"
            ) from error
        left = self._not_taken_in(granted, wanted)
        if left:
            raise OutsideWorldError(
                f"{where}, and its state cannot take in {_told(left)}: paid for, and it would be "
                f"rented twice. {_removal(left, wanted)}, then run the command again"
            )

    def take_in_for_destroy(self, wanted: WantedFleet | None) -> None:
        """Have the state hold what a cut-off apply made, as far as it can.

        What it cannot hold is no reason to keep the rest: it is told now, and again at the end.
        """
        if wanted is None or not self._folder.is_cut_off:
            return
        try:
            left = self._not_taken_in(self._granted(wanted), wanted)
        except TerraformError:
            raise
        except OutsideWorldError as error:
            self._say(f"what an apply that was cut off here has left is not known: {error}")
            return
        if left:
            self._say(f"the state cannot take in {_told(left)}. {_removal(left, wanted)}")

    def refuse_running(self, fleet: WantedFleet, *, way_out: str) -> None:
        """Refuse to rent, from a state that holds nothing, a fleet that runs already.

        Raises:
            BadInputError: it does; the message ends with the way out.
            OutsideWorldError: AWS cannot be asked.
        """
        try:
            granted = self._granted(fleet)
        except CredentialsError as error:
            # The folder's provider block may name others, with which Terraform goes on.
            if not self._is_attended:
                raise
            self._say(f"not known whether a fleet {fleet.name!r} runs already: {error}")
            return
        if still_rented(granted):
            count = len(granted.nodes)
            what = f"{count} node{'' if count == 1 else 's'}" if count else "groups without nodes"
            raise BadInputError(
                f"{what} of a fleet {fleet.name!r} run in {fleet.region} already, and not from "
                f"{self._folder.path}: {way_out}"
            )

    @contextmanager
    def refusing_unheld(self, wanted: WantedFleet) -> Iterator[None]:
        """Ask AWS, beside whatever is done meanwhile, for what the state does not hold.

        Raises:
            OutsideWorldError: there is something, and an apply might rent it twice.
        """
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(self._unheld_of, wanted)
            yield
            found, state = asked.result()
        if found:
            raise OutsideWorldError(
                f"{_told(found)} under the name of fleet {wanted.name!r}, and the state of "
                f"{self._folder.path} does not hold it: this apply might rent it twice. "
                f"{_import(found, state, wanted)}{_removal(found, wanted)}; if it was rented from "
                "another folder, work there"
            )

    def check_all_is_given_up(self, gone: WantedFleet) -> None:
        """Look once more, after a destroy, for what runs under the fleet's name.

        Raises:
            OutsideWorldError: something does, or that is not known after an apply was cut off.
        """
        is_cut_off = self._folder.is_cut_off
        try:
            left = still_rented(self._granted(gone))
        except OutsideWorldError as error:
            if is_cut_off:
                raise
            self._say(f"what the state held is given up; not known whether more runs: {error}")
            return
        if left:
            again = "Run the command again to take it in, now that its place in the state is free. "
            raise OutsideWorldError(
                f"what the state held is given up, but under the name of fleet {gone.name!r} there "
                f"still is {_told(left)}, and it is paid for. {again if is_cut_off else ''}"
                f"{_removal(left, gone)}"
            )

    def _granted(self, fleet: WantedFleet) -> GrantedFleet:
        return self._open_rented(fleet.region).granted(fleet.name)

    def _unheld_of(self, wanted: WantedFleet) -> tuple[Sequence[UnheldRental], HeldState]:
        """Return what a state does not hold, as far as the credentials of here may ask."""
        state = self._terraform.state()
        try:
            granted = self._granted(wanted)
        except OutsideWorldError as error:
            if not self._is_attended:
                raise
            self._say(
                f"not known whether more of fleet {wanted.name!r} runs than the state holds: "
                f"{error}"
            )
            return (), state
        return find_unheld(granted, held_ids=state.ids, wanted=wanted), state

    def _not_taken_in(self, granted: GrantedFleet, wanted: WantedFleet) -> list[UnheldRental]:
        """Import what there is a place for; return the rest."""
        left = []
        held_ids = self._terraform.state().ids
        for rental in find_unheld(granted, held_ids=held_ids, wanted=wanted):
            address = free_address(rental, self._terraform.state(), wanted=wanted)
            if address is None or not self._is_imported(rental, address):
                left.append(rental)
        return left

    def _is_imported(self, rental: UnheldRental, address: str) -> bool:
        self._say(f"an apply was cut off here and left {rental}; the state takes it in ...")
        try:
            self._terraform.take_in(address, rental.rental_id)
        except (TerraformInterruptedError, TerraformRefusedError):
            raise
        except TerraformError as error:
            self._say(f"it cannot be taken in: {error}")
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
