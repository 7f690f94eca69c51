"""Fit workloads to the rows of a measurements file, each model and strategy apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from spotwright.domain.errors import MeasurementsError
from spotwright.domain.fleet import Fleet
from spotwright.domain.job import Goal, JobSpec, Limits, NetworkRate, Placement, Target, TargetKind
from spotwright.domain.measurement import Configuration, Measurement
from spotwright.domain.units import format_bytes
from spotwright.domain.workload import (
    AllreduceTuning,
    FixedBatch,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.perfmodel.calibration.allreduce_rows import AllreduceRows
from spotwright.perfmodel.calibration.calibrate import Calibration, calibrate
from spotwright.perfmodel.calibration.parameter_server_rows import ParameterServerRows
from spotwright.perfmodel.calibration.runs import MeasuredRows, Run
from spotwright.perfmodel.calibration.serverless_rows import ServerlessRows
from spotwright.usecases.configured_fleets import MEASURED_NETWORK, UNNAMED_MODEL, FleetResolver
from spotwright.usecases.ports import OfferSource

ASSUMED_PARAMETER_BYTES = 100e6  # all-reduce: rates are then relative to it
_PLACEHOLDER_STEPS = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedModel:
    """One model of the file, fitted."""

    name: str
    job: JobSpec
    calibration: Calibration


def calibrate_workloads(
    rows: Sequence[Measurement],
    source: OfferSource,
    *,
    path: str,
    base: JobSpec | None = None,
    network: NetworkRate = MEASURED_NETWORK,
) -> list[CalibratedModel]:
    """Fit every model of a file.

    Args:
        rows: the measurements.
        source: hardware facts.
        path: of the file, for complaints.
        base: a job that gives goal, limits, and sizes that the rows leave out.
        network: the rate that the rows ran at; long runs have used their burst up.

    Raises:
        MeasurementsError: a row cannot be used; it names the line.
    """
    groups = _by_model(rows)
    models = [model for model, _ in groups]
    fitted = []
    for (model, strategy), group in groups.items():
        job = _job(group, model, base, path)
        name = model if models.count(model) == 1 else f"{model}/{strategy}"
        fitted.append(_fitted(name, job, group, FleetResolver(source, path=path), network))
    return fitted


def _fitted(
    name: str,
    job: JobSpec,
    rows: Sequence[Measurement],
    resolver: FleetResolver,
    network: NetworkRate,
) -> CalibratedModel:
    runs = [_run(row, job, resolver) for row in rows]
    measured = _measured_rows(_to_fit(job, runs), runs, resolver.source, network=network)
    calibration = calibrate(measured)
    workload = calibration.workload
    if workload.strategy is not Strategy.SERVERLESS:
        workload = replace(workload, batch=job.workload.batch)
    notes = (*_size_notes(job, rows), *calibration.notes, *resolver.warnings)
    return CalibratedModel(
        name=name,
        job=replace(job, workload=workload),
        calibration=replace(calibration, workload=workload, notes=notes),
    )


def _size_notes(job: JobSpec, rows: Sequence[Measurement]) -> list[str]:
    sizes = {row.configuration.parameter_bytes for row in rows} - {None}
    used = format_bytes(job.workload.model.parameter_bytes)
    if len(sizes) > 1:
        return [f"the rows give {len(sizes)} parameter_bytes: their median, {used}, is used"]
    if not sizes and job.workload.model.parameter_bytes == ASSUMED_PARAMETER_BYTES:
        return [f"parameter_bytes is not given: {used} is assumed, and rates are relative to it"]
    return []


def _by_model(rows: Sequence[Measurement]) -> Mapping[tuple[str, Strategy], list[Measurement]]:
    groups: dict[tuple[str, Strategy], list[Measurement]] = {}
    for row in rows:
        key = (row.configuration.model or UNNAMED_MODEL, row.configuration.strategy)
        groups.setdefault(key, []).append(row)
    return groups


def _job(rows: Sequence[Measurement], model: str, base: JobSpec | None, path: str) -> JobSpec:
    """Return the job that the rows describe, before anything is fitted."""
    workload = _workload([row.configuration for row in rows], base, path)
    if base is not None:
        return replace(base, workload=workload)
    together = workload.strategy is Strategy.ALLREDUCE
    return JobSpec(
        name=_job_name(model),
        workload=workload,
        goal=Goal(target=Target(kind=TargetKind.STEPS, value=_PLACEHOLDER_STEPS)),
        limits=Limits(placement=Placement.ONE_ZONE if together else Placement.ONE_REGION),
    )


def _workload(rows: Sequence[Configuration], base: JobSpec | None, path: str) -> Workload:
    workload = Workload(
        strategy=rows[0].strategy,
        model=_size(rows, base, path),
        batch=FixedBatch(per_gpu_count=rows[0].batch_per_gpu),
    )
    if base is not None:
        workload = _of_strategy(base.workload, workload)
    if workload.strategy is Strategy.ALLREDUCE:
        return replace(workload, allreduce=workload.allreduce or AllreduceTuning())
    serving = workload.parameter_serving or ParameterServing()
    return replace(workload, parameter_serving=serving)


def _of_strategy(base: Workload, fresh: Workload) -> Workload:
    """Return a base workload with the size and strategy of a fresh one, less what has no use."""
    same = base.strategy is fresh.strategy
    return replace(
        base,
        strategy=fresh.strategy,
        model=fresh.model,
        batch=base.batch if same else fresh.batch,
        parameter_serving=base.parameter_serving if same else None,
        allreduce=base.allreduce if same else None,
        serverless=base.serverless if same else None,
        interval=None,
    )


def _to_fit(job: JobSpec, runs: Sequence[Run]) -> JobSpec:
    """Return the job without what would stand in the way of its rows: each has its own batch, and
    what is fitted by GPU must not be hidden by an older figure of the instance type."""
    measured = {group.instance_type.name for run in runs for group in run.fleet.workers}
    compute = {name: p for name, p in job.workload.compute.items() if name not in measured}
    batch = FixedBatch(per_gpu_count=runs[0].batch_per_gpu)
    return replace(job, workload=replace(job.workload, compute=compute, batch=batch))


def _size(rows: Sequence[Configuration], base: JobSpec | None, path: str) -> ModelSize:
    usual = base.workload.model if base else None
    sizes = [row.parameter_bytes for row in rows if row.parameter_bytes]
    if not sizes and usual is None and rows[0].strategy is not Strategy.ALLREDUCE:
        raise MeasurementsError(
            f"strategy {rows[0].strategy} needs parameter_bytes; add the column, or --job JOB",
            path=path,
            line=rows[0].line,
        )
    tensors = [row.tensor_count for row in rows if row.tensor_count]
    flops = [row.flops_per_sample for row in rows if row.flops_per_sample]
    known = usual or ModelSize(parameter_bytes=ASSUMED_PARAMETER_BYTES)
    return replace(
        known,
        parameter_bytes=median(sizes) if sizes else known.parameter_bytes,
        tensor_count=round(median(tensors)) if tensors else known.tensor_count,
        flops_per_sample=median(flops) if flops else known.flops_per_sample,
    )


def _run(row: Measurement, job: JobSpec, resolver: FleetResolver) -> Run:
    configuration = row.configuration
    fleet = resolver.fleet(configuration, job)
    if row.step_s is not None and configuration.strategy is Strategy.ASP_PS and _is_mixed(fleet):
        raise MeasurementsError(
            "asynchronous workers that are not all equal have no common step_s; "
            "give cluster_steps_per_s instead",
            path=resolver.path,
            line=configuration.line,
        )
    if fleet.functions is not None:
        worker_count = fleet.functions.function_count
    else:
        worker_count = sum(group.node_count for group in fleet.workers)
    return Run(
        line=configuration.line,
        fleet=fleet,
        batch_per_gpu=configuration.batch_per_gpu,
        step_s=row.worker_step_s(worker_count),
        placement=_placement(fleet),
    )


def _is_mixed(fleet: Fleet) -> bool:
    return len({(group.instance_type.name, group.gpus_per_node) for group in fleet.workers}) > 1


def _placement(fleet: Fleet) -> str:
    """Name a fleet whatever the order of its terms, so that equal ones leave together."""
    nodes = sorted(
        (g.role, g.instance_type.name, g.gpus_per_node, g.node_count) for g in fleet.nodes
    )
    return f"{nodes} {fleet.functions}"


def _measured_rows(
    job: JobSpec, runs: Sequence[Run], source: OfferSource, *, network: NetworkRate
) -> MeasuredRows:
    match job.workload.strategy:
        case Strategy.ALLREDUCE:
            return AllreduceRows(job.workload, runs, source.gpu, network)
        case Strategy.SERVERLESS:
            return ServerlessRows(job.workload, runs)
        case _:
            return ParameterServerRows(job.workload, runs, source.gpu, network)


def _job_name(model: str) -> str:
    kept = "".join(c if c.isalnum() and c.isascii() else "-" for c in model.lower()).strip("-")
    return kept[:63].strip("-") or "model"
