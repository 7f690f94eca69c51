"""What `apply` does: plan the fleet, plan by Terraform, ask, and apply that plan."""

import shlex
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from spotwright.adapters.terraform.changes import Action, ResourceChange
from spotwright.adapters.terraform.driver import Terraform
from spotwright.adapters.terraform.fleet_folder import FleetFolder
from spotwright.adapters.terraform.guards import refuse_foreign_root, refuse_other_fleet
from spotwright.adapters.terraform.held_state import held_part
from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.adapters.terraform.recovering import Recovery
from spotwright.adapters.terraform.renting import apply_planned, keep_plan_id, stage
from spotwright.cli.apply import AskedApply
from spotwright.cli.apply_view import Renting, print_renting, renting_json
from spotwright.cli.approval import ask_approval
from spotwright.cli.fleet_text import rented_text
from spotwright.cli.planning import infeasible_answer_json, tell_early_end
from spotwright.cli.rented import open_rented
from spotwright.cli.terminal import note, print_json
from spotwright.cli.terraform_run import open_terraform, telling_what_stays
from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.domain.hardware import Cloud
from spotwright.domain.questions import JobDocument, NoFleet, PlannedFleet
from spotwright.domain.rental import WantedFleet
from spotwright.usecases.planner_port import Planner
from spotwright.usecases.rent_prices import catalog_prices

_WAY_OUT = "use the folder and the state that they were rented with, or give the job another name"
_GROUP = "aws_autoscaling_group"


def apply_job(planner: Planner, job: JobDocument, asked: AskedApply) -> None:
    """Plan a job's fleet and rent it, if the user wants what is shown."""
    folder = FleetFolder(asked.folder)
    with folder.working() as work:
        terraform = open_terraform(
            folder.path, program=asked.program, config_file=folder.config_file
        )
        if folder.is_root:
            terraform.init()
        last = read_wanted_fleet(folder.variables_file) if folder.variables_file.exists() else None
        recovery = Recovery(folder, terraform, open_rented=open_rented, say=note)
        recovery.take_in_unheld(last)
        with ThreadPoolExecutor(1) as beside:  # the two take about as long
            state = beside.submit(terraform.resources) if folder.is_root else None
            answer = _planned(planner, job, asked, last)
            resources = state.result() if state else ()
        before = _rented(last, resources, asked.folder)
        if before != last:  # not all that the file says is there
            answer = _planned(planner, job, asked, before)
        after = stage(planner.render_tfvars(answer.plan_id), work)
        refuse_other_fleet(asked.folder, last, before, after)
        kept = keep_plan_id(work, folder.variables_file) if before is not None else None
        if kept:
            note(f"the same nodes as before: they stay tagged with plan {kept}")
        _prepare(folder, after, asked)
        _init(terraform, recovery, after, is_new=not resources)
        note("Terraform looks at what there is ...")
        with (
            ThreadPoolExecutor(1) as beside,
            recovery.refusing_unheld(last or after) if resources else nullcontext(),
        ):
            groups = beside.submit(_group_counts, before) if before else None
            planned = terraform.plan(work.plan_file, variables=work.variables_file)
        refuse_foreign_root(asked.folder, resources, after, planned.changes)
        if before is not None and groups is not None:
            before = held_part(before, set(resources).difference(planned.gone))
            before = _as_it_runs(before, planned.changes, groups)
        pools = {p.pool for fleet in (before, after) if fleet is not None for p in fleet.pools}
        renting = Renting(
            before=before,
            after=after,
            prices=catalog_prices(pools, planner.catalog(Cloud.AWS), region=after.region),
            changes=planned.changes,
            gone=planned.gone,
        )
        if not asked.as_json:
            print_renting(renting)
        if planned.changes and not asked.auto_approve:
            note(f"`{terraform.show_command(work.plan_file)}` tells every attribute")
            ask_approval("Rent this?")
        with telling_what_stays():
            apply_planned(terraform, folder, work, is_changed=planned.is_changed)
    if asked.as_json:
        print_json(renting_json(renting))
    elif planned.changes:
        where = shlex.quote(str(asked.folder))
        note(f"done; `spotwright reconcile --dir {where}` tells what AWS has granted")


def _rented(
    last: WantedFleet | None, resources: Collection[str], folder: Path
) -> WantedFleet | None:
    """Return what of the folder's variables is in its state; None: nothing."""
    if last is None:
        if resources:
            note(f"{folder} rents something, and its variables are not there to tell how much")
        return None
    held = held_part(last, resources)
    if held.pools or (resources and last.functions is not None):
        return held
    note(f"the state of {folder} has no nodes of {last.name}, so all are rented anew")
    return None


def _group_counts(fleet: WantedFleet) -> dict[str | None, int]:
    """Return how many nodes each group was told to run, by the key of its pool."""
    granted = open_rented(fleet.region).granted(fleet.name)
    return {group.pool_key: group.desired_count for group in granted.groups}


def _as_it_runs(
    before: WantedFleet,
    changes: Sequence[ResourceChange],
    groups: Future[dict[str | None, int]],
) -> WantedFleet:
    """Return a fleet with as many nodes as its groups were told to run, by whomever.

    Only groups that Terraform is about to change can have another number than the variables say.
    """
    changed = {c.key for c in changes if c.kind == _GROUP and c.action is Action.UPDATE}
    if not changed:
        return before
    try:
        counts = groups.result()
    except OutsideWorldError as error:
        note(f"not known how many nodes of fleet {before.name!r} run: {error}")
        return before
    pools = [
        replace(p, node_count=counts.get(p.key, p.node_count)) if p.key in changed else p
        for p in before.pools
    ]
    return replace(before, pools=tuple(pools))


def _planned(
    planner: Planner, job: JobDocument, asked: AskedApply, before: WantedFleet | None
) -> PlannedFleet:
    """Plan, and keep of what the folder rents whatever a change would not pay for."""
    question = asked.question
    answer: PlannedFleet | NoFleet | None = None
    if question.existing_fleet is None and before is not None and before.functions is None:
        try:
            answer = planner.create_plan(job, replace(question, existing_fleet=rented_text(before)))
        except BadInputError as error:
            # A pool that is no longer offered, or that the job's limits now forbid.
            note(f"what {asked.folder} rents cannot all be kept, so none of it is: {error}")
    answer = answer or planner.create_plan(job, question)
    if isinstance(answer, NoFleet):
        if asked.as_json:
            print_json(infeasible_answer_json(answer))
        raise answer.error
    tell_early_end(answer)
    return answer


def _prepare(folder: FleetFolder, fleet: WantedFleet, asked: AskedApply) -> None:
    if asked.upgrade_module:
        folder.replace_module()
    for told in folder.prepare(functions=fleet.functions is not None):
        note(told)


def _init(terraform: Terraform, recovery: Recovery, fleet: WantedFleet, *, is_new: bool) -> None:
    """Initialise, and meanwhile ask AWS whether a new fleet is one that runs already."""
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(recovery.refuse_running, fleet, way_out=_WAY_OUT) if is_new else None
        terraform.init()
        if asked is not None:
            asked.result()
