"""The whole prediction for one fleet: step, loss, interruptions, time and money."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec, TargetKind
from spotwright.domain.prediction import GroupPrediction, Interval, Prediction
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.compute import GpuFacts
from spotwright.perfmodel.convergence import (
    check_fitted_range,
    relative_sd,
    updates_to_goal,
)
from spotwright.perfmodel.fleets import fleet_progress
from spotwright.perfmodel.interruption import spot_risk, uninterrupted_probability
from spotwright.perfmodel.link_rates import link_rates
from spotwright.perfmodel.memory import check_memory
from spotwright.perfmodel.notes import prediction_notes
from spotwright.perfmodel.serverless import functions_usd_per_s, lifecycle
from spotwright.perfmodel.spot_simulation import simulate_run_s
from spotwright.perfmodel.step_model import (
    ClusterSpeed,
    Floats,
    StepModel,
    WorkerClass,
    worker_class,
)
from spotwright.perfmodel.strategies import build_model, build_serverless
from spotwright.perfmodel.traffic import CrossZoneTraffic
from spotwright.perfmodel.uncertainty import LogBounds, step_bounds

_ROUNDING = 1e-9  # of the deadline: a fleet exactly at it is in time


@dataclass(frozen=True, slots=True)
class EvaluatedStep:
    """How one fleet steps, whatever its goal."""

    counts: Floats  # workers of each group
    speed: ClusterSpeed
    bounds: LogBounds
    groups: tuple[GroupPrediction, ...]

    @property
    def worker_steps_per_s(self) -> float:
        """Steps per second of all workers together."""
        return float((self.counts / self.speed.step_s[:, 0]).sum())


def predict(job: JobSpec, fleet: Fleet, gpu_facts: GpuFacts) -> Prediction:
    """Predict what a fleet does with a job.

    Raises:
        BadInputError: memory, a missing fact, an unreachable loss or a law outside its range.
    """
    step = evaluate_step(job, fleet, gpu_facts)
    progress = fleet_progress(job.workload, step.counts[:, None], step.speed)
    if job.goal.target.kind is TargetKind.LOSS:
        check_fitted_range(job.workload.convergence, progress)
    updates = float(updates_to_goal(job.workload, job.goal.target, progress)[0])
    iteration_s = float(step.speed.iteration_s[0])
    work_s = _work_s(job, fleet, updates * iteration_s)
    risk = spot_risk(job.workload, fleet.nodes, work_s=work_s)
    own_bounds = step.bounds.widened(relative_sd(job.workload.convergence, job.goal.target))
    duration = own_bounds.widened(risk.sd_s / risk.expected_s).around(risk.expected_s)
    chance, overall_chance = _deadline_probabilities(job, fleet, own_bounds, work_s)
    traffic_usd = _traffic_usd(job.workload, fleet, step, work_s)
    return Prediction(
        strategy=job.workload.strategy,
        fleet=fleet,
        groups=step.groups,
        iteration_s=step.bounds.around(iteration_s),
        cluster_steps_per_s=step.worker_steps_per_s,
        samples_per_s=float(step.speed.samples_per_s[0]),
        weighted_batch=float(step.speed.weighted_batch[0]),
        convergence_coefficient=float(progress.coefficient[0]) if progress.asynchronous else None,
        steps_to_goal=updates,
        duration_s=duration,
        duration_p95_s=duration.high,
        deadline_probability=chance,
        overall_deadline_probability=overall_chance,
        uninterrupted_probability=uninterrupted_probability(
            job.workload, fleet.nodes, hours=duration.mid / 3600
        ),
        cost_usd=_cost(job, fleet, duration, traffic_usd),
        traffic_usd=traffic_usd,
        bottleneck=_bottleneck(step.groups),
        network_basis=job.limits.network,
        notes=prediction_notes(job, fleet, risk, traffic_usd),
    )


def simulated_durations_s(job: JobSpec, prediction: Prediction) -> Floats:
    """Simulate runs of a predicted fleet to the job's goal, with what interrupts them."""
    steps_s = prediction.steps_to_goal * prediction.iteration_s.mid
    work_s = _work_s(job, prediction.fleet, steps_s)
    return simulate_run_s(job.workload, prediction.fleet, work_s=work_s)


def _work_s(job: JobSpec, fleet: Fleet, steps_s: float) -> float:
    """Return how long a run takes that nothing interrupts."""
    return steps_s + _start_up_s(job, fleet, steps_s)


def evaluate_step(job: JobSpec, fleet: Fleet, gpu_facts: GpuFacts) -> EvaluatedStep:
    """Evaluate the step of one fleet."""
    if job.workload.strategy is Strategy.SERVERLESS:
        return _functions_step(job, fleet)
    return _nodes_step(job, fleet, gpu_facts)


def _nodes_step(job: JobSpec, fleet: Fleet, gpu_facts: GpuFacts) -> EvaluatedStep:
    workers = [worker_class(job.workload, g, gpu_facts, job.limits.network) for g in fleet.workers]
    counts = np.array([float(group.node_count) for group in fleet.workers])
    model = build_model(job, workers, fleet.servers, most_workers=int(counts.sum()))
    speed = model.speed(counts[:, None])
    return EvaluatedStep(
        counts=counts,
        speed=speed,
        bounds=step_bounds(job.workload, workers, counts, speed),
        groups=_group_predictions(job, workers, model, counts, speed),
    )


def _functions_step(job: JobSpec, fleet: Fleet) -> EvaluatedStep:
    functions = fleet.functions
    if functions is None:
        raise BadInputError("a serverless fleet needs functions: lambda:MB*COUNT")
    counts = np.array([float(functions.function_count)])
    model = build_serverless(job, [functions.memory_mb], fleet.servers)
    speed = model.speed(counts[:, None])
    group = GroupPrediction(
        group=None,
        batch_per_gpu=float(speed.weighted_batch[0]) / functions.function_count,
        step_s=float(speed.iteration_s[0]),
        terms=model.terms(counts)[0],
        samples_per_s=float(speed.samples_per_s[0]),
        memory_gib=None,
        memory_limit_gib=None,
        compute_source="measured",
    )
    bounds = step_bounds(job.workload, (), counts, speed)
    return EvaluatedStep(counts=counts, speed=speed, bounds=bounds, groups=(group,))


def _group_predictions(
    job: JobSpec,
    workers: Sequence[WorkerClass],
    model: StepModel,
    counts: Floats,
    speed: ClusterSpeed,
) -> tuple[GroupPrediction, ...]:
    gpu_count = float(sum(n * w.gpus for n, w in zip(counts, workers, strict=True)))
    result = []
    for i, (worker, terms) in enumerate(zip(workers, model.terms(counts), strict=True)):
        step_s, samples_per_s = float(speed.step_s[i, 0]), float(speed.group_samples_per_s[i, 0])
        batch_per_gpu = samples_per_s * step_s / (counts[i] * worker.gpus)
        result.append(
            GroupPrediction(
                group=worker.group,
                batch_per_gpu=batch_per_gpu,
                step_s=step_s,
                terms=terms,
                samples_per_s=samples_per_s,
                memory_gib=check_memory(
                    job.workload,
                    worker.group.instance_type,
                    batch_per_gpu=batch_per_gpu,
                    gpu_count=gpu_count,
                ),
                memory_limit_gib=worker.group.instance_type.gpu_memory_gib or None,
                compute_source=worker.compute.source,
                rates=link_rates(job.workload, worker),
            )
        )
    return tuple(result)


def _traffic_usd(workload: Workload, fleet: Fleet, step: EvaluatedStep, work_s: float) -> float:
    if fleet.functions is not None:
        return 0.0
    traffic = CrossZoneTraffic(workload, fleet.workers, fleet.servers)
    usd = traffic.usd(step.counts[:, None], step_s=step.speed.step_s, work_s=np.array([work_s]))
    return float(usd[0])


def _start_up_s(job: JobSpec, fleet: Fleet, training_s: float) -> float:
    if fleet.functions is None:
        return 0.0
    return lifecycle(
        job.workload,
        memory_mb=fleet.functions.memory_mb,
        functions=fleet.functions.function_count,
        training_s=training_s,
    ).total_s


def _cost(job: JobSpec, fleet: Fleet, duration: Interval, traffic_usd: float) -> Interval | None:
    usd_per_hour = fleet.usd_per_hour
    if usd_per_hour is None:
        return None
    usd_per_s = usd_per_hour / 3600 + _functions_usd_per_s(job, fleet)
    return duration.scaled(usd_per_s).shifted(traffic_usd)


def _deadline_probabilities(
    job: JobSpec, fleet: Fleet, own_bounds: LogBounds, work_s: float
) -> tuple[float | None, float | None]:
    """Return P(duration <= deadline) under the spot model alone, and with the model's own error."""
    deadline_s = job.goal.deadline_s
    if deadline_s is None:
        return None, None
    run_s = simulate_run_s(job.workload, fleet, work_s=work_s)
    in_time = float(np.mean(run_s <= deadline_s * (1 + _ROUNDING)))
    return in_time, own_bounds.probability_within(deadline_s, run_s)


def _functions_usd_per_s(job: JobSpec, fleet: Fleet) -> float:
    functions, law = fleet.functions, job.workload.serverless
    if functions is None or law is None:
        return 0.0
    memory_mb, count = float(functions.memory_mb), float(functions.function_count)
    return functions_usd_per_s(law, memory_mb=memory_mb, functions=count)


def _bottleneck(groups: Sequence[GroupPrediction]) -> str:
    """Name the term that takes most time; a group that waits for input has no other."""
    totals: dict[str, float] = {}
    for group in groups:
        weight = (group.group.node_count if group.group else 1) / group.step_s
        if group.terms.input_stall_s > 0:
            totals["input_stall"] = totals.get("input_stall", 0.0) + weight * group.step_s
            continue
        for name, seconds in group.terms.by_name().items():
            totals[name] = totals.get(name, 0.0) + weight * seconds
    return max(totals, key=lambda name: totals[name])
