"""The fleets of jobs that the daemon steers: a fleet folder for each."""

import logging
from collections.abc import Mapping
from pathlib import Path

from spotwright.adapters.terraform.driver import Terraform
from spotwright.adapters.terraform.environment import terraform_environment
from spotwright.adapters.terraform.fleet_folder import FleetFolder
from spotwright.adapters.terraform.guards import refuse_foreign_root
from spotwright.adapters.terraform.program import find_program
from spotwright.adapters.terraform.renting import apply_planned, keep_plan_id, stage

_log = logging.getLogger(__name__)


class JobFleets:
    """Folders below one, by the names of jobs."""

    def __init__(self, folder: Path, *, environment: Mapping[str, str]) -> None:
        """Keep fleets below a folder; `environment` is what Terraform and its providers read."""
        self._folder, self._environment = folder.absolute(), environment

    def write(self, job_id: str, variables: str) -> str:
        """Write the variables of a job's fleet, whole or not at all; return where.

        Raises:
            OutsideWorldError: the folder cannot be written.
        """
        folder = FleetFolder(self._folder / job_id)
        folder.make()
        folder.take_variables(variables)
        return str(folder.variables_file)

    def apply(self, job_id: str, variables: str) -> None:
        """Rent what the variables say; to do so again changes nothing.

        Raises:
            SpotwrightError: Terraform failed, perhaps half-way, or another command works there.
        """
        folder = FleetFolder(self._folder / job_id)
        with folder.working() as work:
            after = stage(variables, work)
            if folder.variables_file.exists():
                keep_plan_id(work, folder.variables_file)
            for told in folder.prepare(functions=after.functions is not None):
                _log.info("%s", told)
            terraform = self._terraform(folder)
            terraform.init()
            resources = terraform.resources()
            planned = terraform.plan(work.plan_file, variables=work.variables_file)
            refuse_foreign_root(folder.path, resources, after, planned.changes)
            apply_planned(terraform, folder, work, is_changed=planned.is_changed)

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
            if terraform.resources():
                planned = terraform.plan(work.plan_file, destroy=True)
                with folder.changing():
                    if planned.is_changed:
                        terraform.apply(work.plan_file)
            folder.variables_file.unlink(missing_ok=True)

    def _terraform(self, folder: FleetFolder) -> Terraform:
        program = find_program(None, environment=self._environment)
        environment = terraform_environment(self._environment, config_file=folder.config_file)
        return Terraform(
            folder.path, program, environment=environment, say=lambda line: _log.debug("%s", line)
        )
