"""Make rows of measurements from what the hosts of a job sent.

Each steady window is one row: the fleet that ran, the batch of the plan, and how fast it stepped.
Asynchronous workers have a common rate of steps, synchronous ones a common step.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import NodeGroup
from spotwright.domain.fleet_expression import NodeTerm, format_terms
from spotwright.domain.job import JobSpec
from spotwright.domain.measurement import Configuration, Measurement
from spotwright.domain.prediction import Prediction
from spotwright.domain.telemetry import RollupPart
from spotwright.domain.workload import GlobalBatch, Strategy
from spotwright.usecases.steady_windows import (
    LEAST_STEPS,
    WARM_UP_S,
    SteadyWindow,
    mean_step_s,
    steady_windows,
    steps_per_s,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredJob:
    """Rows, and what had to be left out."""

    rows: tuple[Measurement, ...]
    notes: tuple[str, ...]


def measure_job(
    prediction: Prediction,
    job: JobSpec,
    *,
    types: Mapping[str, str],
    steps: Mapping[str, Sequence[RollupPart]],
    resolution_s: int,
) -> MeasuredJob:
    """Return the rows of a job.

    Args:
        prediction: of the plan that it runs.
        job: what the plan was made for.
        types: instance type of each agent.
        steps: what each agent sent, by intervals.
        resolution_s: length of an interval.

    Raises:
        BadInputError: there is nothing to measure by yet; it says what is missing.
    """
    groups = {g.group.instance_type.name: g.group for g in prediction.groups if g.group}
    mine = {name: parts for name, parts in steps.items() if types[name] in groups}
    windows = _windows(mine, resolution_s=resolution_s)
    rows, notes = [], []
    for number, window in enumerate(windows, start=1):
        fleet = _fleet(groups, types, window)
        batch = _batch_per_gpu(prediction, job, fleet)
        if batch is None:
            notes.append(f"window {number}: its workers have different batches, left out")
        else:
            rows.append(_row(prediction, window, fleet, line=number + 1, batch=batch))
    if not rows:
        raise BadInputError("workers with different batches have no common row; use one type")
    return MeasuredJob(rows=tuple(rows), notes=(*notes, *_left_open(rows)))


def _windows(
    mine: Mapping[str, Sequence[RollupPart]], *, resolution_s: int
) -> Sequence[SteadyWindow]:
    """Return the windows of a job's workers, at least one."""
    if not any(part.step_count for parts in mine.values() for part in parts):
        raise BadInputError(
            "the agents of the job's workers have sent no steps yet; report them from training "
            "with spotwright_agent.training"
        )
    windows = steady_windows(mine, resolution_s=resolution_s)
    if not windows:
        raise BadInputError(
            f"no time in which the fleet was the same for {LEAST_STEPS} steps after "
            f"{WARM_UP_S} s of warm-up; wait until the job has run for longer"
        )
    return windows


def _fleet(
    groups: Mapping[str, NodeGroup], types: Mapping[str, str], window: SteadyWindow
) -> list[tuple[NodeGroup, int]]:
    counts = Counter(types[agent_id] for agent_id in window.step_s)
    return [(groups[name], counts[name]) for name in sorted(counts)]


def _batch_per_gpu(
    prediction: Prediction, job: JobSpec, fleet: Sequence[tuple[NodeGroup, int]]
) -> int | None:
    """Return the one batch of all workers; a global batch of equal ones is split evenly."""
    batch = job.workload.batch
    if isinstance(batch, GlobalBatch) and prediction.strategy is not Strategy.ASP_PS:
        gpu_count = sum(max(1.0, group.gpus_per_node) * count for group, count in fleet)
        return max(1, round(batch.sample_count / gpu_count)) if len(fleet) == 1 else None
    names = {group.instance_type.name for group, _ in fleet}
    sizes = {
        round(g.batch_per_gpu)
        for g in prediction.groups
        if g.group and g.group.instance_type.name in names
    }
    return max(1, sizes.pop()) if len(sizes) == 1 else None


def _row(
    prediction: Prediction,
    window: SteadyWindow,
    fleet: Sequence[tuple[NodeGroup, int]],
    *,
    line: int,
    batch: int,
) -> Measurement:
    servers = prediction.fleet.servers
    configuration = Configuration(
        line=line,
        strategy=prediction.strategy,
        fleet=format_terms(tuple(_term(group, count) for group, count in fleet)),
        batch_per_gpu=batch,
        ps_count=sum(server.node_count for server in servers) or None,
        ps_type=servers[0].instance_type.name if servers else None,
    )
    if prediction.strategy is Strategy.ASP_PS:
        return Measurement(configuration=configuration, cluster_steps_per_s=steps_per_s(window))
    return Measurement(configuration=configuration, step_s=mean_step_s(window))


def _term(group: NodeGroup, count: int) -> NodeTerm:
    some = 0 < group.gpus_per_node < group.instance_type.gpu_count
    return NodeTerm(
        type_name=group.instance_type.name,
        gpu_count=round(group.gpus_per_node) if some else None,
        node_count=count,
    )


def _left_open(rows: Sequence[Measurement]) -> list[str]:
    if len({(r.configuration.fleet, r.configuration.batch_per_gpu) for r in rows}) > 1:
        return []
    return [
        "only one fleet was measured: its step is fitted, but how it changes with the number and "
        "type of nodes is not; steps of other fleets are predicted from data-sheet figures"
    ]
