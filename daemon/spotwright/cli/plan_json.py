"""A plan as JSON; `plan_schema.py` says what each key means."""

import math
from datetime import datetime
from typing import Any

from spotwright.cli.prediction_view import fleet_json
from spotwright.domain.errors import NoFeasibleFleetError
from spotwright.domain.plan import (
    Alternative,
    FrontierPoint,
    Objective,
    Plan,
    PlanStatus,
    PoolChange,
    Saving,
    SmallestChange,
)


def plan_json(plan: Plan, *, job_name: str) -> dict[str, Any]:
    """Return everything a plan says, its keys in a fixed order."""
    p, cost = plan.prediction, plan.cost_interval_usd
    return {
        "status": plan.status,
        "objective": plan.objective,
        "job": job_name,
        "strategy": p.strategy,
        "cost_usd": plan.cost_usd,
        "low_cost_usd": cost.low,
        "high_cost_usd": cost.high,
        "lower_bound_usd": plan.lower_bound_usd,
        "lower_bound_s": plan.lower_bound_s,
        "gap_fraction": plan.gap_fraction,
        "duration_s": p.duration_s.mid,
        "low_duration_s": p.duration_s.low,
        "high_duration_s": p.duration_s.high,
        "duration_p95_s": p.duration_p95_s,
        "steps_to_goal": p.steps_to_goal,
        "weighted_batch": p.weighted_batch,
        "deadline_probability": plan.deadline_probability,
        "overall_deadline_probability": p.overall_deadline_probability,
        "uninterrupted_probability": p.uninterrupted_probability,
        "fleet": fleet_json(p.fleet),
        "changes": [_pool_change_json(change) for change in plan.changes],
        "bottleneck": p.bottleneck,
        "why": list(plan.why),
        "savings": [_saving_json(saving) for saving in plan.savings],
        "alternatives": [_alternative_json(alternative) for alternative in plan.alternatives],
        "frontier": [_frontier_json(point) for point in plan.frontier],
        "notes": list(p.notes),
        "solve_s": plan.solve_s,
        "catalog_time": plan.catalog_time.isoformat(),
    }


def infeasible_json(
    error: NoFeasibleFleetError, *, job_name: str, objective: Objective, catalog_time: datetime
) -> dict[str, Any]:
    """Return why there is no plan, and what would make one possible."""
    return {
        "status": PlanStatus.INFEASIBLE,
        "objective": objective,
        "job": job_name,
        "infeasible": {
            "proved": error.proved,
            "limits": list(error.clashes),
            "changes": [_change_json(change) for change in error.changes],
            "together": [_change_json(change) for change in error.together],
        },
        "catalog_time": catalog_time.isoformat(),
    }


def _pool_change_json(change: PoolChange) -> dict[str, Any]:
    return {
        "role": change.role,
        "instance_type": change.pool.instance_type,
        "zone": change.pool.zone,
        "market": change.pool.market,
        "running_count": change.running_count,
        "planned_count": change.planned_count,
    }


def _saving_json(saving: Saving) -> dict[str, Any]:
    return {"limit": saving.limit, "change": saving.change, "saves_usd": saving.saves_usd}


def _alternative_json(alternative: Alternative) -> dict[str, Any]:
    p = alternative.prediction
    return {
        "label": alternative.label,
        "fleet": fleet_json(p.fleet),
        "cost_usd": alternative.cost_usd,
        "duration_s": p.duration_s.mid,
        "deadline_probability": p.deadline_probability,
        "gives_up": alternative.gives_up,
    }


def _frontier_json(point: FrontierPoint) -> dict[str, Any]:
    return {
        "deadline_s": point.deadline_s,
        "cost_usd": point.cost_usd,
        "lower_bound_usd": point.lower_bound_usd,
        "duration_s": point.prediction.duration_s.mid,
        "fleet": fleet_json(point.prediction.fleet),
    }


def _change_json(change: SmallestChange) -> dict[str, Any]:
    return {
        "limit": change.limit,
        "now": _finite(change.now),
        "needed": _finite(change.needed),
        "proved": change.proved,
        "text": change.text,
    }


def _finite(value: float) -> float | None:
    """Return None for what is not limited: JSON has no infinity."""
    return value if math.isfinite(value) else None
