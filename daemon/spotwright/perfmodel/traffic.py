"""What bytes between zones cost: every step pushes and pulls all parameters."""

from collections.abc import Sequence

from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.workload import Workload

USD_PER_GB_BETWEEN_ZONES = 0.02  # AWS: 0.01 at either end
USD_PER_GB_BETWEEN_REGIONS = 0.02  # AWS, from most regions


def cross_zone_usd(
    workload: Workload, fleet: Fleet, steps: Sequence[tuple[NodeGroup, float]]
) -> float:
    """Return the dollars for traffic between workers and servers in other zones.

    Args:
        workload: gives the bytes of a step.
        fleet: its servers hold equal shares.
        steps: of one worker of each group, in the whole run.
    """
    gigabytes_per_step = 2 * workload.model.parameter_bytes / 1e9
    total, servers = 0.0, fleet.servers
    count = sum(server.node_count for server in servers)
    for worker, worker_steps in steps:
        for server in servers:
            share = server.node_count / count
            moved = worker.node_count * worker_steps * gigabytes_per_step * share
            total += moved * _usd_per_gb(worker, server)
    return total


def _usd_per_gb(worker: NodeGroup, server: NodeGroup) -> float:
    if worker.offer is None or server.offer is None or worker.offer.zone == server.offer.zone:
        return 0.0
    if worker.offer.region == server.offer.region:
        return USD_PER_GB_BETWEEN_ZONES
    return USD_PER_GB_BETWEEN_REGIONS
