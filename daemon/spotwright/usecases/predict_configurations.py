"""Predict a table of configurations, each with the workload of its model."""

from collections.abc import Mapping, Sequence

from spotwright.domain.errors import BadInputError, MeasurementsError, nearest_name
from spotwright.domain.job import JobSpec
from spotwright.domain.measurement import Configuration
from spotwright.domain.questions import RowPrediction
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.predict import evaluate_step
from spotwright.usecases.configured_fleets import UNNAMED_MODEL, FleetResolver, job_of_row
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.unmeasured_model import job_of_unmeasured_model


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

    Raises:
        MeasurementsError: a row that cannot be predicted; it names the line.
    """
    resolver = FleetResolver(source, path=path)
    predictions = []
    for row in rows:
        try:
            job = _known(row, jobs) or _from_flops(row, jobs, resolver)
            if job is None:
                job = _only(row, jobs, path)
                _warn_of_other_model(row, jobs, resolver)
            predictions.append(_predict(row, job, resolver))
        except MeasurementsError:
            raise
        except BadInputError as error:
            raise MeasurementsError(str(error), path=path, line=row.line) from error
    return predictions, list(resolver.warnings)


def _predict(row: Configuration, job: JobSpec, resolver: FleetResolver) -> RowPrediction:
    job = job_of_row(row, job)
    step = evaluate_step(job, resolver.fleet(row, job), resolver.source.gpu)
    worker_count = float(step.counts.sum())
    asynchronous = row.strategy is Strategy.ASP_PS
    mean_step_s = worker_count / step.worker_steps_per_s
    seconds = mean_step_s if asynchronous else float(step.speed.iteration_s[0])
    return RowPrediction(step.bounds.around(seconds), step.worker_steps_per_s)


def _same_strategy(row: Configuration, jobs: Mapping[str, JobSpec]) -> dict[str, JobSpec]:
    return {n: j for n, j in jobs.items() if j.workload.strategy is row.strategy}


def _known(row: Configuration, jobs: Mapping[str, JobSpec]) -> JobSpec | None:
    """Return the job of the model that a row names, fitted to its strategy if there is one."""
    model = row.model or UNNAMED_MODEL
    names = (model, f"{model}/{row.strategy}")
    choices: Sequence[Mapping[str, JobSpec]] = (_same_strategy(row, jobs), jobs)
    return next((some[name] for some in choices for name in names if name in some), None)


def _from_flops(
    row: Configuration, jobs: Mapping[str, JobSpec], resolver: FleetResolver
) -> JobSpec | None:
    """Return a job for a model that was never measured, where several others were."""
    same = _same_strategy(row, jobs)
    if row.model is None or len(same) < 2:
        return None
    fleet = resolver.fleet(row, job_of_row(row, next(iter(same.values()))))
    return job_of_unmeasured_model(row, same, fleet, resolver.source.gpu)


def _warn_of_other_model(
    row: Configuration, jobs: Mapping[str, JobSpec], resolver: FleetResolver
) -> None:
    if row.model is not None:
        used = next(iter(jobs))
        resolver.warnings[f"rows of {row.model!r} are predicted with the workload {used!r}"] = None


def _only(row: Configuration, jobs: Mapping[str, JobSpec], path: str) -> JobSpec:
    """Return the one job there is; a single one names no model and goes for each."""
    same = _same_strategy(row, jobs) or jobs
    if len(jobs) == 1 or (row.model is None and len(same) == 1):
        return next(iter(same.values()))
    names = sorted(same)
    near = nearest_name(row.model, names) if row.model else None
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(names)}"
    problem = (
        f"the model {row.model!r} is not in the job; to derive it from its FLOPs, the row and the "
        f"measured models need flops_per_sample and parameter_bytes; {hint}"
        if row.model
        else f"the row names no model and the job has several; {hint}"
    )
    raise MeasurementsError(problem, path=path, line=row.line)
