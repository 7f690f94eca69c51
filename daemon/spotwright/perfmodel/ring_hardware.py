"""What an all-reduce ring gets from the hardware, where nothing was measured.

NCCL gets 80 % of the line rate over an EFA fabric of 100 Gbit/s or more, and elsewhere one TCP flow
(10 Gbit/s in a placement group). Calibration starts from the same figures.
"""

from dataclasses import dataclass

from spotwright.perfmodel.step_model import WorkerClass

FLOW_LIMIT_MBPS = 10_000.0  # of one TCP flow inside a placement group
USUAL_SHARING = 0.05  # slowdown of a full node by its own GPUs
_EFA_EFFICIENCY, _FABRIC_MBPS = 0.8, 100_000.0
_MESSAGE_COST_BYTES, _MOST_HOP_LOSS = 1.5e6, 0.015


@dataclass(frozen=True, slots=True, kw_only=True)
class RingHardware:
    """Rates and losses of nodes of one class."""

    network_mbps: float | None  # None: the catalog does not say
    intra_mbps: float  # between the GPUs of a node
    link_spread: float
    two_node_loss: float


def ring_hardware(worker: WorkerClass) -> RingHardware:
    """Return what a class of workers brings to a ring."""
    instance_type, line_mbps = worker.group.instance_type, worker.network_mbps
    intra_mbps = instance_type.nvlink_mbps or worker.pcie_mbps
    # Smaller types that also have EFA are mostly run over TCP.
    if line_mbps and line_mbps >= _FABRIC_MBPS and instance_type.efa_interface_count:
        return RingHardware(
            network_mbps=_EFA_EFFICIENCY * line_mbps,
            intra_mbps=intra_mbps,
            link_spread=0.05,
            two_node_loss=0.0,
        )
    return RingHardware(
        network_mbps=min(line_mbps, FLOW_LIMIT_MBPS) if line_mbps else None,
        intra_mbps=intra_mbps,
        link_spread=0.18,
        two_node_loss=0.4,
    )


def usual_hop_loss(parameter_bytes: float) -> float:
    """Return the loss per GPU in the ring: what a message costs, against what it carries."""
    return min(_MOST_HOP_LOSS, _MESSAGE_COST_BYTES / parameter_bytes)
