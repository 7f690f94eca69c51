"""The fleets of jobs that the daemon steers: a fleet folder for each."""

import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

from spotwright.adapters.terraform.driver import Terraform
from spotwright.adapters.terraform.environment import terraform_environment
from spotwright.adapters.terraform.fleet_folder import FleetFolder
from spotwright.adapters.terraform.guards import refuse_foreign_root, refuse_other_fleet
from spotwright.adapters.terraform.program import find_program
from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.adapters.terraform.recovering import Recovery
from spotwright.adapters.terraform.renting import apply_planned, keep_plan_id, stage
from spotwright.usecases.rental_ports import OpenRentedFleets

_log = logging.getLogger(__name__)

_WAY_OUT = (
    "replicas share one --fleets DIR (docs/operations.md); where another job has that name, "
    "destroy its fleet first, or give this job another name"
)


class JobFleets:
    """Folders below one, by the names of jobs."""

    def __init__(
        self, folder: Path, *, environment: Mapping[str, str], open_rented: OpenRentedFleets
    ) -> None:
        """Keep fleets below a folder.

        Args:
            folder: the same one for all replicas: it holds the states.
            environment: what Terraform and its providers read.
            open_rented: asks the cloud what runs already.
        """
        self._folder, self._environment = folder.absolute(), environment
        self._open_rented = open_rented

    def write(self, job_id: str, variables: str) -> str:
        """Write the variables of a job's fleet, whole or not at all; return where.

        Raises:
            OutsideWorldError: the folder cannot be written.
        """
        folder = FleetFolder(self._folder / job_id)
        folder.make()
        folder.take_variables(variables)
        return str(folder.variables_file)

    def apply(self, job_id: str, variables: str, *, is_wanted: Callable[[], bool]) -> bool:
        """Rent what the variables say; first take in what an apply that was cut off has left.

        Args:
            job_id: whose fleet it is.
            variables: what it is to be.
            is_wanted: asked last, when Terraform has planned. Whoever changes the state later has
                made that plan stale, so that Terraform refuses it.

        Returns:
            Whether it was done; False: it was not wanted any more.

        Raises:
            SpotwrightError: Terraform failed, perhaps half-way, another command works there, or
                nodes run under the fleet's name that this folder does not know.
        """
        folder = FleetFolder(self._folder / job_id)
        with folder.working() as work:
            after, last = stage(variables, work), None
            if folder.variables_file.exists():
                last = read_wanted_fleet(folder.variables_file)
                keep_plan_id(work, folder.variables_file)
            for told in folder.prepare(functions=after.functions is not None):
                _log.info("%s", told)
            terraform = self._terraform(folder)
            terraform.init()
            recovery = self._recovery(folder, terraform)
            recovery.take_in_unheld(last or after)
            resources = terraform.resources()
            refuse_other_fleet(folder.path, last, last if resources else None, after)
            if not resources:
                recovery.refuse_running(after, way_out=_WAY_OUT)
            with recovery.refusing_unheld(last or after) if resources else nullcontext():
                planned = terraform.plan(work.plan_file, variables=work.variables_file)
            refuse_foreign_root(folder.path, resources, after, planned.changes)
            if not is_wanted():
                return False
            apply_planned(terraform, folder, work, is_changed=planned.is_changed)
        return True

    def give_back(self, job_id: str) -> None:
        """Give back all that the state of a job's folder holds; to do so again changes nothing.

        Raises:
            SpotwrightError: Terraform failed, perhaps half-way, or another command works there.
        """
        folder = FleetFolder(self._folder / job_id)
        if not folder.is_root:
            return  # nothing was ever rented
        with folder.working() as work:
            terraform = self._terraform(folder)
            terraform.init()
            if folder.variables_file.exists():
                last = read_wanted_fleet(folder.variables_file)
                self._recovery(folder, terraform).take_in_unheld(last)
            if terraform.resources():
                planned = terraform.plan(work.plan_file, destroy=True)
                with folder.changing():
                    if planned.is_changed:
                        terraform.apply(work.plan_file)
            folder.variables_file.unlink(missing_ok=True)

    def _recovery(self, folder: FleetFolder, terraform: Terraform) -> Recovery:
        return Recovery(
            folder,
            terraform,
            open_rented=self._open_rented,
            say=lambda line: _log.warning("%s", line),
            is_attended=False,
        )

    def _terraform(self, folder: FleetFolder) -> Terraform:
        program = find_program(None, environment=self._environment)
        environment = terraform_environment(self._environment, config_file=folder.config_file)
        return Terraform(
            folder.path, program, environment=environment, say=lambda line: _log.debug("%s", line)
        )
