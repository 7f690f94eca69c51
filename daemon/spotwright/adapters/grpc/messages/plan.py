"""Plans, to and from planner.proto."""

import math

from spotwright.adapters.grpc.messages.catalog import MARKETS
from spotwright.adapters.grpc.messages.enums import EnumPairs
from spotwright.adapters.grpc.messages.fleet import ROLES
from spotwright.adapters.grpc.messages.job_document import OBJECTIVES
from spotwright.adapters.grpc.messages.prediction import prediction_from_proto, prediction_to_proto
from spotwright.adapters.grpc.messages.scalars import (
    by_name,
    optional,
    time_from_proto,
    time_to_proto,
)
from spotwright.domain.errors import NoFeasibleFleetError
from spotwright.domain.job import Target, TargetKind
from spotwright.domain.offer import Pool
from spotwright.domain.plan import (
    Alternative,
    FrontierPoint,
    Plan,
    PlanStatus,
    PoolChange,
    Saving,
    SmallestChange,
)
from spotwright.domain.questions import NoFleet, PlannedFleet, PlanSummary, Rival
from spotwright.v1 import planner_pb2 as pb

STATUSES = EnumPairs(
    "plan status",
    {
        PlanStatus.OPTIMAL: pb.PLAN_STATUS_OPTIMAL,
        PlanStatus.FEASIBLE: pb.PLAN_STATUS_FEASIBLE,
    },
)
TARGET_KINDS = EnumPairs(
    "target",
    {
        TargetKind.LOSS: pb.TARGET_KIND_LOSS,
        TargetKind.SAMPLES: pb.TARGET_KIND_SAMPLES,
        TargetKind.STEPS: pb.TARGET_KIND_STEPS,
        TargetKind.EPOCHS: pb.TARGET_KIND_EPOCHS,
        TargetKind.TOKENS: pb.TARGET_KIND_TOKENS,
    },
)


def planned_to_proto(planned: PlannedFleet) -> pb.Plan:
    """Return a plan as a message."""
    plan = planned.plan
    return pb.Plan(
        plan_id=planned.plan_id,
        create_time=time_to_proto(planned.create_time) if planned.create_time else None,
        job_name=planned.job_name,
        status=STATUSES.to_proto(plan.status),
        objective=OBJECTIVES.to_proto(plan.objective),
        prediction=prediction_to_proto(plan.prediction),
        cost_usd=plan.cost_usd,
        lower_bound_usd=plan.lower_bound_usd,
        lower_bound_s=plan.lower_bound_s,
        deadline_probability=plan.deadline_probability,
        why=plan.why,
        savings=[saving_to_proto(saving) for saving in plan.savings],
        alternatives=[alternative_to_proto(other) for other in plan.alternatives],
        frontier=[point_to_proto(point) for point in plan.frontier],
        changes=[pool_change_to_proto(change) for change in plan.changes],
        solve_s=plan.solve_s,
        catalog_time=time_to_proto(plan.catalog_time),
        rivals=[rival_to_proto(rival) for rival in planned.rivals],
        ended_early=planned.ended_early,
        target=pb.Target(
            kind=TARGET_KINDS.to_proto(planned.target.kind), value=planned.target.value
        ),
        deadline_s=planned.deadline_s,
    )


def planned_from_proto(message: pb.Plan) -> PlannedFleet:
    """Return a plan of a message."""
    kept = message.HasField("create_time")
    return PlannedFleet(
        plan=_plan_from_proto(message),
        job_name=message.job_name,
        target=Target(
            kind=TARGET_KINDS.from_proto(message.target.kind), value=message.target.value
        ),
        deadline_s=optional(message, "deadline_s"),
        rivals=tuple(rival_from_proto(rival) for rival in message.rivals),
        ended_early=message.ended_early,
        plan_id=message.plan_id,
        create_time=time_from_proto(message.create_time) if kept else None,
    )


def _plan_from_proto(message: pb.Plan) -> Plan:
    return Plan(
        status=STATUSES.from_proto(message.status),
        objective=OBJECTIVES.from_proto(message.objective),
        prediction=prediction_from_proto(message.prediction),
        cost_usd=message.cost_usd,
        lower_bound_usd=message.lower_bound_usd,
        lower_bound_s=optional(message, "lower_bound_s"),
        deadline_probability=optional(message, "deadline_probability"),
        why=tuple(message.why),
        savings=tuple(saving_from_proto(saving) for saving in message.savings),
        alternatives=tuple(alternative_from_proto(other) for other in message.alternatives),
        frontier=tuple(point_from_proto(point) for point in message.frontier),
        changes=tuple(pool_change_from_proto(change) for change in message.changes),
        solve_s=message.solve_s,
        catalog_time=time_from_proto(message.catalog_time),
    )


def alternative_to_proto(alternative: Alternative) -> pb.Alternative:
    """Return a fleet of another kind as a message."""
    return pb.Alternative(
        label=alternative.label,
        prediction=prediction_to_proto(alternative.prediction),
        cost_usd=alternative.cost_usd,
        gives_up=alternative.gives_up,
    )


def alternative_from_proto(message: pb.Alternative) -> Alternative:
    """Return a fleet of another kind of a message."""
    prediction = prediction_from_proto(message.prediction)
    return Alternative(**by_name(message) | {"prediction": prediction})


def saving_to_proto(saving: Saving) -> pb.Saving:
    """Return what a relaxed limit saves as a message."""
    return pb.Saving(limit=saving.limit, change=saving.change, saves_usd=saving.saves_usd)


def saving_from_proto(message: pb.Saving) -> Saving:
    """Return what a relaxed limit saves of a message."""
    return Saving(**by_name(message))


def point_to_proto(point: FrontierPoint) -> pb.FrontierPoint:
    """Return the cheapest fleet for one deadline as a message."""
    return pb.FrontierPoint(
        deadline_s=point.deadline_s,
        prediction=prediction_to_proto(point.prediction),
        cost_usd=point.cost_usd,
        lower_bound_usd=point.lower_bound_usd,
    )


def point_from_proto(message: pb.FrontierPoint) -> FrontierPoint:
    """Return the cheapest fleet for one deadline of a message."""
    prediction = prediction_from_proto(message.prediction)
    return FrontierPoint(**by_name(message) | {"prediction": prediction})


def pool_change_to_proto(change: PoolChange) -> pb.PoolChange:
    """Return what becomes of a pool as a message."""
    return pb.PoolChange(
        role=ROLES.to_proto(change.role),
        instance_type=change.pool.instance_type,
        zone=change.pool.zone,
        market=MARKETS.to_proto(change.pool.market),
        running_count=change.running_count,
        planned_count=change.planned_count,
    )


def pool_change_from_proto(message: pb.PoolChange) -> PoolChange:
    """Return what becomes of a pool of a message."""
    return PoolChange(
        role=ROLES.from_proto(message.role),
        pool=Pool(message.instance_type, message.zone, MARKETS.from_proto(message.market)),
        running_count=message.running_count,
        planned_count=message.planned_count,
    )


def rival_to_proto(rival: Rival) -> pb.Rival:
    """Return another planner's choice as a message; what is infinite is left out."""
    return pb.Rival(
        name=rival.name,
        cost_usd=rival.cost_usd if math.isfinite(rival.cost_usd) else None,
        duration_s=rival.duration_s if math.isfinite(rival.duration_s) else None,
        meets_goal=rival.meets_goal,
        note=rival.note,
    )


def rival_from_proto(message: pb.Rival) -> Rival:
    """Return another planner's choice of a message; what is left out is infinite."""
    cost_usd, duration_s = optional(message, "cost_usd"), optional(message, "duration_s")
    return Rival(
        name=message.name,
        cost_usd=math.inf if cost_usd is None else cost_usd,
        duration_s=math.inf if duration_s is None else duration_s,
        meets_goal=message.meets_goal,
        note=message.note,
    )


def change_to_proto(change: SmallestChange) -> pb.SmallestChange:
    """Return the least that a limit must give as a message."""
    return pb.SmallestChange(
        limit=change.limit,
        now=change.now,
        needed=change.needed,
        proved=change.proved,
        text=change.text,
    )


def change_from_proto(message: pb.SmallestChange) -> SmallestChange:
    """Return the least that a limit must give of a message."""
    return SmallestChange(**by_name(message))


def no_fleet_to_proto(nothing: NoFleet) -> pb.Infeasible:
    """Return why there is no plan as a message."""
    error = nothing.error
    return pb.Infeasible(
        job_name=nothing.job_name,
        objective=OBJECTIVES.to_proto(nothing.objective),
        proved=error.proved,
        limits=error.clashes,
        changes=[change_to_proto(change) for change in error.changes],
        together=[change_to_proto(change) for change in error.together],
        catalog_time=time_to_proto(nothing.catalog_time),
    )


def no_fleet_from_proto(message: pb.Infeasible) -> NoFleet:
    """Return why there is no plan of a message."""
    return NoFleet(
        error=NoFeasibleFleetError(
            clashes=tuple(message.limits),
            changes=[change_from_proto(change) for change in message.changes],
            together=[change_from_proto(change) for change in message.together],
            proved=message.proved,
        ),
        job_name=message.job_name,
        objective=OBJECTIVES.from_proto(message.objective),
        catalog_time=time_from_proto(message.catalog_time),
    )


def summary_to_proto(summary: PlanSummary) -> pb.PlanSummary:
    """Return a plan in one line as a message."""
    return pb.PlanSummary(
        plan_id=summary.plan_id,
        create_time=time_to_proto(summary.create_time),
        job_name=summary.job_name,
        status=STATUSES.to_proto(summary.status),
        cost_usd=summary.cost_usd,
        duration_s=summary.duration_s,
    )


def summary_from_proto(message: pb.PlanSummary) -> PlanSummary:
    """Return a plan in one line of a message."""
    return PlanSummary(
        plan_id=message.plan_id,
        create_time=time_from_proto(message.create_time),
        job_name=message.job_name,
        status=STATUSES.from_proto(message.status),
        cost_usd=message.cost_usd,
        duration_s=message.duration_s,
    )
