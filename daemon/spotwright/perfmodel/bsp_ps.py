"""Bulk-synchronous parameter server: the slowest worker, then everyone exchanges at once.

compute   C = slowest + straggling: max over workers of (compute + PCIe), times spread * emax(n)
burst     n pushes, then n pulls: link 2 * max(n * bytes / B_ps, bytes / B_worker), CPU n * D,
          whichever takes longer
early     what others push while the last one still computes: at most `straggling`, and at most all
          but the last one's own push; the link is through with it when C is over
step      C + burst - early - overlap * min(C, burst)     overlap = 1 is Cynthia's max(C, burst)
"""

from collections.abc import Sequence

import numpy as np

from spotwright.domain.prediction import StepTerms
from spotwright.domain.workload import ParameterServing, Workload
from spotwright.perfmodel.asp_ps import ROUND_TRIPS_PER_STEP
from spotwright.perfmodel.local_exchange import nvlink_s, pcie_s
from spotwright.perfmodel.order_statistics import expected_maximum
from spotwright.perfmodel.parameter_server import ServerDemand
from spotwright.perfmodel.step_model import ClusterSpeed, Floats, WorkerClass, column
from spotwright.perfmodel.synchronous_compute import SynchronousCompute, worst_of

_ROUNDING = 1e-9


class BspPsModel:
    """Synchronous training on parameter servers."""

    def __init__(
        self,
        workload: Workload,
        workers: Sequence[WorkerClass],
        demand: ServerDemand,
        *,
        latency_s: Sequence[float],
    ) -> None:
        """Prepare for fleets of these classes."""
        serving = workload.parameter_serving or ParameterServing()
        self._overlap = serving.overlap_fraction
        self._demand = demand
        self.compute = SynchronousCompute(workload, workers)
        self.gpus = column([w.gpus for w in workers])
        self._spread = column([w.compute.device_sd for w in workers])
        self._pcie_s = column([pcie_s(w, workload.model.parameter_bytes) for w in workers])
        self._nvlink_s = column([nvlink_s(w, workload.model.parameter_bytes) for w in workers])
        self.input_rate = column([w.input_rate for w in workers])
        self._visit_s = column([demand.link_visit_s(w.network_mbps) for w in workers])
        self._latency_s = column([ROUND_TRIPS_PER_STEP * x for x in latency_s])

    def speed(self, counts: Floats) -> ClusterSpeed:
        """Evaluate fleets."""
        batch_per_gpu = self.compute.batch_per_gpu(counts)
        worst = worst_of(counts, self.keys(batch_per_gpu))
        workers = counts.sum(axis=0)
        compute_s = self._compute_s(workers, worst)
        step_s = self.step_s(workers, self.gpus, worst)
        communication_s = self._busy_s(workers, compute_s, worst) - compute_s
        return ClusterSpeed(
            iteration_s=step_s,
            step_s=np.broadcast_to(step_s, counts.shape),
            group_samples_per_s=counts * batch_per_gpu * self.gpus / step_s,
            communication_fraction=np.clip(communication_s / step_s, 0.0, 1.0),
        )

    def keys(self, batch_per_gpu: Floats) -> tuple[Floats, ...]:
        """Return, by class, the five quantities of which the worst present decides the step."""
        return (
            self.compute.seconds(batch_per_gpu) + self._pcie_s + self._nvlink_s,
            self._spread,
            self._visit_s,
            self._latency_s,
            batch_per_gpu * self.gpus / self.input_rate,
        )

    def step_s(self, nodes: Floats, _gpus: Floats, worst: Sequence[Floats]) -> Floats:
        """Return the step of fleets of so many nodes, from the worst of each key."""
        compute_s = self._compute_s(nodes, worst)
        return np.maximum(self._busy_s(nodes, compute_s, worst), worst[-1])

    @property
    def per_sample_s(self) -> Floats:
        """Seconds per sample of one GPU of each class, as a column."""
        return self.compute.per_sample_s

    def micro_batched_s(self, largest: float) -> Floats:
        """Return the least seconds per sample in micro-batches of a size, as a column."""
        return self.compute.micro_batched_s(largest)

    def terms(self, counts: Floats) -> tuple[StepTerms, ...]:
        """Explain one fleet: all workers share the step; waiting for the slowest is compute."""
        fleet = counts[:, None]
        speed = self.speed(fleet)
        worst = worst_of(fleet, self.keys(self.compute.batch_per_gpu(fleet)))
        workers = fleet.sum(axis=0)
        compute_s = float(self._compute_s(workers, worst)[0])
        link_s, cpu_s = (float(part[0]) for part in self._burst(workers, worst))
        burst_s = max(link_s, cpu_s)
        exposed_s = burst_s - self._overlap * min(compute_s, burst_s)
        idle_s = float(speed.iteration_s[0]) - compute_s - exposed_s
        stall_s = idle_s if idle_s > _ROUNDING * compute_s else 0.0
        return tuple(
            StepTerms(
                compute_s=compute_s - float(self._pcie_s[i, 0]) - float(self._nvlink_s[i, 0]),
                pcie_s=float(self._pcie_s[i, 0]),
                nvlink_s=float(self._nvlink_s[i, 0]),
                network_s=exposed_s if link_s >= cpu_s else 0.0,
                ps_service_s=0.0 if link_s >= cpu_s else exposed_s,
                input_stall_s=stall_s,
            )
            for i in range(len(counts))
        )

    def _straggling_s(self, workers: Floats, worst: Sequence[Floats]) -> Floats:
        """Return how long the last one computes after the slowest class is through on average."""
        slowest_s, spread = worst[:2]
        return slowest_s * spread * expected_maximum(np.maximum(workers, 1.0))

    def _compute_s(self, workers: Floats, worst: Sequence[Floats]) -> Floats:
        return worst[0] + self._straggling_s(workers, worst)

    def _busy_s(self, workers: Floats, compute_s: Floats, worst: Sequence[Floats]) -> Floats:
        burst_s = np.maximum(*self._burst(workers, worst))
        return compute_s + burst_s - self._overlap * np.minimum(compute_s, burst_s)

    def _burst(self, workers: Floats, worst: Sequence[Floats]) -> tuple[Floats, Floats]:
        _, _, visit_s, latency_s, _ = worst
        all_s = np.maximum(workers * self._demand.link_demand_s, visit_s)
        early_s = np.minimum(self._straggling_s(workers, worst), all_s - visit_s)
        link_s = 2 * all_s - early_s + latency_s
        cpu_s = np.maximum(workers * self._demand.cpu_demand_s, self._demand.cpu_visit_s)
        return link_s, cpu_s
