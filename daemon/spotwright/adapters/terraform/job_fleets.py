"""The fleets of jobs that the daemon steers: a fleet folder for each."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
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
from spotwright.domain.errors import SpotwrightError
from spotwright.domain.rental import WantedFleet
from spotwright.usecases.first_to_go import first_to_go
from spotwright.usecases.rental_ports import OpenRentedFleets
from spotwright.usecases.steering_ports import Applied

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

    def apply(
        self,
        job_id: str,
        variables: str,
        *,
        is_wanted: Callable[[], bool],
        going: Sequence[str] = (),
    ) -> Applied | None:
        """Rent what the variables say; first take in what an apply that was cut off has left.

        Args:
            job_id: whose fleet it is.
            variables: what it is to be.
            is_wanted: asked last, when Terraform has planned. Whoever changes the state later has
                made that plan stale, so that Terraform refuses it.
            going: nodes that end before others where a pool gets smaller, the first ones first.

        Returns:
            What it did; None: it was not wanted any more.

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
                return None
            applied = self._ended_by_name(after, going) if planned.is_changed else Applied()
            apply_planned(terraform, folder, work, is_changed=planned.is_changed)
        return applied

    def replace_nodes(self, job_id: str, node_ids: Collection[str]) -> tuple[str, ...]:
        """End nodes of a job's groups, which start others; return those that still ran.

        Raises:
            SpotwrightError: AWS failed or refused, perhaps half-way.
        """
        folder = FleetFolder(self._folder / job_id)
        if not folder.variables_file.exists():
            return ()
        fleet = read_wanted_fleet(folder.variables_file)
        rented = self._open_rented(fleet.region)
        nodes = rented.granted(fleet.name).nodes
        running = [n.instance_id for n in nodes if n.group_name and n.instance_id in node_ids]
        for instance_id in running:
            rented.end_node(instance_id, is_replaced=True)
        return tuple(running)

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

    def _ended_by_name(self, after: WantedFleet, going: Sequence[str]) -> Applied:
        """End what goes anyway where a pool gets smaller: Terraform lets AWS choose.

        Not by protecting the others from scale-in: that stays with them, and whoever lowers a count
        by hand later would pay for nodes that never end.
        """
        if not going:
            return Applied()
        ended: list[str] = []
        try:
            rented = self._open_rented(after.region)
            for instance_id in first_to_go(rented.granted(after.name), after, going):
                _log.info("%s goes anyway: it ends before %s gets smaller", instance_id, after.name)
                rented.end_node(instance_id, is_replaced=False)
                ended.append(instance_id)
        except SpotwrightError as error:  # the fleet gets smaller all the same
            return Applied(ended=tuple(ended), problem=str(error))
        return Applied(ended=tuple(ended))

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
