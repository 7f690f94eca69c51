"""What the all-reduce model takes for granted of an instance type before any row is seen.

Every figure is asked of the model itself, so that no prior contradicts what is predicted without a
calibration: two nodes with nothing to compute exchange gradients, with the loss in question as the
model has it and with none. The ratio of the two times is the loss.
"""

from dataclasses import replace

import numpy as np

from spotwright.domain.workload import AllreduceTuning, Links, Workload
from spotwright.perfmodel.allreduce import FLOW_LIMIT_MBPS, AllreduceModel
from spotwright.perfmodel.step_model import WorkerClass

_NODES = 2.0
_NO_LIMIT_MBPS = 1e12
_AS_THE_MODEL_HAS_IT = None


class UncalibratedRing:
    """Two equal nodes."""

    def __init__(self, workload: Workload, worker: WorkerClass) -> None:
        """Ask about the workload's gradients on nodes of this class."""
        self._workload, self._worker = workload, worker

    @property
    def net_is_known(self) -> bool:
        """Whether the catalog has a figure at all."""
        return self._worker.network_mbps is not None

    @property
    def net_mbps(self) -> float:
        """What the ring gets from the network; one TCP flow where the catalog has no figure."""
        if not self.net_is_known:
            return FLOW_LIMIT_MBPS
        return self._exchange_s() / self._exchange_s(network_mbps=_AS_THE_MODEL_HAS_IT)

    @property
    def intra_mbps(self) -> float:
        """Rate between the GPUs of a node."""
        return self._worker.group.instance_type.nvlink_mbps or self._worker.pcie_mbps

    @property
    def hop_loss(self) -> float:
        """Loss per GPU in the ring."""
        slowdown = self._exchange_s(hop_loss=_AS_THE_MODEL_HAS_IT) / self._exchange_s()
        return (slowdown - 1) / (_NODES * self._worker.gpus)

    @property
    def two_node_loss(self) -> float:
        """Loss of a ring of two nodes."""
        return self._exchange_s(two_node_loss=_AS_THE_MODEL_HAS_IT) / self._exchange_s() - 1

    def _exchange_s(
        self,
        *,
        network_mbps: float | None = 1.0,
        hop_loss: float | None = 0.0,
        two_node_loss: float | None = 0.0,
    ) -> float:
        links = Links(network_mbps=network_mbps, intra_mbps=_NO_LIMIT_MBPS)
        tuning = AllreduceTuning(
            link_spread_fraction=0.0,
            hop_loss=hop_loss,
            two_node_loss=two_node_loss,
            links={self._worker.group.instance_type.name: links},
        )
        model = AllreduceModel(replace(self._workload, allreduce=tuning), [self._worker])
        return float(model.overlapped_s(np.array([[_NODES]]), np.zeros(1))[0])
