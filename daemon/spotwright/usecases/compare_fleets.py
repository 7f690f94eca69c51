"""Set fleets written by hand side by side, and tell which of them will do."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.domain.errors import BadInputError, FleetExpressionError
from spotwright.domain.job import Goal, JobSpec
from spotwright.domain.prediction import Prediction
from spotwright.domain.questions import ComparedFleet
from spotwright.perfmodel.predict import predict
from spotwright.usecases.broken_limits import broken_limits, model_error_notes
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.resolve_fleet import resolve_fleet


def compare_fleets(
    job: JobSpec, expressions: Sequence[str], source: OfferSource, *, now: datetime | None = None
) -> list[ComparedFleet]:
    """Predict each fleet.

    Raises:
        FleetExpressionError: a typo, an unknown name, or more GPUs than the type has.
        BadInputError: a fleet is nowhere offered together, or cannot train this job.
    """
    return [_compared(job, expression, source, now) for expression in expressions]


def _compared(
    job: JobSpec, expression: str, source: OfferSource, now: datetime | None
) -> ComparedFleet:
    try:
        prediction = predict(job, resolve_fleet(expression, job, source), source.gpu)
    except FleetExpressionError:
        raise  # it shows the fleet already
    except BadInputError as error:
        raise BadInputError(f"{expression}: {error}") from error
    prediction = replace(prediction, notes=(*model_error_notes(job, prediction), *prediction.notes))
    endless = replace(job, goal=Goal(target=job.goal.target))
    keeps_limits = not broken_limits(endless, prediction, now=now)
    return ComparedFleet(
        prediction=prediction,
        broken=tuple(broken_limits(job, prediction, now=now)),
        will_do=keeps_limits and _meets(job.goal, prediction),
    )


def _meets(goal: Goal, prediction: Prediction) -> bool:
    """Tell whether the goal is met under the spot model, as the planner asks it."""
    chance, cost = prediction.deadline_probability, prediction.cost_usd
    deadline_s = math.inf if goal.deadline_s is None else goal.deadline_s
    sure = chance is None or chance >= goal.confidence_fraction
    in_time = sure and prediction.duration_s.mid <= deadline_s
    return in_time and (goal.budget_usd is None or cost is None or cost.mid <= goal.budget_usd)
