"""`spotwright apply`: plan a fleet, show what would change, and rent it by Terraform."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.asking import planner_to_ask
from spotwright.cli.extras import needs_extra
from spotwright.cli.options import (
    AsJson,
    AutoApprove,
    CatalogFile,
    Daemon,
    FleetDir,
    JobFile,
    Model,
    TerraformProgram,
    TlsDir,
)
from spotwright.cli.plan_flags import (
    Budget,
    Confidence,
    Deadline,
    Existing,
    Gap,
    PlanFlags,
    PlannedFor,
    Switching,
    TargetLoss,
    TimeLimit,
)
from spotwright.cli.sources import read_document
from spotwright.domain.errors import BadInputError
from spotwright.domain.plan import Objective
from spotwright.domain.questions import PlanQuestion

_UpgradeModule = Annotated[
    bool, typer.Option("--upgrade-module", help="Replace the folder's copy of the module.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedApply:
    """What the flags ask for."""

    question: PlanQuestion
    folder: Path
    program: str | None
    auto_approve: bool
    upgrade_module: bool
    as_json: bool


def apply(
    job: JobFile,
    *,
    folder: FleetDir = Path("fleet"),
    auto_approve: AutoApprove = False,
    deadline: Deadline = None,
    target_loss: TargetLoss = None,
    budget: Budget = None,
    confidence: Confidence = None,
    objective: PlannedFor = Objective.COST,
    gap: Gap = "0.001",
    time_limit: TimeLimit = "30s",
    existing: Existing = None,
    switching: Switching = None,
    upgrade_module: _UpgradeModule = False,
    program: TerraformProgram = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Plan a fleet, show what Terraform would change and what it costs, ask, and rent it.

    The folder is made if it is not there, and is yours to edit and commit. A fleet that it rents
    already is kept unless a change pays; `--existing` names another. What you approve is applied
    and nothing else; until then the folder's variables stay as they were.

    \b
    spotwright apply job.yaml --dir fleet
    spotwright apply job.yaml --deadline 3h --auto-approve
    """
    _refuse_no_choice(objective, as_json=as_json, auto_approve=auto_approve)
    flags = PlanFlags(
        deadline=deadline,
        target_loss=target_loss,
        budget=budget,
        confidence=confidence,
        objective=objective,
        gap=gap,
        time_limit=time_limit,
        existing=existing,
        switching=switching,
    )
    asked = AskedApply(
        question=flags.question(without_reasons=True),  # apply tells none
        folder=folder,
        program=program,
        auto_approve=auto_approve,
        upgrade_module=upgrade_module,
        as_json=as_json,
    )
    document = read_document(job, model=model)
    with needs_extra("aws", "apply"):
        from spotwright.cli.applying import apply_job  # noqa: PLC0415
    with planner_to_ask(
        daemon=daemon, tls_dir=tls_dir, catalog_file=catalog_file, ctrl_c_ends_search=False
    ) as planner:
        apply_job(planner, document, asked)


def _refuse_no_choice(objective: Objective, *, as_json: bool, auto_approve: bool) -> None:
    if as_json and not auto_approve:
        raise BadInputError("--json asks nobody: it goes with --auto-approve")
    if objective is Objective.PARETO:
        raise BadInputError("--objective pareto is a choice to look at; rent by cost or by time")
