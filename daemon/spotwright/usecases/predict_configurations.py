"""Predict a table of configurations, each with the workload of its model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spotwright.domain.errors import BadInputError, MeasurementsError, nearest_name
from spotwright.domain.job import JobSpec
from spotwright.domain.measurement import Configuration
from spotwright.domain.prediction import Interval
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.predict import evaluate_step
from spotwright.usecases.configured_fleets import FleetResolver, job_of_row
from spotwright.usecases.ports import OfferSource


@dataclass(frozen=True, slots=True)
class RowPrediction:
    """What was predicted for one row."""

    step_s: Interval
    cluster_steps_per_s: float


def predict_configurations(
    rows: Sequence[Configuration],
    jobs: Mapping[str, JobSpec],
    source: OfferSource,
    *,
    path: str,
) -> tuple[list[RowPrediction], Sequence[str]]:
    """Predict every row, in order, and return warnings beside.

    Args:
        rows: what to predict.
        jobs: by the name of the model they train; a job without such a name alone.
        source: hardware facts.
        path: of the file, for complaints.
    """
    resolver = FleetResolver(source, path=path)
    predictions = [_predict(row, _choose(row, jobs, path), resolver, source) for row in rows]
    return predictions, list(resolver.warnings)


def _predict(
    row: Configuration, job: JobSpec, resolver: FleetResolver, source: OfferSource
) -> RowPrediction:
    job = job_of_row(row, job)
    fleet = resolver.fleet(row, job)
    try:
        step = evaluate_step(job, fleet, source.gpu)
    except BadInputError as error:
        raise MeasurementsError(str(error), path=resolver.path, line=row.line) from error
    worker_count = float(step.counts.sum())
    asynchronous = row.strategy is Strategy.ASP_PS
    mean_step_s = worker_count / step.worker_steps_per_s
    seconds = mean_step_s if asynchronous else float(step.speed.iteration_s[0])
    return RowPrediction(step.bounds.around(seconds), step.worker_steps_per_s)


def _choose(row: Configuration, jobs: Mapping[str, JobSpec], path: str) -> JobSpec:
    """Return the job whose workload a row is about."""
    same = {n: j for n, j in jobs.items() if j.workload.strategy is row.strategy} or jobs
    for name in (row.model or "", f"{row.model}/{row.strategy}"):
        if name in same:
            return same[name]
    if len(same) == 1:
        return next(iter(same.values()))
    names = sorted(same)
    asked = f"the model {row.model!r} is" if row.model else "the row names no model of"
    near = nearest_name(row.model, names) if row.model else None
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(names)}"
    raise MeasurementsError(f"{asked} not in the job; {hint}", path=path, line=row.line)
