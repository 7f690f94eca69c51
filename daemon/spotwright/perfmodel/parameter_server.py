"""What a step asks of the parameter servers.

Parameters are dealt over the servers; every step visits all of them at once and waits for the last,
so the largest shard decides: an even share of the tensors, `largest_shard_fraction` of the bytes.
Its default is all of them: frameworks that deal whole variables in turn tend to put the large ones
together (ShakeShake: 11.68 of 11.71 MB on one of two servers). A job that balances says so.

    CPU    D = (tensors * s_per_tensor + bytes * s_per_byte) * 4 / vCPUs    of the whole server
           a worker is served by one physical core (two vCPUs) at a time: alone it takes cores * D
    link   D = bytes / server bandwidth, in each direction; alone it takes bytes / the slower end

Tensors stream through network card and CPU at once, so the two do not add up: the busier one is
where workers queue, the CPU as one station or the link as two, inbound and outbound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spotwright.domain.errors import MissingFactError
from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import NetworkRate
from spotwright.domain.workload import ParameterServing, Workload
from spotwright.perfmodel.contention import Station
from spotwright.perfmodel.step_model import network_rate

_REFERENCE_VCPUS = 4.0  # of the server on which the CPU constants were measured
_VCPUS_PER_CORE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDemand:
    """One step's work on the busiest server."""

    server_count: int
    parameter_bytes: float  # of all shards together
    shard_bytes: float
    bandwidth_mbps: float
    cpu_demand_s: float
    cpu_visit_s: float

    @property
    def link_demand_s(self) -> float:
        """Seconds of the server's link in one direction."""
        return self.shard_bytes * 8e-6 / self.bandwidth_mbps

    def link_visit_s(self, worker_mbps: float | None) -> float:
        """Seconds a lone worker needs to move all parameters one way."""
        own_s = self.parameter_bytes * 8e-6 / worker_mbps if worker_mbps else 0.0
        return max(self.link_demand_s, own_s)

    def unhidden_service_s(self, worker_mbps: float | None) -> float:
        """CPU seconds of a lone worker's step that its transfers do not cover."""
        return max(0.0, self.cpu_visit_s - 2 * self.link_visit_s(worker_mbps))

    @property
    def cpu_bound(self) -> bool:
        """Whether workers queue for the CPU rather than for the link."""
        return self.cpu_demand_s > self.link_demand_s

    def stations(self, worker_mbps: float | None) -> list[Station]:
        """Return where workers queue."""
        transfer_s = self.link_visit_s(worker_mbps)
        if self.cpu_bound:
            visit_s = max(self.cpu_visit_s, 2 * transfer_s)
            return [Station(visit_s=visit_s, demand_s=self.cpu_demand_s)]
        return 2 * [Station(visit_s=transfer_s, demand_s=self.link_demand_s)]


def server_demand(
    workload: Workload, servers: Sequence[NodeGroup], network: NetworkRate
) -> ServerDemand:
    """Return what one step asks of these servers.

    Raises:
        MissingFactError: nothing says how fast a server's network is.
    """
    serving = workload.parameter_serving or ParameterServing()
    count = sum(group.node_count for group in servers)
    vcpus = min(group.instance_type.vcpu_count for group in servers)
    share = 1.0 if count == 1 else max(serving.largest_shard_fraction, 1 / count)
    shard_bytes = workload.model.parameter_bytes * share
    tensors = workload.model.tensor_count / count
    reference_s = tensors * serving.cpu_s_per_tensor + shard_bytes * serving.cpu_s_per_byte
    demand_s = reference_s * _REFERENCE_VCPUS / vcpus
    return ServerDemand(
        server_count=count,
        parameter_bytes=workload.model.parameter_bytes,
        shard_bytes=shard_bytes,
        bandwidth_mbps=serving.bandwidth_mbps or _slowest_network(servers, network),
        cpu_demand_s=demand_s,
        cpu_visit_s=demand_s * max(1.0, vcpus / _VCPUS_PER_CORE),
    )


def _slowest_network(servers: Sequence[NodeGroup], network: NetworkRate) -> float:
    rates = [(network_rate(group, network), group.instance_type.name) for group in servers]
    for rate, name in rates:
        if rate is None:
            raise MissingFactError(
                f"the network rate of {name}", way_out="add workload.parameter_server.bandwidth"
            )
    return min(rate for rate, _ in rates if rate is not None)
