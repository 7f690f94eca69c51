"""Predict what a fleet written by hand would do."""

from dataclasses import replace
from datetime import datetime

from spotwright.domain.job import JobSpec
from spotwright.domain.prediction import Prediction
from spotwright.perfmodel.predict import predict
from spotwright.usecases.broken_limits import broken_limits, model_error_notes
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.resolve_fleet import resolve_fleet


def predict_fleet(
    job: JobSpec, expression: str, source: OfferSource, *, now: datetime | None = None
) -> Prediction:
    """Choose an offer for each term, predict the whole, and note what of the job it would break.

    Without `now`, pools that cool down count as excluded still.

    Raises:
        FleetExpressionError: a typo, an unknown name, or more GPUs than the type has.
        BadInputError: the fleet is nowhere offered together, or cannot train this job.
    """
    prediction = predict(job, resolve_fleet(expression, job, source), source.gpu)
    broken = broken_limits(job, prediction, now=now)
    notes = (*broken, *model_error_notes(job, prediction), *prediction.notes)
    return replace(prediction, notes=notes)
