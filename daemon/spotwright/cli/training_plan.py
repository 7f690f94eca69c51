"""How many of each role a plan has, and which strategy."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotwright.cli.asking import planner_in_process
from spotwright.cli.prediction_view import fleet_json
from spotwright.cli.sources import read_document
from spotwright.cli.train_flags import TrainFlags
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import Role
from spotwright.domain.plan import Objective
from spotwright.domain.questions import GoalOverride, NoFleet, PlanQuestion
from spotwright.domain.workload import Strategy

_BY_TORCHRUN = (
    "jobs that all-reduce have no parameter servers: run them by torchrun with "
    "spotwright.train.ddp, see docs/training.md"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePlan:
    """How many of what."""

    strategy: Strategy
    workers: int
    servers: int
    steps: int | None
    batch: int | None  # samples of a step of each worker, on average


def role_plan(flags: TrainFlags) -> RolePlan:
    """Return the roles that flags ask for, over those of a plan, over one of each.

    Raises:
        NoFeasibleFleetError: no fleet meets the goal of --job.
        BadInputError: the plan is not for parameter servers.
    """
    planned = _planned(flags)
    strategy = flags.strategy or (planned.strategy if planned else Strategy.ASP_PS)
    if strategy is Strategy.ALLREDUCE:
        raise BadInputError(_BY_TORCHRUN)
    # Functions train synchronously with servers on instances.
    strategy = Strategy.BSP_PS if strategy is Strategy.SERVERLESS else strategy
    return RolePlan(
        strategy=strategy,
        workers=flags.workers or (planned.workers if planned else 1),
        servers=flags.server_count or (planned.servers if planned else 1),
        steps=flags.steps or (planned.steps if planned else None),
        batch=planned.batch if planned else None,
    )


def _planned(flags: TrainFlags) -> RolePlan | None:
    if flags.plan is not None:
        return _read(flags.plan)
    return _plan_anew(flags) if flags.job is not None else None


def _read(path: Path) -> RolePlan:
    try:
        document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if document["status"] == "infeasible":
            raise BadInputError(f"--plan: {path} says that no fleet meets the goal")
        return _roles(
            document["strategy"],
            document["fleet"],
            steps=document["steps_to_goal"],
            update_batch=document.get("weighted_batch"),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            f"--plan: {path} is not what `spotwright plan --json` prints: {error!r}"
        ) from error


def _plan_anew(flags: TrainFlags) -> RolePlan:
    assert flags.job is not None
    question = PlanQuestion(goal=GoalOverride(), objective=Objective.COST, without_reasons=True)
    document = read_document(flags.job, model=flags.model)
    answer = planner_in_process(flags.catalog_file).create_plan(document, question)
    if isinstance(answer, NoFleet):
        raise answer.error
    found = answer.plan.prediction
    return _roles(
        found.strategy,
        fleet_json(found.fleet),
        steps=found.steps_to_goal,
        update_batch=found.weighted_batch,
    )


def _roles(
    strategy: str,
    fleet: Iterable[Mapping[str, Any]],
    *,
    steps: float | None,
    update_batch: float | None,
) -> RolePlan:
    counts = {Role.WORKER: 0, Role.PS: 0}
    for row in fleet:
        counts[Role(row["role"])] += int(row["node_count"])
    workers = max(1, counts[Role.WORKER])
    in_an_update = 1 if strategy == Strategy.ASP_PS else workers
    return RolePlan(
        strategy=Strategy(strategy),
        workers=workers,
        servers=max(1, counts[Role.PS]),
        steps=None if steps is None else max(1, round(steps)),
        batch=None if update_batch is None else max(1, round(update_batch / in_an_update)),
    )
