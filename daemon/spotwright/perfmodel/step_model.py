"""One interface for the four strategies: how fast a cluster steps, and where the time goes.

A model is built once for the worker classes that may appear in a fleet (one class per pool), then
evaluates any number of fleets at once: `counts` has a row per class and a column per fleet. What
explains a single fleet in words and what a search evaluates by the million is the same code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import NetworkRate
from spotwright.domain.prediction import StepTerms
from spotwright.domain.workload import GlobalBatch, Strategy, Workload
from spotwright.perfmodel.batch import batch_per_gpu
from spotwright.perfmodel.compute import ComputeEstimate, GpuFacts, estimate_compute
from spotwright.perfmodel.input_pipeline import node_input_rate

Floats = NDArray[np.float64]

_USUAL_PCIE_MBPS = 126_000.0  # generation 3 x16, where the catalog has no figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpeed:
    """What fleets do per second; arrays have one entry per fleet."""

    iteration_s: Floats  # between updates of the model
    step_s: Floats  # of one worker, (classes, fleets)
    group_samples_per_s: Floats  # (classes, fleets)
    communication_fraction: Floats  # of the step, for the width of the interval

    @property
    def samples_per_s(self) -> Floats:
        """Samples per second of the whole cluster."""
        return np.asarray(self.group_samples_per_s.sum(axis=0))

    @property
    def weighted_batch(self) -> Floats:
        """Samples per update of the model."""
        return self.samples_per_s * self.iteration_s


class StepModel(Protocol):
    """A strategy, ready to evaluate fleets of given worker classes."""

    def speed(self, counts: Floats) -> ClusterSpeed:
        """Evaluate fleets: `counts` is (classes, fleets), each fleet with at least one worker."""

    def terms(self, counts: Floats) -> tuple[StepTerms, ...]:
        """Explain one fleet, `counts` of shape (classes,): the step of each class, term by term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerClass:
    """Equal nodes, whatever their number."""

    group: NodeGroup
    compute: ComputeEstimate
    batch_per_gpu: float  # 0 where a global batch is split by speed
    input_rate: float  # samples/s that one node can be fed
    network_mbps: float | None  # None: the catalog does not say
    pcie_mbps: float
    reached_mbps: float | None = None  # measured on a node whose link has become less

    @property
    def gpus(self) -> float:
        """Devices that compute on one node."""
        return max(self.group.gpus_per_node, 1.0)

    @property
    def batch(self) -> float:
        """Samples per step of one node."""
        return self.batch_per_gpu * self.gpus


def worker_class(
    workload: Workload, group: NodeGroup, gpu_facts: GpuFacts, network: NetworkRate
) -> WorkerClass:
    """Collect what a strategy needs to know of one group."""
    instance_type = group.instance_type
    synchronous = workload.strategy is not Strategy.ASP_PS
    whole = synchronous and isinstance(workload.batch, GlobalBatch)
    return WorkerClass(
        group=group,
        compute=estimate_compute(workload, instance_type, gpu_facts),
        batch_per_gpu=0.0 if whole else batch_per_gpu(workload, instance_type),
        input_rate=node_input_rate(workload, instance_type),
        network_mbps=network_rate(group, network),
        pcie_mbps=workload.pcie_mbps or instance_type.pcie_mbps or _USUAL_PCIE_MBPS,
    )


def network_rate(group: NodeGroup, network: NetworkRate) -> float | None:
    """Return the network figure to plan with."""
    instance_type = group.instance_type
    if network is NetworkRate.PEAK and instance_type.network_peak_mbps:
        return instance_type.network_peak_mbps
    return instance_type.network_baseline_mbps


def column(values: Sequence[float]) -> Floats:
    """Return one value per class as a column that spreads over fleets."""
    return np.array(values, dtype=np.float64)[:, None]
