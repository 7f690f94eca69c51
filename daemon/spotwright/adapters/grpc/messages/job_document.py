"""What a planner is asked, to and from planner.proto."""

from spotwright.adapters.grpc.messages.enums import EnumPairs
from spotwright.adapters.grpc.messages.scalars import by_name, optional, sayable
from spotwright.domain.plan import Objective
from spotwright.domain.questions import GoalOverride, JobDocument, PlanQuestion
from spotwright.v1 import planner_pb2 as pb

OBJECTIVES = EnumPairs(
    "objective",
    {
        Objective.COST: pb.OBJECTIVE_COST,
        Objective.TIME: pb.OBJECTIVE_TIME,
        Objective.PARETO: pb.OBJECTIVE_PARETO,
    },
)
_DEFAULTS = PlanQuestion()


def job_to_proto(job: JobDocument) -> pb.JobDocument:
    """Return a job file as a message."""
    return pb.JobDocument(text=job.text, name=sayable(job.name), model=sayable(job.model or ""))


def job_from_proto(message: pb.JobDocument) -> JobDocument:
    """Return a job file of a message."""
    return JobDocument(
        text=message.text, name=message.name or "job.yaml", model=message.model or None
    )


def goal_to_proto(goal: GoalOverride) -> pb.GoalOverride:
    """Return what stands in place of a goal as a message."""
    return pb.GoalOverride(
        deadline_s=goal.deadline_s,
        budget_usd=goal.budget_usd,
        confidence_fraction=goal.confidence_fraction,
        target_loss=goal.target_loss,
    )


def goal_from_proto(message: pb.GoalOverride) -> GoalOverride:
    """Return what stands in place of a goal of a message."""
    return GoalOverride(**by_name(message))


def question_to_proto(
    job: JobDocument, question: PlanQuestion, *, request_id: str
) -> pb.CreatePlanRequest:
    """Return a question for a plan as a message."""
    return pb.CreatePlanRequest(
        request_id=request_id,
        job=job_to_proto(job),
        goal=goal_to_proto(question.goal),
        objective=OBJECTIVES.to_proto(question.objective),
        gap_fraction=question.gap_fraction,
        time_limit_s=question.time_limit_s,
        existing_fleet=sayable(question.existing_fleet or ""),
        switching_s=question.switching_s,
        with_frontier=question.with_frontier,
        with_rivals=question.with_rivals,
        without_reasons=question.without_reasons,
    )


def question_from_proto(message: pb.CreatePlanRequest) -> PlanQuestion:
    """Return a question for a plan of a message; what is absent is as usual."""
    gap, limit, switching = (
        optional(message, name) for name in ("gap_fraction", "time_limit_s", "switching_s")
    )
    return PlanQuestion(
        goal=goal_from_proto(message.goal),
        objective=OBJECTIVES.from_proto(message.objective or pb.OBJECTIVE_COST),
        gap_fraction=_DEFAULTS.gap_fraction if gap is None else gap,
        time_limit_s=_DEFAULTS.time_limit_s if limit is None else limit,
        existing_fleet=message.existing_fleet or None,
        switching_s=_DEFAULTS.switching_s if switching is None else switching,
        with_frontier=message.with_frontier,
        with_rivals=message.with_rivals,
        without_reasons=message.without_reasons,
    )
