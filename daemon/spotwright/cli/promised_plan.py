"""The plan that a simulation starts with, and what it promises."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotwright.cli.asking import planner_in_process
from spotwright.cli.goal_flags import read_goal_flags
from spotwright.cli.simulate_flags import SimulateFlags
from spotwright.cli.sources import OpenedJob, read_document
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import Fleet, Role
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Pool
from spotwright.domain.plan import Objective
from spotwright.domain.questions import GoalOverride, NoFleet, PlanQuestion
from spotwright.usecases.fleet_choices import FleetChoices, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """A planned fleet and its figures."""

    workers: Mapping[Pool, int]
    servers: Mapping[Pool, int]
    cost_usd: float
    duration_s: float
    deadline_probability: float | None


def plan_anew(
    path: Path, opened: OpenedJob, flags: SimulateFlags, *, catalog_file: Path | None
) -> tuple[JobSpec, Promised]:
    """Plan the job.

    Raises:
        NoFeasibleFleetError: no fleet meets the goal.
    """
    goal = _goal(flags)
    planner = planner_in_process(catalog_file)
    question = PlanQuestion(goal=goal, objective=Objective.COST, without_reasons=True)
    answer = planner.create_plan(read_document(path, model=opened.model), question)
    if isinstance(answer, NoFleet):
        raise answer.error
    plan = answer.plan
    fleet = plan.prediction.fleet
    return goal.of(opened.job), Promised(
        workers=_counts(fleet, Role.WORKER),
        servers=_counts(fleet, Role.PS),
        cost_usd=plan.cost_usd,
        duration_s=plan.prediction.duration_s.mid,
        deadline_probability=plan.deadline_probability,
    )


def read_plan(path: Path, opened: OpenedJob, flags: SimulateFlags) -> tuple[JobSpec, Promised]:
    """Read a plan as `plan --json` printed it.

    Raises:
        BadInputError: the file is no plan, or not one that can be rented.
    """
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not document["fleet"]:
            raise BadInputError(f"--plan: {path} rents nothing: it is {document['status']}")
        promised = Promised(
            workers=_pools(document["fleet"], Role.WORKER),
            servers=_pools(document["fleet"], Role.PS),
            cost_usd=float(document["cost_usd"]),
            duration_s=float(document["duration_s"]),
            deadline_probability=document["deadline_probability"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            f"--plan: {path} is not what `spotwright plan --json` prints: {error!r}"
        ) from error
    return _goal(flags).of(opened.job), promised


def require_rentable(path: Path, promised: Promised, choices: FleetChoices) -> None:
    """Raise BadInputError unless the fleet of a plan is one that the job could have."""
    anew = f"is it a plan of this job? `spotwright plan JOB --json > {path}` makes one"
    wanted, most = {**promised.workers, **promised.servers}, choices.job.limits.max_nodes
    missing = sorted(wanted.keys() - choices.offers.keys())
    if missing:
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        raise BadInputError(f"--plan: the job cannot rent {missing[0]}{more}; {anew}")
    count = sum(promised.workers.values()) + sum(promised.servers.values())
    if count > most:
        raise BadInputError(
            f"--plan: {path} has {count} nodes, and limits.max_nodes is {most}; {anew}"
        )
    if choices.of(promised.workers, promised.servers, Question()) is None:
        raise BadInputError(f"--plan: the fleet of {path} cannot run the job; {anew}")


def _goal(flags: SimulateFlags) -> GoalOverride:
    return read_goal_flags(
        deadline=flags.deadline, budget=flags.budget, confidence=None, target_loss=None
    )


def _counts(fleet: Fleet, role: Role) -> dict[Pool, int]:
    counts: Counter[Pool] = Counter()
    for group in fleet.nodes:
        if group.role is role and group.offer is not None:
            counts[group.offer.pool] += group.node_count
    return dict(counts)


def _pools(rows: list[dict[str, Any]], role: Role) -> dict[Pool, int]:
    counts: Counter[Pool] = Counter()
    for row in rows:
        if row["role"] == role:
            pool = Pool(row["instance_type"], row["zone"], Market(row["market"]))
            counts[pool] += int(row["node_count"])
    return dict(counts)
