"""What bytes between zones cost.

With parameter servers every worker pushes and pulls all parameters in each step. An all-reduce ring
over k zones crosses between them k times, each crossing carrying 2 (G-1)/G of the gradients.
"""

from collections.abc import Sequence

from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.workload import Strategy, Workload

USD_PER_GB_BETWEEN_ZONES = 0.02  # AWS: 0.01 at either end
USD_PER_GB_BETWEEN_REGIONS = 0.02  # AWS, from most regions


def cross_zone_usd(
    workload: Workload, fleet: Fleet, steps: Sequence[tuple[NodeGroup, float]]
) -> float:
    """Return the dollars for traffic between zones in a whole run.

    Args:
        workload: gives the bytes of a step.
        fleet: its servers hold equal shares.
        steps: of one worker of each group, in the whole run.
    """
    if workload.strategy is Strategy.ALLREDUCE:
        return _ring_usd(workload, steps)
    gigabytes_per_step = 2 * workload.model.parameter_bytes / 1e9
    total, servers = 0.0, fleet.servers
    count = sum(server.node_count for server in servers)
    for worker, worker_steps in steps:
        for server in servers:
            share = server.node_count / count
            moved = worker.node_count * worker_steps * gigabytes_per_step * share
            total += moved * _usd_per_gb(worker, server)
    return total


def _ring_usd(workload: Workload, steps: Sequence[tuple[NodeGroup, float]]) -> float:
    offers = [group.offer for group, _ in steps if group.offer]
    crossings = len({offer.zone for offer in offers})
    if crossings < 2:
        return 0.0
    one_region = len({offer.region for offer in offers}) == 1
    usd_per_gb = USD_PER_GB_BETWEEN_ZONES if one_region else USD_PER_GB_BETWEEN_REGIONS
    gpus = sum(group.node_count * max(group.gpus_per_node, 1.0) for group, _ in steps)
    gigabytes = 2 * (gpus - 1) / gpus * workload.model.parameter_bytes / 1e9
    return crossings * steps[0][1] * gigabytes * usd_per_gb


def _usd_per_gb(worker: NodeGroup, server: NodeGroup) -> float:
    if worker.offer is None or server.offer is None or worker.offer.zone == server.offer.zone:
        return 0.0
    if worker.offer.region == server.offer.region:
        return USD_PER_GB_BETWEEN_ZONES
    return USD_PER_GB_BETWEEN_REGIONS
