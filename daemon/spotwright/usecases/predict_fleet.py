"""Predict what a fleet written by hand would do."""

from dataclasses import replace

from spotwright.domain.job import JobSpec
from spotwright.domain.prediction import Prediction
from spotwright.perfmodel.predict import predict
from spotwright.usecases.broken_limits import broken_limits
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.resolve_fleet import resolve_fleet


def predict_fleet(job: JobSpec, expression: str, source: OfferSource) -> Prediction:
    """Choose an offer for each term, predict the whole, and note what of the job it would break.

    Raises:
        FleetExpressionError: a typo, an unknown name, or more GPUs than the type has.
        BadInputError: the fleet is nowhere offered together, or cannot train this job.
    """
    prediction = predict(job, resolve_fleet(expression, job, source), source.gpu)
    return replace(prediction, notes=(*broken_limits(job, prediction), *prediction.notes))
