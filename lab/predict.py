"""Predictions of scenarios by the product's performance model, from a profile and link rates."""

from dataclasses import dataclass, replace

from lab.catalog import VCPUS, server_type, worker_type
from lab.profile import ModelProfile, Profile
from lab.scenario import Scenario, WorkerHost
from spotwright.domain.errors import UnknownNameError
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.hardware import Gpu
from spotwright.domain.job import Goal, JobSpec, Limits, NetworkRate, Target, TargetKind
from spotwright.domain.prediction import Interval
from spotwright.domain.workload import (
    AllreduceTuning,
    FixedBatch,
    GlobalBatch,
    GradientBucket,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.perfmodel.predict import evaluate_step

_REFERENCE_VCPUS = 4.0  # that a workload's CPU seconds are stated for
_NO_COPIES_MBPS = 1e9  # an emulated GPU shares its host's memory
_PLACEHOLDER_STEPS = 10_000.0
_SHARP = 64.0  # power of a maximum without a soft corner: one step is not many


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What the model says of a scenario."""

    iteration_s: Interval  # between updates
    bottleneck: str


def predict(scenario: Scenario, profile: Profile) -> Predicted:
    """Predict the speed of a scenario as it begins."""
    job, fleet = job_of(scenario, profile), fleet_of(scenario)
    step = evaluate_step(job, fleet, _no_gpu)
    terms: dict[str, float] = {}
    for group in step.groups:
        for name, seconds in group.terms.by_name().items():
            terms[name] = max(terms.get(name, 0.0), seconds)
    return Predicted(
        iteration_s=step.bounds.around(float(step.speed.iteration_s[0])),
        bottleneck=max(terms, key=lambda name: terms[name]),
    )


def job_of(scenario: Scenario, profile: Profile) -> JobSpec:
    """Return the job that a scenario trains."""
    known = profile.models[scenario.model]
    served = scenario.strategy.uses_parameter_servers
    overhead_s = known.overhead_s if served else 0.0
    workload = Workload(
        strategy=scenario.strategy,
        model=ModelSize(
            parameter_bytes=scenario.model.parameter_bytes,
            tensor_count=scenario.model.tensor_count,
        ),
        batch=_batch(scenario),
        compute={
            name: replace(device, fixed_s=device.fixed_s + overhead_s)
            for name, device in profile.devices.items()
        },
        parameter_serving=_serving(known) if served else None,
        allreduce=None if served else _tuning(known, profile),
        pcie_mbps=_NO_COPIES_MBPS,
    )
    return JobSpec(
        name=scenario.name,
        workload=workload,
        goal=Goal(target=Target(kind=TargetKind.STEPS, value=_PLACEHOLDER_STEPS)),
        limits=Limits(network=NetworkRate.BASELINE),
    )


def fleet_of(scenario: Scenario) -> Fleet:
    """Return the hosts that are there from the beginning, as a fleet."""
    groups: dict[tuple[str, float], list[WorkerHost]] = {}
    for worker in scenario.starters:
        groups.setdefault((worker.device.name, worker.mbps), []).append(worker)
    nodes = [
        NodeGroup(
            role=Role.WORKER,
            instance_type=worker_type(device, mbps),
            node_count=len(hosts),
            gpus_per_node=1,
            offer=None,
        )
        for (device, mbps), hosts in groups.items()
    ]
    if scenario.server_count:
        nodes.append(
            NodeGroup(
                role=Role.PS,
                instance_type=server_type(scenario.server_mbps),
                node_count=scenario.server_count,
                gpus_per_node=0,
                offer=None,
            )
        )
    return Fleet(nodes=tuple(nodes))


def _batch(scenario: Scenario) -> FixedBatch | GlobalBatch:
    if scenario.strategy is Strategy.ALLREDUCE:  # split by speed
        return GlobalBatch(sample_count=scenario.batch * len(scenario.workers))
    return FixedBatch(per_gpu_count=scenario.batch)


def _serving(known: ModelProfile) -> ParameterServing:
    scale = VCPUS / _REFERENCE_VCPUS
    return ParameterServing(
        cpu_s_per_tensor=0.0,
        cpu_s_per_byte=known.server_cpu_s / known.shape.parameter_bytes * scale,
        largest_shard_fraction=0.5,  # the trainer cuts the model into equal parts
    )


def _tuning(known: ModelProfile, profile: Profile) -> AllreduceTuning:
    assert known.buckets is not None
    sizes, ready = known.buckets.byte_counts, known.buckets.ready_fractions
    return AllreduceTuning(
        buckets=tuple(
            GradientBucket(ready_fraction=min(at, 1.0), bytes_fraction=size / sum(sizes))
            for at, size in zip(ready, sizes, strict=True)
        ),
        overlap_power=_SHARP,
        gpu_spread_fraction=max(d.relative_sd or 0.0 for d in profile.devices.values()),
        link_spread_fraction=0.0,  # links have just the rate that they are given
        two_node_loss=0.0,
        hop_loss=0.0,
    )


def _no_gpu(name: str) -> Gpu:
    raise UnknownNameError("GPU", name, known=())
