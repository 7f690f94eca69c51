"""From a row of a measurements file to the job and the fleet it stands for."""

from dataclasses import replace

from spotwright.domain.errors import BadInputError, MeasurementsError, UnknownNameError
from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec, Limits, NetworkRate, Placement
from spotwright.domain.measurement import Configuration
from spotwright.domain.workload import (
    AllreduceTuning,
    FixedBatch,
    ModelSize,
    ParameterServing,
    ServerlessLaw,
    Strategy,
)
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.resolve_fleet import resolve_fleet

UNNAMED_MODEL = "model"  # of rows that name none
MEASURED_NETWORK = NetworkRate.PEAK  # runs that are measured are short: inside the burst
_MOST_FUNCTIONS = 1_000_000


class FleetResolver:
    """Resolves the fleets of many rows; each distinct one is looked up once."""

    def __init__(self, source: OfferSource, *, path: str) -> None:
        """Look names up in `source`; complain about rows of `path`."""
        self.source, self.path = source, path
        self._known: dict[tuple[str, Strategy], Fleet] = {}
        self.warnings: dict[str, None] = {}  # in order, each once

    def fleet(self, row: Configuration, job: JobSpec) -> Fleet:
        """Return the fleet of a row.

        Raises:
            MeasurementsError: the fleet expression is wrong, or nobody offers such nodes.
        """
        text = self._expression(row, job)
        key = (text, row.strategy)
        if key not in self._known:
            limits = Limits(cloud=job.limits.cloud, placement=Placement.ANYWHERE)
            try:
                fleet = resolve_fleet(text, replace(job, limits=limits), self.source)
                self._known[key] = fleet if _names_zones(text) else _in_one_place(fleet)
            except BadInputError as error:
                raise MeasurementsError(str(error), path=self.path, line=row.line) from error
        return self._known[key]

    def _expression(self, row: Configuration, job: JobSpec) -> str:
        serving = job.workload.parameter_serving
        if serving is None or "ps=" in row.fleet:
            return row.fleet
        name, count = row.ps_type or serving.default_type, row.ps_count or serving.default_count
        try:
            self.source.instance_type(name)
        except UnknownNameError as error:
            usual = serving.default_type
            self.warnings[f"{error}; a server like {usual} is assumed in its place"] = None
            name = usual
        return f"{row.fleet} + ps={name}*{count}"


def _names_zones(expression: str) -> bool:
    return all("@" in term for term in expression.split("+"))


def _in_one_place(fleet: Fleet) -> Fleet:
    """Forget the cheapest zones: a run was in one, and a row asks no price."""
    return replace(fleet, nodes=tuple(replace(group, offer=None) for group in fleet.nodes))


def job_of_row(row: Configuration, job: JobSpec) -> JobSpec:
    """Return a job with the row's strategy, batch and sizes in place of its own.

    Rows are runs as they are measured and calibrated on, whatever rate the job is planned with.

    Raises:
        BadInputError: the row is about functions and the job knows nothing of them.
    """
    if row.strategy is Strategy.SERVERLESS and job.workload.serverless is None:
        raise BadInputError(f"the job is {job.workload.strategy} and has no serverless section")
    workload = replace(
        job.workload,
        strategy=row.strategy,
        batch=FixedBatch(per_gpu_count=row.batch_per_gpu),
        model=_size(row, job.workload.model),
    )
    if row.strategy.uses_parameter_servers:
        workload = replace(
            workload, parameter_serving=workload.parameter_serving or ParameterServing()
        )
    else:
        workload = replace(workload, parameter_serving=None)
    if row.strategy is Strategy.ALLREDUCE:
        workload = replace(workload, allreduce=workload.allreduce or AllreduceTuning())
    if workload.serverless is not None:
        workload = replace(workload, serverless=_uncut(workload.serverless, row))
    return replace(job, workload=workload, limits=replace(job.limits, network=MEASURED_NETWORK))


def _uncut(law: ServerlessLaw, row: Configuration) -> ServerlessLaw:
    """Return a law whose functions have the row's batch, however many there are."""
    return replace(
        law,
        batch_per_function_count=row.batch_per_gpu,
        max_global_batch_count=row.batch_per_gpu * _MOST_FUNCTIONS,
    )


def _size(row: Configuration, usual: ModelSize) -> ModelSize:
    return replace(
        usual,
        parameter_bytes=row.parameter_bytes or usual.parameter_bytes,
        tensor_count=row.tensor_count or usual.tensor_count,
        flops_per_sample=row.flops_per_sample or usual.flops_per_sample,
    )
