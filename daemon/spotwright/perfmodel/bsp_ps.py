"""Bulk-synchronous parameter server: the slowest worker, then everyone exchanges at once.

compute   C = max over workers of (compute + PCIe), times 1 + spread * emax(n)
burst     n pushes, then n pulls: link 2 * max(n * bytes / B_ps, bytes / B_worker), CPU n * D,
          whichever takes longer
step      C + burst - overlap * min(C, burst)       overlap = 1 is Cynthia's max(C, burst)
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
from spotwright.perfmodel.synchronous_compute import SynchronousCompute

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
        self._compute = SynchronousCompute(workload, workers)
        self._gpus = column([w.gpus for w in workers])
        self._spread = column([w.compute.device_sd for w in workers])
        self._pcie_s = column([pcie_s(w, workload.model.parameter_bytes) for w in workers])
        self._nvlink_s = column([nvlink_s(w, workload.model.parameter_bytes) for w in workers])
        self._input_rate = column([w.input_rate for w in workers])
        self._visit_s = column([demand.link_visit_s(w.network_mbps) for w in workers])
        self._latency_s = column([ROUND_TRIPS_PER_STEP * x for x in latency_s])

    def speed(self, counts: Floats) -> ClusterSpeed:
        """Evaluate fleets."""
        present = counts > 0
        batch = self._compute.batch_per_gpu(counts) * self._gpus
        local_s = self._compute.seconds(batch / self._gpus) + self._pcie_s + self._nvlink_s
        compute_s = self._slowest(local_s, counts)
        link_s, cpu_s = self._burst(counts)
        burst_s = np.maximum(link_s, cpu_s)
        busy_s = compute_s + burst_s - self._overlap * np.minimum(compute_s, burst_s)
        feed_s = np.where(present, batch / self._input_rate, 0.0).max(axis=0)
        step_s = np.maximum(busy_s, feed_s)
        return ClusterSpeed(
            iteration_s=step_s,
            step_s=np.broadcast_to(step_s, counts.shape),
            group_samples_per_s=counts * batch / step_s,
            communication_fraction=np.clip((busy_s - compute_s) / step_s, 0.0, 1.0),
        )

    def terms(self, counts: Floats) -> tuple[StepTerms, ...]:
        """Explain one fleet: all workers share the step; waiting for the slowest is compute."""
        fleet = counts[:, None]
        speed = self.speed(fleet)
        batch = self._compute.batch_per_gpu(fleet) * self._gpus
        local_s = self._compute.seconds(batch / self._gpus) + self._pcie_s + self._nvlink_s
        compute_s = float(self._slowest(local_s, fleet)[0])
        link_s, cpu_s = (float(part[0]) for part in self._burst(fleet))
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

    def _slowest(self, local_s: Floats, counts: Floats) -> Floats:
        present = counts > 0
        spread = np.where(present, self._spread, 0.0).max(axis=0)
        straggling = 1 + spread * expected_maximum(np.maximum(counts.sum(axis=0), 1.0))
        slowest: Floats = np.where(present, local_s, 0.0).max(axis=0) * straggling
        return slowest

    def _burst(self, counts: Floats) -> tuple[Floats, Floats]:
        workers, present = counts.sum(axis=0), counts > 0
        own_s = np.where(present, self._visit_s, 0.0).max(axis=0)
        latency_s = np.where(present, self._latency_s, 0.0).max(axis=0)
        link_s = 2 * np.maximum(workers * self._demand.link_demand_s, own_s) + latency_s
        cpu_s = np.maximum(workers * self._demand.cpu_demand_s, self._demand.cpu_visit_s)
        return link_s, cpu_s
