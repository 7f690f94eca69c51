"""Asynchronous parameter server: every worker steps at its own pace.

    T_i = compute + PCIe + NVLink + network + PS service + waiting,  iteration = 1 / sum_i(1 / T_i)

The three contention rules differ in network, service and waiting; see contention.py. Where workers
have different links, the fastest one present sets how long a lone visit to the server takes; what a
slower one needs beyond that counts as thinking.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spotwright.domain.prediction import StepTerms
from spotwright.domain.workload import Contention, ParameterServing, Workload
from spotwright.perfmodel.contention import SharedServer, spotdnn_bandwidth_mbps, waits
from spotwright.perfmodel.local_exchange import nvlink_s, pcie_s
from spotwright.perfmodel.parameter_server import ServerDemand
from spotwright.perfmodel.step_model import ClusterSpeed, Floats, WorkerClass, column

ROUND_TRIPS_PER_STEP = 2.4  # extra step time / extra latency, CM-DARE's small models


@dataclass(frozen=True, slots=True)
class _Lone:
    """Terms of one worker alone, a column per quantity."""

    compute_s: Floats
    pcie_s: Floats
    nvlink_s: Floats
    network_s: Floats
    service_s: Floats

    def total(self) -> Floats:
        return self.compute_s + self.pcie_s + self.nvlink_s + self.network_s + self.service_s


class AspPsModel:
    """Asynchronous training on parameter servers.

    Attributes:
        batch: samples per step of a worker of each class, as a column.
        feed_s: seconds in which a worker of each class is fed one step's samples.
        visit_s: seconds a lone worker of each class needs to move all parameters one way.
        servers: with queueing, the parameter server by the shortest visit in the fleet.
    """

    def __init__(
        self,
        workload: Workload,
        workers: Sequence[WorkerClass],
        demand: ServerDemand,
        *,
        latency_s: Sequence[float],
        most_workers: int,
    ) -> None:
        """Prepare for fleets of these classes.

        Args:
            workload: what is trained.
            workers: the classes, in the order of the rows of `counts`.
            demand: what a step asks of the servers.
            latency_s: round trip between each class and the servers, beyond that of one zone.
            most_workers: the largest fleet that will be asked about.
        """
        self._serving = workload.parameter_serving or ParameterServing()
        self._bytes = workload.model.parameter_bytes
        self._demand = demand
        self._most_workers = most_workers
        self.batch = column([worker.batch for worker in workers])
        self.feed_s = column([worker.batch / worker.input_rate for worker in workers])
        self._lone = self._lone_terms(workers, latency_s)
        self.visit_s = column([demand.link_visit_s(w.network_mbps) for w in workers])
        self.servers: dict[float, SharedServer] = {}  # by the shortest visit in the fleet
        if self._serving.contention is Contention.QUEUEING:
            links = {demand.link_visit_s(w.network_mbps): w.network_mbps for w in workers}
            self.servers = {
                visit_s: SharedServer.of(
                    demand.stations(mbps),
                    most_workers=most_workers,
                    in_step=demand.server_count == 1,  # shards of one step do not arrive in step
                )
                for visit_s, mbps in links.items()
            }

    def speed(self, counts: Floats) -> ClusterSpeed:
        """Evaluate fleets."""
        if counts.sum(axis=0).max() > self._most_workers:
            raise ValueError(f"a fleet has more than the {self._most_workers} workers prepared for")
        busy_s, communication_s = self._steps(counts)
        step_s = np.maximum(busy_s, self.feed_s)
        rates = counts / step_s
        iteration_s = 1 / rates.sum(axis=0)
        return ClusterSpeed(
            iteration_s=iteration_s,
            step_s=step_s,
            group_samples_per_s=rates * self.batch,
            communication_fraction=(rates * communication_s / step_s).sum(axis=0) * iteration_s,
        )

    def lone_step_s(self, workers: int) -> Floats:
        """Return the step of each class among so many workers, waiting and feeding left out."""
        lone = self._lone
        if self._serving.contention is not Contention.SPOTDNN:
            return lone.total()[:, 0]
        network_s = self._spotdnn_network_s(np.array([[float(workers)]]))
        return np.asarray((lone.total() - lone.network_s + network_s)[:, 0])

    def terms(self, counts: Floats) -> tuple[StepTerms, ...]:
        """Explain one fleet; waiting is charged to the busiest station."""
        fleet = counts[:, None]
        lone, wait = self._lone, self._waits(fleet)
        network_s = lone.network_s
        if self._serving.contention is Contention.SPOTDNN:
            network_s = self._spotdnn_network_s(fleet) + 0 * network_s
        cpu_bound = self._demand.cpu_bound
        busy_s = lone.total() - lone.network_s + network_s + wait
        stall_s = np.maximum(self.feed_s - busy_s, 0.0)
        return tuple(
            StepTerms(
                compute_s=float(lone.compute_s[i, 0]),
                pcie_s=float(lone.pcie_s[i, 0]),
                nvlink_s=float(lone.nvlink_s[i, 0]),
                network_s=float(network_s[i, 0] + (0.0 if cpu_bound else wait[0])),
                ps_service_s=float(lone.service_s[i, 0] + (wait[0] if cpu_bound else 0.0)),
                input_stall_s=float(stall_s[i, 0]),
            )
            for i in range(len(counts))
        )

    def _lone_terms(self, workers: Sequence[WorkerClass], latency_s: Sequence[float]) -> _Lone:
        spotdnn = self._serving.contention is Contention.SPOTDNN
        transfers = [2 * self._demand.link_visit_s(w.network_mbps) for w in workers]
        latencies = [ROUND_TRIPS_PER_STEP * latency for latency in latency_s]
        unhidden = [self._demand.unhidden_service_s(w.network_mbps) for w in workers]
        return _Lone(
            compute_s=column([w.compute.step_s(w.batch_per_gpu) for w in workers]),
            pcie_s=column([pcie_s(w, self._bytes) for w in workers]),
            nvlink_s=column([nvlink_s(w, self._bytes) for w in workers]),
            network_s=column([t + x for t, x in zip(transfers, latencies, strict=True)]),
            service_s=column([0.0] * len(workers) if spotdnn else unhidden),
        )

    def _steps(self, counts: Floats) -> tuple[Floats, Floats]:
        """Return busy seconds per step of each class, and those spent communicating."""
        lone = self._lone
        local_s = lone.compute_s + lone.pcie_s + lone.nvlink_s
        if self._serving.contention is Contention.SPOTDNN:
            network_s = self._spotdnn_network_s(counts)
            return local_s + network_s, network_s + 0 * local_s
        remote_s = lone.network_s + lone.service_s + self._waits(counts)
        return local_s + remote_s, remote_s

    def _waits(self, counts: Floats) -> Floats:
        """Return the seconds each step waits, by fleet."""
        lone_s, wait = self._lone.total(), np.zeros(counts.shape[1])
        if len(self.servers) == 1:
            (server,) = self.servers.values()
            return waits(counts, lone_s, server)
        shortest = np.where(counts > 0, self.visit_s, np.inf).min(axis=0)
        for visit_s, server in self.servers.items():
            chosen = shortest == visit_s
            if chosen.any():
                wait[chosen] = waits(counts[:, chosen], lone_s, server)
        return wait

    def _spotdnn_network_s(self, counts: Floats) -> Floats:
        serving = self._serving
        assert serving.requested_mbps is not None
        assert serving.contention_slope is not None
        assert serving.contention_offset is not None
        bandwidth = spotdnn_bandwidth_mbps(
            counts.sum(axis=0),
            requested_mbps=serving.requested_mbps,
            server_mbps=self._demand.bandwidth_mbps,
            slope=serving.contention_slope,
            offset=serving.contention_offset,
        )
        return 2 * self._bytes * 8e-6 / bandwidth
