"""What bytes between zones cost.

With parameter servers every worker pushes and pulls all parameters in each step; servers hold equal
shares. An all-reduce ring over k zones crosses between them k times, each crossing carrying
2 (G-1)/G of the gradients.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.step_model import Floats

Numbers = TypeVar("Numbers", float, Floats)

USD_PER_GB_BETWEEN_ZONES = 0.02  # AWS: 0.01 at either end
USD_PER_GB_BETWEEN_REGIONS = 0.02  # AWS, from most regions


class CrossZoneTraffic:
    """The dollars for traffic between zones, in fleets of given workers with given servers."""

    def __init__(
        self, workload: Workload, workers: Sequence[NodeGroup], servers: Sequence[NodeGroup]
    ) -> None:
        """Prepare for fleets of these groups, whatever the workers' number."""
        self._ring = workload.strategy is Strategy.ALLREDUCE
        self._gigabytes = workload.model.parameter_bytes / 1e9
        self._gpus = np.array([max(group.gpus_per_node, 1.0) for group in workers])
        self._zones = _places([group.offer.zone if group.offer else None for group in workers])
        self._regions = _places([group.offer.region if group.offer else None for group in workers])
        per_gb = [_usd_per_gb_served(group, servers) for group in workers]
        self.usd_per_step = 2 * self._gigabytes * np.array(per_gb)  # pushed and pulled

    def usd(self, counts: Floats, *, step_s: Floats, work_s: Floats) -> Floats:
        """Return the dollars of whole runs, by fleet.

        Args:
            counts: workers of each group, (groups, fleets).
            step_s: seconds of one worker's step, (groups, fleets).
            work_s: of the run, by fleet.
        """
        if self._ring:
            return self._ring_usd(counts, step_s, work_s)
        if not self.usd_per_step.any():
            return np.zeros_like(work_s)
        return _product(work_s, self.usd_per_step @ (counts / step_s))

    def _ring_usd(self, counts: Floats, step_s: Floats, work_s: Floats) -> Floats:
        if len(self._zones) < 2:
            return np.zeros_like(work_s)
        crossings = (self._zones @ counts > 0).sum(axis=0)
        one_region = (self._regions @ counts > 0).sum(axis=0) == 1
        usd_per_gb = np.where(one_region, USD_PER_GB_BETWEEN_ZONES, USD_PER_GB_BETWEEN_REGIONS)
        usd_per_step = ring_gigabytes(self._gigabytes, self._gpus @ counts) * crossings * usd_per_gb
        return _product(work_s / step_s[0], np.where(crossings > 1, usd_per_step, 0.0))


def least_usd_per_crossing(workload: Workload, *, gpus: float) -> float:
    """Return what a step of a ring of at least so many GPUs costs for each zone it visits."""
    gigabytes = ring_gigabytes(workload.model.parameter_bytes / 1e9, max(gpus, 2.0))
    return gigabytes * min(USD_PER_GB_BETWEEN_ZONES, USD_PER_GB_BETWEEN_REGIONS)


def ring_gigabytes(gradients: float, gpus: Numbers) -> Numbers:
    """Return the gigabytes that each crossing of a ring carries in one step."""
    return 2 * (gpus - 1) / gpus * gradients


def _product(run: Floats, usd: Floats) -> Floats:
    """Return the product where it costs anything: a run may be endless."""
    return np.multiply(run, usd, out=np.zeros_like(run), where=usd > 0)


def _places(names: Sequence[str | None]) -> Floats:
    """Return which groups are in each place, (places, groups)."""
    places = sorted({name for name in names if name is not None})
    return np.array([[float(name == place) for name in names] for place in places])


def _usd_per_gb_served(worker: NodeGroup, servers: Sequence[NodeGroup]) -> float:
    count = sum(server.node_count for server in servers)
    return sum(_usd_per_gb(worker, server) * server.node_count / count for server in servers)


def _usd_per_gb(worker: NodeGroup, server: NodeGroup) -> float:
    if worker.offer is None or server.offer is None or worker.offer.zone == server.offer.zone:
        return 0.0
    if worker.offer.region == server.offer.region:
        return USD_PER_GB_BETWEEN_ZONES
    return USD_PER_GB_BETWEEN_REGIONS
