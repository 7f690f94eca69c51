"""What a workload would wait for on instance types that are not at hand, by the performance model.

The same differences as between measured runs, of predicted steps:

    t1 one GPU, t2 all GPUs of a node, t3 two nodes: fed with samples that cost nothing
    t4 one node that prepares its samples from memory, t5 with the share of the data that it caches
    interconnect = t2 - t1    network = t3 - t2    prep = t4 - t2    fetch = t5 - t4

With parameter servers every worker needs the network, one alone too: there t1 and t2 are what a
step takes within its node, and prep starts from the whole step of a node.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spotwright.domain.errors import MemoryDoesNotFitError, MissingFactError
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.hardware import InstanceType
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import InputPipeline
from spotwright.perfmodel.batch import batch_per_gpu
from spotwright.perfmodel.memory import available_gib, gpu_memory_gib
from spotwright.perfmodel.predict import EvaluatedStep, evaluate_step
from spotwright.perfmodel.step_model import worker_class
from spotwright.usecases.list_offers import worker_offers
from spotwright.usecases.ports import OfferSource

_MOST_TYPES = 20  # listed without being asked for by name


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedStalls:
    """Seconds of a step, and what it waits for."""

    alone_s: float
    node_s: float
    interconnect_stall_s: float
    interconnect_link: str  # nvlink or pcie
    network_stall_s: float
    prep_stall_s: float
    fetch_stall_s: float
    cached_fraction: float | None  # of the dataset in the node's memory; None: its size is unknown
    pcie_fraction: float  # of a step of one GPU, for copying its input
    compute_source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceReport:
    """One instance type."""

    instance_type: InstanceType
    needed_gib: float | None  # of one GPU's memory
    available_gib: float | None
    stalls: EstimatedStalls | None  # None: it does not fit, or a fact is missing
    problem: str | None = None

    @property
    def fits(self) -> bool:
        """Whether one GPU holds what training keeps."""
        return (self.needed_gib or 0.0) <= (self.available_gib or math.inf)


def estimate_stalls(
    job: JobSpec,
    names: Sequence[str],
    source: OfferSource,
    *,
    input_bytes_per_sample: float,
) -> list[InstanceReport]:
    """Estimate each type that is named; without names, those that the job may rent.

    Raises:
        UnknownNameError: the catalog has no such type.
    """
    types = [source.instance_type(name) for name in names] or rentable_types(job, source)
    return [_report(job, kind, source, input_bytes_per_sample) for kind in types]


def rentable_types(job: JobSpec, source: OfferSource) -> list[InstanceType]:
    """Return what a job may rent; of many, for each GPU the cheapest with fewest and with most."""
    by_name: dict[str, InstanceType] = {}
    for offer in worker_offers(job, source):  # cheapest first
        by_name.setdefault(offer.instance_type.name, offer.instance_type)
    types = list(by_name.values())
    if len(types) > _MOST_TYPES:
        types = _ends(types)
    return sorted(types, key=lambda kind: (kind.gpu_name or "", kind.gpu_count, kind.name))


def _ends(types: Sequence[InstanceType]) -> list[InstanceType]:
    """Return for each GPU the first type with fewest whole ones, and the first with most."""
    ends: dict[str, InstanceType] = {}
    for gpu in {kind.gpu_name for kind in types}:
        same = [kind for kind in types if kind.gpu_name == gpu and kind.gpu_count >= 1]
        for choose in (min, max):
            if same:
                chosen = choose(same, key=lambda kind: kind.gpu_count)
                ends[chosen.name] = chosen
    return list(ends.values())


def _report(
    job: JobSpec, kind: InstanceType, source: OfferSource, input_bytes: float
) -> InstanceReport:
    available = available_gib(kind)
    try:
        needed = _needed_gib(job, kind) if available is not None else None
        report = InstanceReport(
            instance_type=kind, needed_gib=needed, available_gib=available, stalls=None
        )
        if not report.fits:
            return replace(report, problem=_no_room(job, report))
        return replace(report, stalls=_stalls(job, kind, source, input_bytes))
    except (
        MissingFactError,
        MemoryDoesNotFitError,
    ) as error:  # ZeRO: one GPU alone
        return InstanceReport(
            instance_type=kind,
            needed_gib=None,
            available_gib=available,
            stalls=None,
            problem=str(error),
        )


def _no_room(job: JobSpec, report: InstanceReport) -> str:
    batch = batch_per_gpu(job.workload, report.instance_type)
    return (
        f"a batch of {batch:g} needs {report.needed_gib:.1f} GiB, its GPU has "
        f"{report.available_gib:.1f} GiB"
    )


def _needed_gib(job: JobSpec, kind: InstanceType) -> float:
    batch = batch_per_gpu(job.workload, kind)
    return gpu_memory_gib(job.workload, batch_per_gpu=batch, gpu_count=max(kind.gpu_count, 1.0))


def _stalls(
    job: JobSpec, kind: InstanceType, source: OfferSource, input_bytes: float
) -> EstimatedStalls:
    unfed = _with_input(job, None)
    alone = _step(unfed, kind, source, gpus=min(kind.gpu_count, 1.0))
    node, nodes = _step(unfed, kind, source), _step(unfed, kind, source, nodes=2)
    pipeline, cached = job.workload.input, _cached_fraction(job, kind)
    warm_s = cold_s = _seconds(node)
    if pipeline:
        warm = _with_input(job, replace(pipeline, cached_fraction=1.0))
        cold = _with_input(job, replace(pipeline, cached_fraction=_or_all(cached)))
        warm_s = _seconds(_step(warm, kind, source))
        cold_s = _seconds(_step(cold, kind, source))
    copy_s = input_bytes * alone.groups[0].batch_per_gpu * 8e-6 / _pcie_mbps(job, kind, source)
    return EstimatedStalls(
        alone_s=_inside_s(job, alone),
        node_s=_seconds(node),
        interconnect_stall_s=max(_inside_s(job, node) - _inside_s(job, alone), 0.0),
        interconnect_link="nvlink" if kind.nvlink_mbps > 0 else "pcie",
        network_stall_s=max(_seconds(nodes) - _inside_s(job, node), 0.0),
        prep_stall_s=max(warm_s - _seconds(node), 0.0),
        fetch_stall_s=max(cold_s - warm_s, 0.0),
        cached_fraction=cached,
        pcie_fraction=copy_s / _inside_s(job, alone),
        compute_source=alone.groups[0].compute_source,
    )


def _step(
    job: JobSpec,
    kind: InstanceType,
    source: OfferSource,
    *,
    gpus: float | None = None,
    nodes: int = 1,
) -> EvaluatedStep:
    workers = _group(kind, kind.gpu_count if gpus is None else gpus, nodes=nodes)
    return evaluate_step(job, Fleet(nodes=(workers, *_servers(job, source))), source.gpu)


def _group(kind: InstanceType, gpus: float, *, nodes: int, role: Role = Role.WORKER) -> NodeGroup:
    return NodeGroup(
        role=role, instance_type=kind, node_count=nodes, gpus_per_node=gpus, offer=None
    )


def _pcie_mbps(job: JobSpec, kind: InstanceType, source: OfferSource) -> float:
    group = _group(kind, kind.gpu_count, nodes=1)
    return worker_class(job.workload, group, source.gpu, job.limits.network).pcie_mbps


def _servers(job: JobSpec, source: OfferSource) -> tuple[NodeGroup, ...]:
    serving = job.workload.parameter_serving
    if serving is None:
        return ()
    kind = source.instance_type(serving.default_type)
    return (_group(kind, 0.0, nodes=serving.default_count, role=Role.PS),)


def _seconds(step: EvaluatedStep) -> float:
    """Return the step of one worker."""
    return step.groups[0].step_s


def _inside_s(job: JobSpec, step: EvaluatedStep) -> float:
    """Return the part of a step that needs no other node."""
    terms = step.groups[0].terms
    if job.workload.strategy.uses_parameter_servers:
        return terms.compute_s + terms.pcie_s + terms.nvlink_s
    return _seconds(step)


def _with_input(job: JobSpec, pipeline: InputPipeline | None) -> JobSpec:
    return replace(job, workload=replace(job.workload, input=pipeline))


def _cached_fraction(job: JobSpec, kind: InstanceType) -> float | None:
    dataset = job.workload.dataset
    if dataset is None or dataset.size_bytes is None:
        return None
    return min(1.0, kind.memory_gib * 2**30 / dataset.size_bytes)


def _or_all(fraction: float | None) -> float:
    return 1.0 if fraction is None else fraction
